package crashfs

import (
	"io/fs"
	"syscall"

	"gregor/log/vfs"
)

// handle is an open file. It keeps the inode when the name goes.
type handle struct {
	fs     *FS
	node   *inode
	name   string
	write  bool
	closed bool
}

var _ vfs.File = (*handle)(nil)

func (f *FS) handle(n *inode, name string, write bool) *handle {
	h := &handle{fs: f, node: n, name: name, write: write}
	f.mu.open[h] = struct{}{}
	return h
}

// begin locks the file system and checks that the handle may be used; the caller unlocks when there is no error.
func (h *handle) begin(op string, write bool) error {
	h.fs.mu.Lock()
	err := error(nil)
	switch {
	case h.closed:
		err = fs.ErrClosed
	case write && !h.write:
		err = syscall.EBADF
	}
	if err != nil {
		h.fs.mu.Unlock()
		return fail(op, h.name, err)
	}
	return nil
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	if err := h.begin("read", false); err != nil {
		return 0, err
	}
	defer h.fs.mu.Unlock()
	if off < 0 {
		return 0, fail("read", h.name, syscall.EINVAL)
	}
	return h.node.now.readAt(p, off)
}

func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	if err := h.begin("write", true); err != nil {
		return 0, err
	}
	defer h.fs.mu.Unlock()
	if off < 0 {
		return 0, fail("write", h.name, syscall.EINVAL)
	}
	if len(p) > 0 {
		h.node.writeAt(p, off)
	}
	return len(p), nil
}

func (h *handle) Truncate(size int64) error {
	if err := h.begin("truncate", true); err != nil {
		return err
	}
	defer h.fs.mu.Unlock()
	if size < 0 {
		return fail("truncate", h.name, syscall.EINVAL)
	}
	h.node.truncate(size)
	return nil
}

func (h *handle) Size() (int64, error) {
	if err := h.begin("stat", false); err != nil {
		return 0, err
	}
	defer h.fs.mu.Unlock()
	return h.node.now.size, nil
}

func (h *handle) Sync() error {
	if err := h.begin("fdatasync", false); err != nil {
		return err
	}
	defer h.fs.mu.Unlock()
	h.node.sync()
	return nil
}

// Preallocate is accepted and changes nothing: blocks cannot be seen here.
func (h *handle) Preallocate(int64) error {
	if err := h.begin("fallocate", true); err != nil {
		return err
	}
	h.fs.mu.Unlock()
	return nil
}

func (h *handle) Close() error {
	if err := h.begin("close", false); err != nil {
		return err
	}
	defer h.fs.mu.Unlock()
	h.closed = true
	delete(h.fs.mu.open, h)
	return nil
}
