package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

var built = sync.OnceValues(build) // a value computed once, never reassigned

// Binary returns the path of the broker's executable, built from the module that holds this one unless
// GREGOR_COMPAT_BINARY names another.
func Binary(tb testing.TB) string {
	tb.Helper()
	path, err := built()
	if err != nil {
		tb.Fatalf("no gregor to test: %v", err)
	}
	return path
}

// Race tells whether GREGOR_RACE=1 asks for a race-enabled broker; tests use it to allow more memory and time.
func Race() bool { return os.Getenv("GREGOR_RACE") == "1" }

// Foreign tells whether GREGOR_COMPAT_FOREIGN=1 says that the broker under test is another than gregor; it logs what is
// therefore not checked.
func Foreign(tb testing.TB, unchecked string) bool {
	tb.Helper()
	if os.Getenv("GREGOR_COMPAT_FOREIGN") != "1" {
		return false
	}
	tb.Logf("not checked, since this broker is not gregor: %s", unchecked)
	return true
}

func build() (string, error) {
	if path := os.Getenv("GREGOR_COMPAT_BINARY"); path != "" {
		return exec.LookPath(path)
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(root)) // two checkouts must not overwrite each other's binary
	name := "gregor-" + hex.EncodeToString(sum[:4])
	args := []string{"build"}
	if Race() {
		name += "-race"
		args = append(args, "-race")
	}
	var path string
	err = Once(name, func(cache string) error {
		path = filepath.Join(cache, "bin", name)
		cmd := exec.Command("go", append(args, "-o", path, "./cmd/gregor")...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("go build ./cmd/gregor in %s: %w\n%s", root, err, out)
		}
		return nil
	})
	return path, err
}

// moduleRoot finds the broker's module from where this file was compiled: two folders up.
func moduleRoot() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", fmt.Errorf("cannot tell where the harness was compiled")
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if _, err := os.Stat(filepath.Join(root, "cmd", "gregor")); err != nil {
		return "", fmt.Errorf("the broker's module is not beside compat: %w", err)
	}
	return root, nil
}

// CompatDir is the folder of the compat module, for files that tests read (Java and Python sources).
func CompatDir(tb testing.TB) string {
	tb.Helper()
	root, err := moduleRoot()
	if err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(root, "compat")
}
