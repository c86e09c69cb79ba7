//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package vfs

import "os"

func lockFile(*os.File) error { return ErrUnsupported }
