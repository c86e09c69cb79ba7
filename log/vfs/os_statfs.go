//go:build linux || darwin || freebsd

package vfs

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// Device implements DeviceTeller.
func (o *osFS) Device(dir string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	return uint64(st.Dev), nil
}

var _ DeviceTeller = (*osFS)(nil)

func usage(dir string) (Usage, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(dir, &st)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return Usage{}, &fs.PathError{Op: "statfs", Path: dir, Err: err}
		}
		size := int64(st.Bsize)
		return Usage{Total: int64(st.Blocks) * size, Free: int64(st.Bavail) * size}, nil
	}
}
