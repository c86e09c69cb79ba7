// Package deps installs the clients that are not Go or Java: kcat from the system's packages and kafka-python into a
// virtual environment in the cache folder. Each function does nothing when its client is there, and may be called from
// several test processes at the same time.
package deps

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"gregor/compat/harness"
)

// pythonPackages are kafka-python and the codecs it loads when they are there.
var pythonPackages = [...]string{"kafka-python==3.0.12", "python-snappy==0.7.3", "lz4==4.4.5", "zstandard==0.25.0"}

// Kcat returns the path of kcat, which carries librdkafka, and installs it by apt-get when it is missing.
func Kcat(ctx context.Context) (string, error) {
	var path string
	err := harness.Once("kcat", func(string) (err error) {
		if path, err = exec.LookPath("kcat"); err == nil {
			return nil
		}
		for _, args := range [][]string{{"update", "-q"}, {"install", "-q", "-y", "--no-install-recommends", "kcat"}} {
			cmd := exec.CommandContext(ctx, "apt-get", args...)
			cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("kcat is not installed and `apt-get %v` failed (install kcat yourself when you are not root): %w\n%s", args, err, out)
			}
		}
		path, err = exec.LookPath("kcat")
		return err
	})
	return path, err
}

// Python returns the interpreter of a virtual environment that has kafka-python.
func Python(ctx context.Context) (string, error) {
	var python string
	err := harness.Once("python", func(cache string) error {
		dir := filepath.Join(cache, "venv-"+pythonPackages[0])
		python = filepath.Join(dir, "bin", "python")
		if _, err := os.Stat(filepath.Join(dir, ".done")); err == nil {
			return nil
		}
		if out, err := exec.CommandContext(ctx, "python3", "-m", "venv", dir).CombinedOutput(); err != nil {
			return fmt.Errorf("python3 -m venv %s (on Debian `apt-get install python3-venv`): %w\n%s", dir, err, out)
		}
		args := append([]string{"-m", "pip", "install", "-q", "--disable-pip-version-check"}, pythonPackages[:]...)
		if out, err := exec.CommandContext(ctx, python, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("pip install %v: %w\n%s", pythonPackages, err, out)
		}
		return os.WriteFile(filepath.Join(dir, ".done"), nil, 0o644)
	})
	return python, err
}
