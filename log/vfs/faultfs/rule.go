package faultfs

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// Kind is a kind of call.
type Kind string

// The calls of vfs.FS and vfs.File.
const (
	Create      Kind = "create"
	Open        Kind = "open"
	OpenRead    Kind = "openread"
	Remove      Kind = "remove"
	RemoveAll   Kind = "removeall"
	Rename      Kind = "rename" // matched by the old and the new name
	MkdirAll    Kind = "mkdirall"
	List        Kind = "list"
	Stat        Kind = "stat"
	SyncDir     Kind = "syncdir"
	SyncAll     Kind = "syncall"
	Lock        Kind = "lock"
	Usage       Kind = "usage"
	Read        Kind = "read"
	Write       Kind = "write"
	Truncate    Kind = "truncate"
	Size        Kind = "size"
	Sync        Kind = "sync"
	Preallocate Kind = "preallocate"
	Close       Kind = "close"
)

// Changes reports whether a successful call of this kind changes what a crash can leave.
func (k Kind) Changes() bool {
	switch k {
	case Create, Remove, RemoveAll, Rename, MkdirAll, SyncDir, SyncAll, Lock, Write, Truncate, Sync:
		return true
	}
	return false
}

// Op is one call.
type Op struct {
	Kind Kind
	Name string
	To   string // new name, of Rename
	Off  int64  // position of Read and Write; size of Truncate and Preallocate
	Len  int    // bytes of Read and Write
}

// String is the line in a transcript, with slashes on every system.
func (o Op) String() string {
	name := filepath.ToSlash(o.Name)
	switch o.Kind {
	case Rename:
		return fmt.Sprintf("%s %s %s", o.Kind, name, filepath.ToSlash(o.To))
	case Read, Write:
		return fmt.Sprintf("%s %s %d+%d", o.Kind, name, o.Off, o.Len)
	case Truncate, Preallocate:
		return fmt.Sprintf("%s %s %d", o.Kind, name, o.Off)
	}
	return fmt.Sprintf("%s %s", o.Kind, name)
}

// Rule says which calls go wrong, and how. The zero value of a field that selects means any.
type Rule struct {
	Kind Kind
	// Path is a pattern of path.Match when it has one of *?[, matched against the base name if it has no slash, else against the
	// whole name; otherwise a substring of the whole name.
	Path string
	// Match selects further.
	Match func(Op) bool
	// After lets this many matching calls through first; Times is how many then go wrong, 0 for all.
	After, Times int

	// Err is returned, wrapped in a *fs.PathError. Nil lets the call through (after Block).
	Err error
	// Short is how many bytes of a Write reach the file before Err.
	Short int
	// Block, if not nil, holds the call until the channel is closed or gives a value. Entered, if not nil, is sent to first.
	Block   <-chan struct{}
	Entered chan<- struct{}
}

// rule is a Rule with its count.
type rule struct {
	Rule
	seen int
}

func (r *rule) selects(o Op) bool {
	if r.Kind != "" && r.Kind != o.Kind {
		return false
	}
	if !matchPath(r.Path, o.Name) && !(o.Kind == Rename && matchPath(r.Path, o.To)) {
		return false
	}
	return r.Match == nil || r.Match(o)
}

func matchPath(pattern, name string) bool {
	name = filepath.ToSlash(name)
	if !strings.ContainsAny(pattern, "*?[") {
		return strings.Contains(name, pattern)
	}
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
