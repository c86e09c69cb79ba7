package faultfs

import (
	"errors"
	"io"
	"io/fs"
	"sync"
	"time"

	"gregor/log/vfs"
)

// FS wraps a file system. Without rules it changes nothing.
type FS struct {
	inner vfs.FS

	mu struct {
		sync.Mutex
		rules     []*rule
		observe   func(Op)
		recording bool
		ops       []Op
	}
}

var (
	_ vfs.FS              = (*FS)(nil)
	_ vfs.SyncAllPreparer = (*FS)(nil)
)

// New wraps inner.
func New(inner vfs.FS) *FS { return &FS{inner: inner} }

// Add adds a rule and returns what removes it. The first rule that matches a call and whose turn it is decides.
func (f *FS) Add(r Rule) (remove func()) {
	added := &rule{Rule: r}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.rules = append(f.mu.rules, added)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for i, r := range f.mu.rules {
			if r == added {
				f.mu.rules = append(f.mu.rules[:i:i], f.mu.rules[i+1:]...)
				return
			}
		}
	}
}

// Observe has see called before each call reaches the wrapped file system, on the caller's goroutine, where a test may
// take a crash clone. Nil ends it.
func (f *FS) Observe(see func(Op)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.observe = see
}

// Record starts a new transcript.
func (f *FS) Record() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.recording, f.mu.ops = true, nil
}

// Transcript returns the calls since Record, failed ones included.
func (f *FS) Transcript() []Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Op(nil), f.mu.ops...)
}

// before records a call, tells the observer, and finds what goes wrong with it: the returned rule if any.
func (f *FS) before(o Op) *rule {
	f.mu.Lock()
	if f.mu.recording {
		f.mu.ops = append(f.mu.ops, o)
	}
	observe := f.mu.observe
	hit := f.hit(o)
	f.mu.Unlock()
	if observe != nil {
		observe(o)
	}
	if hit == nil {
		return nil
	}
	if hit.Entered != nil {
		hit.Entered <- struct{}{}
	}
	if hit.Block != nil {
		<-hit.Block
	}
	if hit.Err == nil {
		return nil
	}
	return hit
}

func (f *FS) hit(o Op) *rule {
	for _, r := range f.mu.rules {
		if !r.selects(o) {
			continue
		}
		r.seen++
		if r.seen > r.After && (r.Times == 0 || r.seen <= r.After+r.Times) {
			return r
		}
	}
	return nil
}

// check is before for calls that fail as a whole.
func (f *FS) check(o Op) error {
	if hit := f.before(o); hit != nil {
		return hit.fail(o)
	}
	return nil
}

func (r *rule) fail(o Op) error {
	if errors.Is(r.Err, vfs.ErrUnsupported) {
		return r.Err
	}
	return &fs.PathError{Op: string(o.Kind), Path: o.Name, Err: r.Err}
}

func (f *FS) Create(name string) (vfs.File, error) { return f.open(Create, name, f.inner.Create) }

func (f *FS) Open(name string) (vfs.File, error) { return f.open(Open, name, f.inner.Open) }

func (f *FS) OpenRead(name string) (vfs.File, error) { return f.open(OpenRead, name, f.inner.OpenRead) }

func (f *FS) open(k Kind, name string, call func(string) (vfs.File, error)) (vfs.File, error) {
	if err := f.check(Op{Kind: k, Name: name}); err != nil {
		return nil, err
	}
	inner, err := call(name)
	if err != nil {
		return nil, err
	}
	return wrap(f, inner, name), nil
}

func (f *FS) named(k Kind, name string, call func(string) error) error {
	if err := f.check(Op{Kind: k, Name: name}); err != nil {
		return err
	}
	return call(name)
}

func (f *FS) Remove(name string) error { return f.named(Remove, name, f.inner.Remove) }

func (f *FS) RemoveAll(name string) error { return f.named(RemoveAll, name, f.inner.RemoveAll) }

func (f *FS) MkdirAll(name string) error { return f.named(MkdirAll, name, f.inner.MkdirAll) }

func (f *FS) SyncDir(dir string) error { return f.named(SyncDir, dir, f.inner.SyncDir) }

func (f *FS) SyncAll(dir string) error { return f.named(SyncAll, dir, f.inner.SyncAll) }

// PrepareSyncAll is passed on.
func (f *FS) PrepareSyncAll(dir string) error {
	if p, ok := f.inner.(vfs.SyncAllPreparer); ok {
		return p.PrepareSyncAll(dir)
	}
	return nil
}

// Device is passed on.
func (f *FS) Device(dir string) (uint64, error) {
	if d, ok := f.inner.(vfs.DeviceTeller); ok {
		return d.Device(dir)
	}
	return 0, vfs.ErrUnsupported
}

// SetModTime is passed on.
func (f *FS) SetModTime(name string, at time.Time) error {
	if s, ok := f.inner.(vfs.ModTimeSetter); ok {
		return s.SetModTime(name, at)
	}
	return nil
}

func (f *FS) Rename(oldName, newName string) error {
	if err := f.check(Op{Kind: Rename, Name: oldName, To: newName}); err != nil {
		return err
	}
	return f.inner.Rename(oldName, newName)
}

func (f *FS) List(dir string) ([]fs.DirEntry, error) {
	if err := f.check(Op{Kind: List, Name: dir}); err != nil {
		return nil, err
	}
	return f.inner.List(dir)
}

func (f *FS) Stat(name string) (fs.FileInfo, error) {
	if err := f.check(Op{Kind: Stat, Name: name}); err != nil {
		return nil, err
	}
	return f.inner.Stat(name)
}

func (f *FS) Lock(name string) (io.Closer, error) {
	if err := f.check(Op{Kind: Lock, Name: name}); err != nil {
		return nil, err
	}
	return f.inner.Lock(name)
}

func (f *FS) Usage(dir string) (vfs.Usage, error) {
	if err := f.check(Op{Kind: Usage, Name: dir}); err != nil {
		return vfs.Usage{}, err
	}
	return f.inner.Usage(dir)
}
