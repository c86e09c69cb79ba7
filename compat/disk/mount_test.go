package disk

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// mountTmpfs gives a file system of its own in memory. A test that may not mount says why and does not run.
func mountTmpfs(t *testing.T, options string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fs")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("cannot mount a tmpfs with %s (needs root): %v", options, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("umount %s: %v", dir, err)
		}
	})
	return dir
}

// mountExt4 gives an ext4 of some MiB in a file, which allocates late and journals, unlike tmpfs.
func mountExt4(t *testing.T, mib int) string {
	t.Helper()
	base := t.TempDir()
	image, dir := filepath.Join(base, "image"), filepath.Join(base, "fs")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, int64(mib)<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mkfs.ext4", "-q", "-F", "-m", "0", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v (needs root, loop devices and e2fsprogs): %v: %s", args, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount %s: %v: %s", dir, err, out)
		}
	})
	return dir
}

// fillUp takes all room that is left but some KiB, and returns the file that holds it.
func fillUp(t *testing.T, dir string, leaveKiB int) string {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "ballast")
	free := int64(st.Bavail)*st.Bsize - int64(leaveKiB)<<10
	if free <= 0 {
		t.Fatalf("%s has no %d KiB left", dir, leaveKiB)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := make([]byte, 64<<10)
	for ; free > 0; free -= int64(len(chunk)) {
		if _, err := f.Write(chunk[:min(free, int64(len(chunk)))]); err != nil {
			t.Fatal(fmt.Errorf("ballast: %w", err))
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	return path
}
