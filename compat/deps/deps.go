// Package deps installs the clients that are not Go or Java: kcat and Burrow from the system's packages, kafka-python and
// confluent-kafka into virtual environments and kafkajs into a folder in the cache. Each function does nothing when its client is there, and may be called from
// several test processes at the same time.
package deps

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gregor/compat/harness"
)

// pythonPackages are kafka-python and the codecs it loads when they are there.
var pythonPackages = [...]string{"kafka-python==3.0.12", "python-snappy==0.7.3", "lz4==4.4.5", "xxhash==4.1.0", "crc32c==2.9.post0", "zstandard==0.25.0"}

// Kcat returns the path of kcat, which carries librdkafka, and installs it by apt-get when it is missing.
func Kcat(ctx context.Context) (string, error) { return system(ctx, "kcat", "kcat") }

// Burrow returns the path of Burrow, which watches groups by reading __consumer_offsets, and installs it by apt-get when it is missing.
func Burrow(ctx context.Context) (string, error) { return system(ctx, "burrow", "Burrow") }

// system returns the path of a program of a Debian package.
func system(ctx context.Context, name, program string) (string, error) {
	var path string
	err := harness.Once(name, func(string) (err error) {
		if path, err = exec.LookPath(program); err == nil {
			return nil
		}
		for _, args := range [][]string{{"update", "-q"}, {"install", "-q", "-y", "--no-install-recommends", name}} {
			cmd := exec.CommandContext(ctx, "apt-get", args...)
			cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s is not installed and `apt-get %v` failed (install it yourself when you are not root): %w\n%s", name, args, err, out)
			}
		}
		path, err = exec.LookPath(program)
		return err
	})
	return path, err
}

// confluentPackage is librdkafka's newest release, which the package carries, with its Python binding.
const confluentPackage = "confluent-kafka==2.16.1"

// nodePackage is a client for Node.js.
const nodePackage = "kafkajs@2.2.4"

// Python returns the interpreter of a virtual environment that has kafka-python.
func Python(ctx context.Context) (string, error) { return venv(ctx, "python", pythonPackages[:]) }

// Confluent returns the interpreter of a virtual environment that has confluent-kafka.
func Confluent(ctx context.Context) (string, error) {
	return venv(ctx, "confluent", []string{confluentPackage})
}

// Node returns node and the folder with kafkajs for NODE_PATH.
func Node(ctx context.Context) (node, modules string, err error) {
	err = harness.Once("node", func(cache string) error {
		dir := filepath.Join(cache, "node-"+nodePackage)
		modules = filepath.Join(dir, "node_modules")
		if node, err = exec.LookPath("node"); err != nil {
			return fmt.Errorf("node is not installed: on Debian `apt-get install nodejs npm`: %w", err)
		}
		if _, err := os.Stat(filepath.Join(dir, ".done")); err == nil {
			return nil
		}
		if out, err := exec.CommandContext(ctx, "npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", dir, nodePackage).CombinedOutput(); err != nil {
			return fmt.Errorf("npm install %s: %w\n%s", nodePackage, err, out)
		}
		return os.WriteFile(filepath.Join(dir, ".done"), nil, 0o644)
	})
	return node, modules, err
}

// venv makes a virtual environment with packages unless it is there and returns its interpreter.
func venv(ctx context.Context, name string, packages []string) (string, error) {
	var python string
	err := harness.Once(name, func(cache string) error {
		dir := filepath.Join(cache, "venv-"+strings.Join(packages, "-"))
		python = filepath.Join(dir, "bin", "python")
		if _, err := os.Stat(filepath.Join(dir, ".done")); err == nil {
			return nil
		}
		if out, err := exec.CommandContext(ctx, "python3", "-m", "venv", dir).CombinedOutput(); err != nil {
			return fmt.Errorf("python3 -m venv %s (on Debian `apt-get install python3-venv`): %w\n%s", dir, err, out)
		}
		args := append([]string{"-m", "pip", "install", "-q", "--disable-pip-version-check"}, packages...)
		if out, err := exec.CommandContext(ctx, python, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("pip install %v: %w\n%s", packages, err, out)
		}
		return os.WriteFile(filepath.Join(dir, ".done"), nil, 0o644)
	})
	return python, err
}

// Exporters are programs that read the lag of groups for Prometheus, by name, with what `go install` takes.
func Exporters() map[string]string {
	return map[string]string{
		"kafka_exporter": "github.com/danielqsj/kafka_exporter@v1.9.0",
		"kminion":        "github.com/cloudhut/kminion/v2@v2.3.5",
	}
}

// Exporter returns the path of one of Exporters: from PATH, or installed by `go install` into the cache.
func Exporter(ctx context.Context, name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	var path string
	err := harness.Once(name, func(cache string) error {
		path = filepath.Join(cache, "bin", name)
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		cmd := exec.CommandContext(ctx, "go", "install", Exporters()[name])
		cmd.Env = append(os.Environ(), "GOBIN="+filepath.Dir(path), "GOFLAGS=-buildvcs=false")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s is not in PATH and `go install %s` failed: %w\n%s", name, Exporters()[name], err, out)
		}
		return nil
	})
	return path, err
}

// ConfluentGo returns a program of confluent-kafka-go, which carries librdkafka, built from a folder with a module of its own.
func ConfluentGo(ctx context.Context, dir string) (string, error) {
	var path string
	err := harness.Once("confluent-go", func(cache string) error {
		path = filepath.Join(cache, "bin", "confluent-go")
		cmd := exec.CommandContext(ctx, "go", "build", "-o", path, ".")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build in %s (it needs cgo and a C compiler): %w\n%s", dir, err, out)
		}
		return nil
	})
	return path, err
}
