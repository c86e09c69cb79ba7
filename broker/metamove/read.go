package metamove

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"gregor/broker/controller"
	"gregor/broker/meta"
)

const (
	// MovedPath marks a tree that was moved. It holds where to.
	MovedPath  = markParent + "/moved"
	markParent = "/gregor"
)

// Node is one node of a tree.
type Node struct {
	Path string
	Data []byte
}

// Read returns the nodes of a tree that outlive sessions, parents before children. Left out are brokers and the controller that live, consumers of
// Kafka 0.8 that do, notifications, a mark of an earlier move, and what belongs to ZooKeeper itself.
func Read(ctx context.Context, tree meta.Tree) ([]Node, error) {
	var all []Node
	level := []string{"/"}
	for len(level) > 0 {
		var mu sync.Mutex
		var next []string
		err := controller.InParallel(len(level), func(i int) error {
			node, children, err := read(ctx, tree, level[i])
			if errors.Is(err, meta.ErrNoNode) {
				return nil // gone meanwhile: somebody writes to the tree
			}
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if node.Path != "/" {
				all = append(all, node)
			}
			next = append(next, children...)
			return nil
		})
		if err != nil {
			return nil, err
		}
		level = next
	}
	slices.SortFunc(all, func(a, b Node) int { return strings.Compare(a.Path, b.Path) })
	return withoutMarksParent(all), nil
}

// withoutMarksParent drops the parent of MovedPath where that has nothing but the mark.
func withoutMarksParent(all []Node) []Node {
	for i, n := range all {
		if n.Path == markParent {
			if i+1 < len(all) && strings.HasPrefix(all[i+1].Path, markParent+"/") {
				break
			}
			return slices.Delete(all, i, i+1)
		}
	}
	return all
}

// read reads one node and lists the children that are moved.
func read(ctx context.Context, tree meta.Tree, path string) (node Node, children []string, err error) {
	node.Path = path
	if node.Data, _, err = tree.Get(ctx, path); err != nil {
		return node, nil, err
	}
	names, err := tree.Children(ctx, path)
	if err != nil {
		return node, nil, err
	}
	parent := strings.TrimSuffix(path, "/")
	for _, name := range names {
		if child := parent + "/" + name; moved(child) {
			children = append(children, child)
		}
	}
	return node, children, nil
}

// moved says whether a node, and what is below it, outlives the sessions of those who made it.
func moved(path string) bool {
	switch path {
	case meta.ControllerPath, MovedPath, "/zookeeper":
		return false
	}
	parent := path[:strings.LastIndexByte(path, '/')]
	switch parent {
	case meta.BrokersPath, meta.ConfigChangesPath, meta.ISRChangesPath, meta.LogDirEventsPath:
		return false
	}
	part := strings.Split(path, "/")
	if len(part) >= 5 && part[1] == "consumers" { // /consumers/GROUP/ids/CONSUMER, /consumers/GROUP/owners/TOPIC/PARTITION
		return part[3] != "ids" && part[3] != "owners"
	}
	return true
}

// Moved says where a tree was moved to, "" when it was not.
func Moved(ctx context.Context, tree meta.Tree) (string, error) {
	data, _, err := tree.Get(ctx, MovedPath)
	if errors.Is(err, meta.ErrNoNode) {
		return "", nil
	}
	return string(data), err
}

// Mark says in a tree where it was moved to.
func Mark(ctx context.Context, tree meta.Tree, to string) error {
	for _, op := range []meta.Op{meta.CreateOp(markParent, nil, meta.Persistent), meta.CreateOp(MovedPath, []byte(to), meta.Persistent)} {
		err := tree.Multi(ctx, op)
		if errors.Is(err, meta.ErrNodeExists) {
			err = nil
			if op.Path() == MovedPath {
				err = tree.Multi(ctx, meta.SetOp(MovedPath, []byte(to), meta.AnyVersion))
			}
		}
		if err != nil {
			return fmt.Errorf("marking the old metadata: %w", err)
		}
	}
	return nil
}
