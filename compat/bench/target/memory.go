package target

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// BackMemory fills the page cache by a file in dir, so that what is measured afterwards finds memory that was touched before. A virtual machine
// may get its memory from the host only when it is first used, and gives some back when files are deleted: until then each new page of a
// log costs the broker that happens to write it up to five times the processor time. The caller removes the file at the very end;
// its pages are clean and go first.
func BackMemory(dir string) (remove func() error, err error) {
	free, err := memAvailable()
	if err != nil {
		return nil, err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return nil, fmt.Errorf("free space of %s: %w", dir, err)
	}
	const reserve = 1 << 30
	size := min(free-reserve, int64(fs.Bavail)*fs.Bsize/2)
	f, err := os.Create(filepath.Join(dir, "memory.fill"))
	if err != nil {
		return nil, err
	}
	remove = func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
	block := make([]byte, 4<<20)
	for done := int64(0); done < size; done += int64(len(block)) {
		if _, err := f.Write(block); err != nil {
			return nil, errors.Join(err, remove())
		}
	}
	if err := f.Sync(); err != nil {
		return nil, errors.Join(err, remove())
	}
	return remove, nil
}

// memAvailable is what the kernel could give to a program or to the page cache, in bytes.
func memAvailable() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			var kib int64
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				return 0, fmt.Errorf("/proc/meminfo: %q: %w", lines.Text(), err)
			}
			return kib << 10, nil
		}
	}
	return 0, errors.Join(errors.New("/proc/meminfo has no MemAvailable"), lines.Err())
}
