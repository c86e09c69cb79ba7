package meta

import (
	"context"
	"errors"
)

// Errors of a Tree, matched with errors.Is.
var (
	ErrNoNode     = errors.New("node does not exist")
	ErrNodeExists = errors.New("node exists")
	ErrBadVersion = errors.New("node has another version")
	ErrNotEmpty   = errors.New("node has children")
	ErrClosed     = errors.New("tree is closed")
	// ErrBadPath is a path that is not "/" or "/name/name", or a child of an ephemeral node.
	ErrBadPath = errors.New("path is not valid")
	// ErrDamaged is a tree whose file cannot be trusted. It is met when the tree is opened, or later when the disk fails.
	ErrDamaged = errors.New("metadata is damaged")
	// ErrFailed is a change after one whose outcome on the disk is not known.
	ErrFailed = errors.New("metadata cannot be changed after a storage failure")
	// ErrTooLarge is a change that does not fit into one step of the tree. ZooKeeper takes 1 MiB; Local has no limit.
	ErrTooLarge = errors.New("change is too large for one step")
)

// AnyVersion given as a version skips the check.
const AnyVersion = -1

// Kind says how long a node lives.
type Kind int8

const (
	// Persistent nodes stay until deleted.
	Persistent Kind = iota
	// Ephemeral nodes end with the session of the Tree that made them.
	Ephemeral
	// Sequential nodes are persistent; the tree ends their names with ten digits that grow. See SequentialOp.
	Sequential
)

// Op is one step of a Multi. Make it with CreateOp, SetOp, DeleteOp or CheckOp.
type Op struct {
	kind    OpKind
	path    string
	data    []byte
	version int32
	life    Kind
}

// OpKind is what an Op does.
type OpKind int8

// The kinds of ops.
const (
	OpCreate OpKind = iota
	OpSet
	OpDelete
	OpCheck
)

func (k OpKind) String() string {
	switch k {
	case OpCreate:
		return "create"
	case OpSet:
		return "set"
	case OpDelete:
		return "delete"
	case OpCheck:
		return "check"
	}
	return "do nothing to"
}

// Kind is what the op does.
func (o *Op) Kind() OpKind { return o.kind }

// Path is the node that it is about.
func (o *Op) Path() string { return o.path }

// Data is what the node is to hold. It belongs to the op.
func (o *Op) Data() []byte { return o.data }

// Version is the one that the node must have, or AnyVersion.
func (o *Op) Version() int32 { return o.version }

// Life is how long a node that is made lives.
func (o *Op) Life() Kind { return o.life }

// CreateOp makes a node. Its parent must exist.
func CreateOp(path string, data []byte, kind Kind) Op {
	return Op{kind: OpCreate, path: path, data: data, life: kind}
}

// SequentialOp makes a persistent node with the name prefix and ten digits, as ZooKeeper's PERSISTENT_SEQUENTIAL: they grow with each such node of
// the parent, with gaps. Which digits it got is found by listing the parent. After a connection to ZooKeeper was lost, one op may have made two nodes.
func SequentialOp(prefix string, data []byte) Op {
	return Op{kind: OpCreate, path: prefix, data: data, life: Sequential}
}

// SetOp replaces a node's data if it has the given version.
func SetOp(path string, data []byte, version int32) Op {
	return Op{kind: OpSet, path: path, data: data, version: version}
}

// DeleteOp removes a node without children if it has the given version.
func DeleteOp(path string, version int32) Op {
	return Op{kind: OpDelete, path: path, version: version}
}

// CheckOp fails the Multi unless the node has the given version.
func CheckOp(path string, version int32) Op { return Op{kind: OpCheck, path: path, version: version} }

// Event says that a watched node or its list of children changed. What it is now must be read again.
type Event struct {
	Path string
}

// Tree is a tree of nodes with data and versions. Paths begin with "/" and do not end with one. A new node has version 0; each Set adds one.
// A change is durable when the call returns. Returned slices belong to the caller.
type Tree interface {
	Get(ctx context.Context, path string) (data []byte, version int32, err error)
	// Children returns the names (not paths) of a node's children, sorted.
	Children(ctx context.Context, path string) ([]string, error)
	// Multi does all ops or none. The error names the op that failed and wraps one of this package's errors.
	Multi(ctx context.Context, ops ...Op) error
	// Watch sends an event to the channel each time the node's data, existence or list of children changes, until the context ends. Events of a
	// reader that does not keep up are merged, never lost: the channel has room for one. It is closed when the context ends or the tree is closed.
	Watch(ctx context.Context, path string) (<-chan Event, error)
	// Born is a number that is greater for a node that was made later, whatever their paths: what Kafka takes for the epoch of a broker. Setting a
	// node's data does not change it; nodes of one Multi may have the same. It is ZooKeeper's czxid. Local says what its own promises.
	Born(ctx context.Context, path string) (int64, error)
	Close() error
}
