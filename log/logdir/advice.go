package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// advise adds to an error of taking the directory what its operator can do about it.
func advise(err error) error {
	advice := ""
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		advice = "a part of the path is a file: name another directory (log.dirs, --data-dir)"
	case errors.Is(err, syscall.EROFS):
		advice = "the file system is read-only: mount it writable, or name another directory (log.dirs, --data-dir)"
	case errors.Is(err, fs.ErrPermission):
		advice = "this user may not: change the owner or mode of the directory or of the one above it, or name another (log.dirs, --data-dir)"
	case errors.Is(err, syscall.EMFILE):
		advice = "too many open files: raise the limit (ulimit -n, LimitNOFILE=)"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		advice = "the disk is full: make room, or name another directory (log.dirs, --data-dir)"
	}
	if advice == "" || strings.Contains(err.Error(), advice) { // a caller may have been told already
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}
