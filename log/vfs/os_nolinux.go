//go:build !linux

package vfs

import (
	"os"
	"runtime"
	"syscall"
)

func kernelReportsSyncfs() bool { return false }

func fsReportsSyncfs(*os.File) bool { return false }

func syncfs(*os.File) error { return ErrUnsupported }

func openPlain(name string, flag int) (*os.File, error) { return os.OpenFile(name, flag, fileMode) }

// syncDir does nothing on Windows, which has no such call and journals its directories.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}

func datasync(f *os.File, _ syscall.RawConn) error { return f.Sync() }

func preallocate(*os.File, syscall.RawConn, int64) error { return ErrUnsupported }
