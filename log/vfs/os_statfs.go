//go:build linux || darwin || freebsd

package vfs

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

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
