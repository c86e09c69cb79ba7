package crashfs

import (
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"gregor/log/vfs"
)

// capacity is the size of the disk that Usage reports.
const capacity = 1 << 40

// FS is a vfs.FS in memory. The zero value is not usable; New makes one with only a root directory.
type FS struct {
	mu struct {
		sync.Mutex
		root    *inode
		pending []op // directory operations that are not durable, oldest first
		locks   map[string]struct{}
		open    map[*handle]struct{}
	}
}

var _ vfs.FS = (*FS)(nil)

// New returns an empty file system.
func New() *FS {
	f := &FS{}
	f.mu.root = newDir()
	f.mu.locks = make(map[string]struct{})
	f.mu.open = make(map[*handle]struct{})
	return f
}

// OpenFiles returns the names, as given when opened, of all open files and held locks, sorted: what is left at the end of a test leaks.
func (f *FS) OpenFiles() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := make([]string, 0, len(f.mu.open)+len(f.mu.locks))
	for h := range f.mu.open {
		names = append(names, h.name)
	}
	for l := range f.mu.locks {
		names = append(names, l)
	}
	slices.Sort(names)
	return names
}

func sortedNames(entries map[string]*inode) []string { return slices.Sorted(maps.Keys(entries)) }

func split(name string) []string {
	clean := filepath.ToSlash(filepath.Clean(name))
	clean = strings.TrimPrefix(clean, filepath.ToSlash(filepath.VolumeName(name)))
	clean = strings.Trim(clean, "/")
	if clean == "" || clean == "." {
		return nil
	}
	return strings.Split(clean, "/")
}

func fail(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// lookup finds a name. FS.mu is held, as in all methods below that do not take it.
func (f *FS) lookup(name string) (*inode, error) {
	n := f.mu.root
	for _, part := range split(name) {
		if !n.isDir {
			return nil, syscall.ENOTDIR
		}
		child, ok := n.entries[part]
		if !ok {
			return nil, syscall.ENOENT
		}
		n = child
	}
	return n, nil
}

// parent finds the directory of a name that need not exist, and the last part of the name.
func (f *FS) parent(name string) (*inode, string, error) {
	parts := split(name)
	if len(parts) == 0 {
		return nil, "", syscall.EINVAL
	}
	dir, err := f.lookup(filepath.Join(parts[:len(parts)-1]...))
	if err != nil {
		return nil, "", err
	}
	if !dir.isDir {
		return nil, "", syscall.ENOTDIR
	}
	return dir, parts[len(parts)-1], nil
}

func (f *FS) Create(name string) (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.create(name)
	if err != nil {
		return nil, fail("create", name, err)
	}
	return f.handle(n, name, true), nil
}

func (f *FS) create(name string) (*inode, error) {
	dir, base, err := f.parent(name)
	if err != nil {
		return nil, err
	}
	if _, ok := dir.entries[base]; ok {
		return nil, syscall.EEXIST
	}
	n := newFile()
	f.record(op{node: n, changes: []change{{dir, base, n}}})
	return n, nil
}

func (f *FS) Open(name string) (vfs.File, error) { return f.openFile(name, true) }

func (f *FS) OpenRead(name string) (vfs.File, error) { return f.openFile(name, false) }

func (f *FS) openFile(name string, write bool) (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.lookup(name)
	if err == nil && n.isDir {
		err = syscall.EISDIR
	}
	if err != nil {
		return nil, fail("open", name, err)
	}
	return f.handle(n, name, write), nil
}

func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir, base, err := f.parent(name)
	if err != nil {
		return fail("remove", name, err)
	}
	n, ok := dir.entries[base]
	switch {
	case !ok:
		return fail("remove", name, syscall.ENOENT)
	case len(n.entries) > 0:
		return fail("remove", name, syscall.ENOTEMPTY)
	}
	f.record(op{node: n, removed: true, changes: []change{{dir, base, nil}}})
	return nil
}

func (f *FS) RemoveAll(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir, base, err := f.parent(name)
	if err == syscall.ENOENT {
		return nil
	}
	if err != nil {
		return fail("remove", name, err)
	}
	if n, ok := dir.entries[base]; ok {
		f.removeTree(dir, base, n)
	}
	return nil
}

