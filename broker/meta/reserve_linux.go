package meta

import (
	"os"

	"golang.org/x/sys/unix"
)

// allocate gives f blocks on the disk for its first size bytes.
func allocate(f *os.File, size int64) error { return unix.Fallocate(int(f.Fd()), 0, 0, size) }
