package broker

import (
	"io"

	"gregor/log/vfs"
)

// memFile is a file of constant content.
func memFile(content string) vfs.File { return constFile(content) }

type constFile string

func (f constFile) ReadAt(b []byte, off int64) (int, error) {
	if off >= int64(len(f)) {
		return 0, io.EOF
	}
	n := copy(b, f[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
func (constFile) WriteAt([]byte, int64) (int, error) { return 0, io.ErrShortWrite }
func (constFile) Close() error                       { return nil }
func (constFile) Truncate(int64) error               { return nil }
func (f constFile) Size() (int64, error)             { return int64(len(f)), nil }
func (constFile) Sync() error                        { return nil }
func (constFile) Preallocate(int64) error            { return nil }