func (f *FS) removeTree(dir *inode, base string, n *inode) {
	for _, child := range sortedNames(n.entries) {
		f.removeTree(n, child, n.entries[child])
	}
	f.record(op{node: n, removed: true, changes: []change{{dir, base, nil}}})
}

func (f *FS) Rename(oldName, newName string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	oldDir, oldBase, err := f.parent(oldName)
	if err != nil {
		return fail("rename", oldName, err)
	}
	newDir, newBase, err := f.parent(newName)
	if err != nil {
		return fail("rename", newName, err)
	}
	n, ok := oldDir.entries[oldBase]
	if !ok {
		return fail("rename", oldName, syscall.ENOENT)
	}
	if target, ok := newDir.entries[newBase]; ok {
		switch {
		case target == n:
			return nil
		case target.isDir && !n.isDir:
			return fail("rename", newName, syscall.EISDIR)
		case !target.isDir && n.isDir:
			return fail("rename", newName, syscall.ENOTDIR)
		case len(target.entries) > 0:
			return fail("rename", newName, syscall.ENOTEMPTY)
		}
	}
	f.record(op{node: n, changes: []change{{oldDir, oldBase, nil}, {newDir, newBase, n}}})
	return nil
}

func (f *FS) MkdirAll(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.mu.root
	for _, part := range split(name) {
		child, ok := n.entries[part]
		switch {
		case !ok:
			child = newDir()
			f.record(op{node: child, changes: []change{{n, part, child}}})
		case !child.isDir:
			return fail("mkdir", name, syscall.ENOTDIR)
		}
		n = child
	}
	return nil
}

func (f *FS) List(dir string) ([]fs.DirEntry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.lookup(dir)
	if err == nil && !n.isDir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, fail("list", dir, err)
	}
	list := make([]fs.DirEntry, 0, len(n.entries))
	for _, name := range sortedNames(n.entries) {
		list = append(list, fs.FileInfoToDirEntry(infoOf(name, n.entries[name])))
	}
	return list, nil
}

func (f *FS) Stat(name string) (fs.FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.lookup(name)
	if err != nil {
		return nil, fail("stat", name, err)
	}
	return infoOf(filepath.Base(name), n), nil
}

func (f *FS) SyncDir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.lookup(dir)
	if err == nil && !n.isDir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return fail("fsync", dir, err)
	}
	f.harden(n)
	return nil
}

func (f *FS) SyncAll(string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hardenAll()
	f.syncTree(f.mu.root)
	for h := range f.mu.open { // files without a name
		h.node.sync()
	}
	return nil
}

func (f *FS) syncTree(n *inode) {
	if !n.isDir {
		n.sync()
		return
	}
	for _, child := range n.entries {
		f.syncTree(child)
	}
}

// SetModTime implements vfs.ModTimeSetter.
func (f *FS) SetModTime(name string, at time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.lookup(name)
	if err != nil {
		return fail("chtimes", name, err)
	}
	n.mtime = at
	return nil
}

func (f *FS) Lock(name string) (io.Closer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, err := f.lookup(name); err == syscall.ENOENT {
		if _, err := f.create(name); err != nil {
			return nil, fail("lock", name, err)
		}
	} else if err != nil {
		return nil, fail("lock", name, err)
	} else if n.isDir {
		return nil, fail("lock", name, syscall.EISDIR)
	}
	if _, held := f.mu.locks[name]; held {
		return nil, fail("lock", name, vfs.ErrLocked)
	}
	f.mu.locks[name] = struct{}{}
	return &lock{fs: f, name: name}, nil
}

// lock ends at its first Close.
type lock struct {
	fs   *FS
	name string
	once sync.Once
}

func (l *lock) Close() error {
	l.once.Do(func() {
		l.fs.mu.Lock()
		defer l.fs.mu.Unlock()
		delete(l.fs.mu.locks, l.name)
	})
	return nil
}

func (f *FS) Usage(dir string) (vfs.Usage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.lookup(dir); err != nil {
		return vfs.Usage{}, fail("statfs", dir, err)
	}
	return vfs.Usage{Total: capacity, Free: capacity}, nil
}

// info is a snapshot of a file's description.
type info struct {
	name  string
	size  int64
	mtime time.Time
	dir   bool
}

func infoOf(name string, n *inode) info {
	return info{name: name, size: n.now.size, mtime: n.mtime, dir: n.isDir}
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return i.mtime }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }

func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
