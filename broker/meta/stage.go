package meta

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"
)

// stage is one transaction: the file's as bbolt has it, and what changes among the ephemeral nodes.
type stage struct {
	bucket    *bbolt.Bucket // nil in a new file
	counters  *bbolt.Bucket // nil unless the transaction writes
	born      int64         // the number of the transaction
	ephemeral map[string]node
	overlay   map[string]*node // nil for deleted
	changed   []string
}

func bucketName() []byte { return []byte("nodes") }

// Keys are the parent's path, a zero byte and the name, so that the children of a node, and only they, stand together and sorted. The root is
// one zero byte. Values are the version, big-endian, and the data; with the sign bit of the version set, eight bytes in between are the node's
// birth. Files from before there was such a number have none.
func keyOf(path string) []byte {
	parent, name := split(path)
	return append(childPrefix(parent), name...)
}

func childPrefix(parent string) []byte {
	key := make([]byte, 0, len(parent)+64)
	if parent != "/" {
		key = append(key, parent...)
	}
	return append(key, 0)
}

// split returns the parent's path and the name; the root is its own parent and has no name.
func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/", path[i+1:]
	}
	return path[:i], path[i+1:]
}

// maxPath is the longest path in bytes; the file takes keys of 32 KiB.
const maxPath = 16 << 10

// ValidPath says whether a path is "/" or "/name/name" and not too long.
func ValidPath(path string) bool {
	if path == "/" {
		return true
	}
	return path != "" && len(path) <= maxPath && path[0] == '/' && path[len(path)-1] != '/' &&
		!strings.Contains(path, "//") && !strings.Contains(path, "\x00")
}

const (
	versionSize = 4
	bornSize    = 8
	hasBorn     = 1 << 31
)

func decodeNode(value []byte) (node, error) {
	if len(value) < versionSize {
		return node{}, errors.New("value is too short")
	}
	head := binary.BigEndian.Uint32(value)
	n := node{version: int32(head &^ hasBorn), data: value[versionSize:]}
	if head&hasBorn != 0 {
		if len(n.data) < bornSize {
			return node{}, errors.New("value is too short")
		}
		n.born, n.data = int64(binary.BigEndian.Uint64(n.data)), n.data[bornSize:]
	}
	return n, nil
}

func encodeNode(n node) []byte {
	value := make([]byte, 0, versionSize+bornSize+len(n.data))
	head := uint32(n.version) &^ hasBorn
	if n.born == 0 {
		value = binary.BigEndian.AppendUint32(value, head)
	} else {
		value = binary.BigEndian.AppendUint32(value, head|hasBorn)
		value = binary.BigEndian.AppendUint64(value, uint64(n.born))
	}
	return append(value, n.data...)
}

// persistent reads a node of the file. The data is a copy.
func (s *stage) persistent(path string) (node, bool) {
	var value []byte
	if s.bucket != nil {
		value = s.bucket.Get(keyOf(path))
	}
	n, err := decodeNode(value)
	if value == nil || err != nil {
		return node{}, path == "/" // the root is there from the beginning
	}
	n.data = bytes.Clone(n.data)
	return n, true
}

// persistentChildren calls f for each child's name until it returns false.
func (s *stage) persistentChildren(path string, f func(name string) bool) {
	if s.bucket == nil {
		return
	}
	prefix := childPrefix(path)
	c := s.bucket.Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		if name := string(k[len(prefix):]); name != "" && !f(name) {
			return
		}
	}
}

// get returns a node and how long it lives.
func (s *stage) get(path string) (n node, life Kind, ok bool) {
	if changed, there := s.overlay[path]; there {
		if changed != nil {
			return *changed, Ephemeral, true
		}
	} else if n, ok = s.ephemeral[path]; ok {
		return n, Ephemeral, true
	}
	n, ok = s.persistent(path)
	return n, Persistent, ok
}

func (s *stage) hasChildren(path string) bool {
	found := false
	s.persistentChildren(path, func(string) bool {
		found = true
		return false
	})
	for p := range s.ephemeral {
		parent, _ := split(p)
		if _, changed := s.overlay[p]; parent == path && !changed {
			found = true
		}
	}
	for p, n := range s.overlay {
		if parent, _ := split(p); parent == path && n != nil {
			found = true
		}
	}
	return found
}

// apply does all ops; at the first that fails the transaction must be given up.
func (s *stage) apply(ops []Op) error {
	for i, op := range ops {
		if err := s.do(op); err != nil {
			if len(ops) == 1 {
				return fmt.Errorf("%s %s: %w", op.kind, op.path, err)
			}
			return fmt.Errorf("op %d, %s %s: %w", i, op.kind, op.path, err)
		}
	}
	return nil
}

func (s *stage) do(op Op) error {
	if op.life == Sequential {
		if !ValidPath(op.path + sequenceText(0)) {
			return ErrBadPath
		}
		op.path = s.sequence(op.path)
	}
	if !ValidPath(op.path) {
		return ErrBadPath
	}
	n, life, ok := s.get(op.path)
	if op.kind == OpCreate {
		if ok {
			return ErrNodeExists
		}
		return s.create(op)
	}
	switch {
	case !ok:
		return ErrNoNode
	case op.version != AnyVersion && op.version != n.version:
		return fmt.Errorf("%w: %d, not %d", ErrBadVersion, n.version, op.version)
	}
	switch op.kind {
	case OpSet:
		return s.put(op.path, node{version: n.version + 1, born: n.born, data: op.data}, life)
	case OpDelete:
		if op.path == "/" {
			return ErrBadPath
		}
		if s.hasChildren(op.path) {
			return ErrNotEmpty
		}
		return s.remove(op.path, life)
	}
	return nil
}

func (s *stage) create(op Op) error {
	parent, _ := split(op.path)
	_, life, ok := s.get(parent)
	switch {
	case !ok:
		return fmt.Errorf("parent %s: %w", parent, ErrNoNode)
	case life == Ephemeral:
		return fmt.Errorf("%w: parent %s is ephemeral", ErrBadPath, parent)
	}
	s.changed = append(s.changed, parent)
	if op.life == Sequential {
		if err := s.nextSequence(op.path); err != nil {
			return err
		}
	}
	return s.put(op.path, node{born: s.born, data: op.data}, op.life)
}

func (s *stage) put(path string, n node, life Kind) error {
	s.changed = append(s.changed, path)
	if life == Ephemeral {
		n.data = bytes.Clone(n.data)
		s.overlay[path] = &n
		return nil
	}
	return s.bucket.Put(keyOf(path), encodeNode(n))
}

func (s *stage) remove(path string, life Kind) error {
	parent, _ := split(path)
	s.changed = append(s.changed, path, parent)
	if life == Ephemeral {
		s.overlay[path] = nil
		return nil
	}
	if err := s.counters.Delete([]byte(path)); err != nil {
		return err
	}
	return s.bucket.Delete(keyOf(path))
}
