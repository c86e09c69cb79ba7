package vfs

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// syncfs(2) returns errors of data written back since Linux 5.8, and those of the file system's own metadata (the journal
// commit that makes a new size durable) only since 5.17: before that a success says too little.
const (
	syncfsMajor = 5
	syncfsMinor = 17
)

func kernelReportsSyncfs() bool {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return false
	}
	return releaseAtLeast(unix.ByteSliceToString(u.Release[:]), syncfsMajor, syncfsMinor)
}

// releaseAtLeast compares a kernel release such as "6.18.44-generic" with a version.
func releaseAtLeast(release string, major, minor int) bool {
	first, rest, ok := strings.Cut(release, ".")
	if !ok {
		return false
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	gotMajor, err1 := strconv.Atoi(first)
	gotMinor, err2 := strconv.Atoi(rest[:end])
	if err1 != nil || err2 != nil {
		return false
	}
	return gotMajor > major || gotMajor == major && gotMinor >= minor
}

// fsReportsSyncfs knows the file systems whose syncfs both reaches the disk and reports what failed. Not overlayfs (errors stay
// with the layer below), not FUSE (the server is never told), not network file systems.
func fsReportsSyncfs(dir *os.File) bool {
	var st unix.Statfs_t
	if err := control(dir, func(fd int) error { return unix.Fstatfs(fd, &st) }); err != nil {
		return false
	}
	switch int64(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return true
	}
	return false
}

func syncfs(dir *os.File) error {
	if err := control(dir, unix.Syncfs); err != nil {
		return &fs.PathError{Op: "syncfs", Path: dir.Name(), Err: err}
	}
	return nil
}

// openPlain is os.OpenFile for regular files and directories, without the four system calls by which that finds out that they cannot be
// polled: a start opens thousands.
func openPlain(name string, flag int) (*os.File, error) {
	fd, err := retry(func() (int, error) { return unix.Open(name, flag|unix.O_CLOEXEC|unix.O_NOCTTY, fileMode) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func syncDir(dir string) error {
	fd, err := retry(func() (int, error) { return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	_, err = retry(func() (int, error) { return 0, unix.Fsync(fd) })
	if closeErr := unix.Close(fd); err == nil {
		err = closeErr
	}
	if err != nil {
		return &fs.PathError{Op: "fsync", Path: dir, Err: err}
	}
	return nil
}

func datasync(f *os.File, raw syscall.RawConn) error {
	if err := controlRaw(raw, unix.Fdatasync); err != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}

func preallocate(f *os.File, raw syscall.RawConn, size int64) error {
	if size <= 0 {
		return nil
	}
	err := controlRaw(raw, func(fd int) error { return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, size) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return ErrUnsupported
	}
	if err != nil {
		return &fs.PathError{Op: "fallocate", Path: f.Name(), Err: err}
	}
	return nil
}

// lockFile takes a lock of the open file description. Unlike flock(2) it excludes the record locks that a Java process takes on
// the same file, and unlike those it excludes other openers in this process.
func lockFile(f *os.File) error {
	whole := unix.Flock_t{Type: unix.F_WRLCK}
	err := control(f, func(fd int) error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &whole) })
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return ErrLocked
	}
	return err
}

func control(f *os.File, call func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return controlRaw(raw, call)
}

// controlRaw makes a call on the descriptor while it cannot be closed, again when a signal interrupts it.
func controlRaw(raw syscall.RawConn, call func(fd int) error) error {
	var callErr error
	err := raw.Control(func(fd uintptr) {
		_, callErr = retry(func() (int, error) { return 0, call(int(fd)) })
	})
	if err != nil {
		return err
	}
	return callErr
}

func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
