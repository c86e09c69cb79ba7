package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	fileMode = 0o644
	dirMode  = 0o755
)

// OS returns the real file system. A value keeps one descriptor open for each directory given to SyncAll or
// PrepareSyncAll, until it is garbage.
func OS() FS { return &osFS{} }

// SetModTime implements ModTimeSetter.
func (*osFS) SetModTime(name string, at time.Time) error { return os.Chtimes(name, time.Time{}, at) }

type osFS struct {
	// syncfsReports answers once whether syncfs(2) of this kernel can be trusted.
	syncfsReports sync.Once
	syncfsOK      bool

	mu struct {
		sync.Mutex
		roots map[string]*syncRoot
	}
}

// syncRoot is a directory that syncfs(2) is called on. The kernel remembers per open descriptor which write errors it has
// reported: a descriptor opened for each call would miss one that another process' syncfs saw first.
//
// An error is reported once, so calls are serialised and the first failure is kept: of two callers whose files it hit, none
// is told that all is well.
type syncRoot struct {
	dir *os.File

	mu  sync.Mutex
	err error // ErrUnsupported or the first failure, for good
}

func (r *syncRoot) sync() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = syncfs(r.dir)
	}
	return r.err
}

// unsupported returns an error if the file system was found to have no usable syncfs.
func (r *syncRoot) unsupported() error {
	if r.dir == nil {
		return ErrUnsupported
	}
	return nil
}

func (o *osFS) Create(name string) (File, error) {
	return openFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (o *osFS) Open(name string) (File, error) { return openFile(name, os.O_RDWR) }

func (o *osFS) OpenRead(name string) (File, error) { return openFile(name, os.O_RDONLY) }

func openFile(name string, flag int) (File, error) {
	f, err := openPlain(name, flag)
	if err != nil {
		return nil, err
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &osFile{f: f, raw: raw}, nil
}

func (o *osFS) Remove(name string) error { return os.Remove(name) }

func (o *osFS) RemoveAll(name string) error { return os.RemoveAll(name) }

func (o *osFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

func (o *osFS) MkdirAll(name string) error {
	if os.Mkdir(name, dirMode) == nil { // nearly always only the last part is missing
		return nil
	}
	return os.MkdirAll(name, dirMode)
}

func (o *osFS) List(dir string) ([]fs.DirEntry, error) {
	d, err := openPlain(dir, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	list, err := d.ReadDir(-1)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}

func (o *osFS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

func (o *osFS) SyncDir(dir string) error { return syncDir(dir) }

// PrepareSyncAll makes later SyncAll calls for dir report every write error from now on. It does no I/O.
func (o *osFS) PrepareSyncAll(dir string) error {
	root, err := o.root(dir)
	if err != nil {
		return err
	}
	return root.unsupported()
}

func (o *osFS) SyncAll(dir string) error {
	root, err := o.root(dir)
	if err != nil {
		return err
	}
	return root.sync()
}

// root returns what syncs the file system of dir.
func (o *osFS) root(dir string) (*syncRoot, error) {
	o.syncfsReports.Do(func() { o.syncfsOK = kernelReportsSyncfs() })
	if !o.syncfsOK {
		return nil, ErrUnsupported
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, ok := o.mu.roots[dir]; ok {
		return r, nil
	}
	d, err := os.Open(dir)
	if err != nil {
		// Nothing was synced and nothing failed to be; not remembered, since it may work later.
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	r := &syncRoot{dir: d}
	if !fsReportsSyncfs(d) {
		r.err = errors.Join(ErrUnsupported, d.Close())
		r.dir = nil
	}
	if o.mu.roots == nil {
		o.mu.roots = make(map[string]*syncRoot)
	}
	o.mu.roots[dir] = r
	return r, nil
}

func (o *osFS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		_ = f.Close() // nothing was written
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteString(strconv.Itoa(os.Getpid())) // for people and tools; the lock does not depend on it
	}
	return f, nil
}

func (o *osFS) Usage(dir string) (Usage, error) { return usage(dir) }

// osFile is a File on an os.File. The raw connection is made once, so that sendfile costs no allocation for it.
type osFile struct {
	f   *os.File
	raw syscall.RawConn
}

var (
	_ File            = (*osFile)(nil)
	_ Descriptor      = (*osFile)(nil)
	_ SyncAllPreparer = (*osFS)(nil)
)

func (f *osFile) ReadAt(p []byte, off int64) (int, error) { return f.f.ReadAt(p, off) }

func (f *osFile) WriteAt(p []byte, off int64) (int, error) { return f.f.WriteAt(p, off) }

func (f *osFile) Close() error { return f.f.Close() }

func (f *osFile) Truncate(size int64) error { return f.f.Truncate(size) }

func (f *osFile) Size() (int64, error) {
	fi, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

func (f *osFile) Sync() error { return datasync(f.f, f.raw) }

func (f *osFile) Preallocate(size int64) error { return preallocate(f.f, f.raw, size) }

func (f *osFile) SyscallConn() (syscall.RawConn, error) { return f.raw, nil }
