package target

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// CheckDir makes dir and refuses one that lies in memory: a sync there costs nothing and would make every figure a lie.
func CheckDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("statfs %s: %w", dir, err)
	}
	switch uint32(st.Type) {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return fmt.Errorf("%s lies in memory (tmpfs): name a folder on a disk with -dir", dir)
	}
	if free := st.Bavail * uint64(st.Bsize); free < 20<<30 {
		return fmt.Errorf("%s has %d GB free, 20 are needed: name another folder with -dir", dir, free>>30)
	}
	return nil
}

// Settle writes everything that is dirty on dir's file system to the disk, so that one run does not pay for another.
func Settle(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// DiskSpeed measures the disk itself: MB/s of writing with a sync at the end, and the time of one 4 KiB append with fdatasync.
func DiskSpeed(dir string) (mbPerSecond float64, sync time.Duration, err error) {
	f, err := os.Create(filepath.Join(dir, "probe"))
	if err != nil {
		return 0, 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	const chunk, chunks, syncs = 1 << 20, 1024, 200
	buf := make([]byte, chunk)
	start := time.Now()
	for range chunks {
		if _, err := f.Write(buf); err != nil {
			return 0, 0, err
		}
	}
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		return 0, 0, err
	}
	mbPerSecond = chunk * chunks / 1e6 / time.Since(start).Seconds()
	start = time.Now()
	for range syncs {
		if _, err := f.Write(buf[:4096]); err != nil {
			return 0, 0, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return 0, 0, err
		}
	}
	return mbPerSecond, time.Since(start) / syncs, nil
}
