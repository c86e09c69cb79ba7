package target

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build compiles the broker of the module at root into bin.
func Build(ctx context.Context, root, bin string) error {
	if err := os.MkdirAll(filepath.Dir(bin), 0o755); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", bin, "./cmd/gregor")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build ./cmd/gregor in %s (name the repository with -repo or a binary with -gregor): %w\n%s", root, err, out)
	}
	return nil
}

// Gregor is the broker in bin with its defaults, changed by the given key=value settings.
func Gregor(name, bin string, set []string) *Kind {
	return &Kind{
		Name:    name,
		prepare: func(context.Context, string, string, bool) error { return nil },
		command: func(dir, addr string) *exec.Cmd {
			args := []string{"serve", "--data-dir", filepath.Join(dir, "data"), "--listen", addr}
			for _, kv := range set {
				args = append(args, "--set", kv)
			}
			return exec.Command(bin, args...)
		},
	}
}
