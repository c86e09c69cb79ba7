package faultfs

import (
	"syscall"

	"gregor/log/vfs"
)

// file wraps an open file. Calls are matched by the name that it was opened under.
type file struct {
	fs    *FS
	inner vfs.File
	name  string
}

// descriptorFile is a file whose inner one has a descriptor: sendfile reads bypass the rules.
type descriptorFile struct {
	file
	descriptor vfs.Descriptor
}

func (f *descriptorFile) SyscallConn() (syscall.RawConn, error) { return f.descriptor.SyscallConn() }

func wrap(f *FS, inner vfs.File, name string) vfs.File {
	wrapped := file{fs: f, inner: inner, name: name}
	if d, ok := inner.(vfs.Descriptor); ok {
		return &descriptorFile{file: wrapped, descriptor: d}
	}
	return &wrapped
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if err := f.fs.check(Op{Kind: Read, Name: f.name, Off: off, Len: len(p)}); err != nil {
		return 0, err
	}
	return f.inner.ReadAt(p, off)
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	o := Op{Kind: Write, Name: f.name, Off: off, Len: len(p)}
	hit := f.fs.before(o)
	if hit == nil {
		return f.inner.WriteAt(p, off)
	}
	n := min(hit.Short, len(p))
	if n > 0 {
		var err error
		if n, err = f.inner.WriteAt(p[:n], off); err != nil {
			return n, err
		}
	}
	return n, hit.fail(o)
}

func (f *file) Truncate(size int64) error {
	if err := f.fs.check(Op{Kind: Truncate, Name: f.name, Off: size}); err != nil {
		return err
	}
	return f.inner.Truncate(size)
}

func (f *file) Size() (int64, error) {
	if err := f.fs.check(Op{Kind: Size, Name: f.name}); err != nil {
		return 0, err
	}
	return f.inner.Size()
}

func (f *file) Sync() error {
	if err := f.fs.check(Op{Kind: Sync, Name: f.name}); err != nil {
		return err
	}
	return f.inner.Sync()
}

func (f *file) Preallocate(size int64) error {
	if err := f.fs.check(Op{Kind: Preallocate, Name: f.name, Off: size}); err != nil {
		return err
	}
	return f.inner.Preallocate(size)
}

// Close closes the wrapped file even when a rule makes it fail, as close(2) does.
func (f *file) Close() error {
	failed := f.fs.check(Op{Kind: Close, Name: f.name})
	err := f.inner.Close()
	if failed != nil {
		return failed
	}
	return err
}
