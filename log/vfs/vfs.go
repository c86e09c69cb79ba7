package vfs

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
	"time"
)

// ErrUnsupported is returned by an operation that this file system does not have (SyncAll on a kernel whose
// syncfs(2) does not report write errors, Preallocate without fallocate). The caller falls back.
var ErrUnsupported = errors.ErrUnsupported

// ErrLocked is returned by Lock when another process, or another opener in this one, holds the lock.
var ErrLocked = errors.New("already locked")

// File is an open regular file. All methods may be called concurrently. Offsets and sizes are in bytes.
// There is no file position: everything is addressed, so that readers share one handle.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Truncate sets the size; growing fills with zeros.
	Truncate(size int64) error
	// Size returns the current size.
	Size() (int64, error)
	// Sync makes content and size durable (fdatasync). After an error nothing is known about what reached the
	// disk, and a later success proves nothing about earlier writes: the caller must give the file up.
	Sync() error
	// Preallocate reserves disk blocks for [0,size) without changing the size. ErrUnsupported is harmless.
	Preallocate(size int64) error
}

// Descriptor is implemented by files that sendfile(2) can read from.
type Descriptor interface {
	SyscallConn() (syscall.RawConn, error)
}

// Usage is the space of the file system that holds a directory, in bytes, as an unprivileged writer sees it.
type Usage struct {
	Total int64
	Free  int64
}

// FS is what the store needs of a file system. Names are paths as package path/filepath makes them.
// Errors satisfy errors.Is with fs.ErrNotExist, fs.ErrExist and fs.ErrPermission, and wrap the syscall.Errno (ENOSPC, EIO).
//
// What is durable: file content after File.Sync; the existence, absence or name of an entry after SyncDir of its
// directory; both after SyncAll. Rename replaces atomically, but is durable only after SyncDir.
type FS interface {
	// Create makes a new file for reading and writing; it is an error if name exists.
	Create(name string) (File, error)
	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)
	// OpenRead opens an existing file for reading.
	OpenRead(name string) (File, error)
	// Remove deletes a file or an empty directory. Open handles stay usable.
	Remove(name string) error
	// RemoveAll deletes name and all below it; a missing name is no error.
	RemoveAll(name string) error
	Rename(oldName, newName string) error
	// MkdirAll makes a directory and its missing parents.
	MkdirAll(name string) error
	// List returns the entries of a directory, sorted by name.
	List(dir string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes the entries of dir durable.
	SyncDir(dir string) error
	// SyncAll makes everything on the file system that holds dir durable (syncfs), or returns ErrUnsupported.
	// An error is as final as that of File.Sync, for every file written since the last success; later calls return it again.
	SyncAll(dir string) error
	// Lock takes an exclusive lock on the file name, made if missing, until the closer is closed or the process ends.
	Lock(name string) (io.Closer, error)
	// Usage reports the space of the file system that holds dir.
	Usage(dir string) (Usage, error)
}

// SyncAllPreparer is implemented by file systems whose SyncAll must be told beforehand where it will be called, so that
// no write error between then and the first call is missed.
type SyncAllPreparer interface {
	// PrepareSyncAll does no I/O worth mentioning; ErrUnsupported says what SyncAll would say.
	PrepareSyncAll(dir string) error
}

// DeviceTeller is implemented by file systems that can tell which directories lie on one device.
type DeviceTeller interface {
	// Device is a number of the device that holds dir. Directories with the same one are synced by one SyncAll.
	Device(dir string) (uint64, error)
}

// ModTimeSetter is implemented by file systems that can set when a file was changed last, to the millisecond at least. It is for compaction, whose output is
// as old as what it was made from, and is durable with the file's content.
type ModTimeSetter interface {
	SetModTime(name string, at time.Time) error
}

// ReadFile reads a whole small file, refusing one larger than limit bytes before allocating for it.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.OpenRead(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errTooLarge}
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b[:n], nil
}

var errTooLarge = errors.New("file is larger than any valid one")
