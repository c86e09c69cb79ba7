package metamove

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"gregor/broker/controller"
	"gregor/broker/meta"
)

// ErrConflict is a target that says something else.
var ErrConflict = errors.New("the target has other metadata")

// ErrNoCluster is a source without a cluster.
var ErrNoCluster = errors.New("there is no metadata to be moved")

// Plan is what is to be written into a target.
type Plan struct {
	ClusterID string
	Topics    int
	// Create are nodes that the target does not have, parents first. Set are those that it has without content, or with a number that is to grow.
	Create, Set []Node
	// Delete are those of a target that was moved away which there are no more, children first.
	Delete []string
	// Same are those that are there already.
	Same int
	// Unmark says that the target was itself moved away, and is the one that counts from now on.
	Unmark bool
}

// Changes is how many nodes of the target change.
func (p *Plan) Changes() int { return len(p.Create) + len(p.Set) + len(p.Delete) }

// NewPlan compares nodes with a target. An ErrConflict names the first nodes that the target has with other content.
func NewPlan(ctx context.Context, nodes []Node, target meta.Tree) (*Plan, error) {
	p := &Plan{}
	if err := p.look(ctx, nodes, target); err != nil {
		return nil, err
	}
	there := make([]Node, len(nodes))
	missing := make([]bool, len(nodes))
	err := controller.InParallel(len(nodes), func(i int) error {
		data, _, err := target.Get(ctx, nodes[i].Path)
		missing[i] = errors.Is(err, meta.ErrNoNode)
		if missing[i] {
			return nil
		}
		there[i] = Node{nodes[i].Path, data}
		return err
	})
	if err != nil {
		return nil, err
	}
	var conflicts []string
	for i, n := range nodes {
		switch {
		case missing[i]:
			p.Create = append(p.Create, n)
		case bytes.Equal(n.Data, there[i].Data):
			p.Same++
		case p.Unmark || len(there[i].Data) == 0 || grows(n, there[i]):
			p.Set = append(p.Set, n)
		case !grows(there[i], n):
			conflicts = append(conflicts, fmt.Sprintf("%s is %.100q and would be %.100q", n.Path, there[i].Data, n.Data))
		}
	}
	if len(conflicts) > 0 {
		return nil, fmt.Errorf("%w: %d nodes differ: %s", ErrConflict, len(conflicts), strings.Join(conflicts[:min(len(conflicts), 3)], "; "))
	}
	return p, nil
}

// look finds out what is moved, and whether the target was moved away.
func (p *Plan) look(ctx context.Context, nodes []Node, target meta.Tree) error {
	given := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		given[n.Path] = true
		if strings.HasPrefix(n.Path, meta.TopicsPath+"/") && strings.Count(n.Path, "/") == 3 {
			p.Topics++
		}
		if n.Path == meta.ClusterIDPath {
			var err error
			if p.ClusterID, err = meta.DecodeClusterID(n.Data); err != nil {
				return err
			}
		}
	}
	if p.ClusterID == "" {
		return ErrNoCluster
	}
	to, err := Moved(ctx, target)
	if err != nil || to == "" {
		return err
	}
	old, err := Read(ctx, target)
	if err != nil {
		return err
	}
	for i := len(old) - 1; i >= 0; i-- {
		n := old[i]
		if n.Path == meta.ClusterIDPath {
			if id, err := meta.DecodeClusterID(n.Data); err != nil || id != p.ClusterID {
				return fmt.Errorf("%w: it is of cluster %s, not %s", ErrConflict, id, p.ClusterID)
			}
		}
		if !given[n.Path] && !strings.HasPrefix(MovedPath, n.Path+"/") {
			p.Delete = append(p.Delete, n.Path)
		}
	}
	p.Unmark = true
	return nil
}

// grows says that a node is one whose number may only grow, and does.
func grows(to, from Node) bool {
	switch to.Path {
	case meta.ControllerEpochPath:
		a, errA := meta.DecodeEpoch(from.Data)
		b, errB := meta.DecodeEpoch(to.Data)
		return errA == nil && errB == nil && b > a
	case meta.ProducerIDBlockPath:
		a, errA := meta.DecodeProducerIDBlock(from.Data)
		b, errB := meta.DecodeProducerIDBlock(to.Data)
		return errA == nil && errB == nil && b.End > a.End
	}
	return false
}

// Limits of one step: ZooKeeper takes 1 MiB (jute.maxbuffer).
const (
	stepOps   = 500
	stepBytes = 256 << 10
)

// Write carries a plan out: in one step when the target takes that, else the cluster's id last. After an error it may be made and carried out anew.
func (p *Plan) Write(ctx context.Context, target meta.Tree, oneStep bool) error {
	var ops []meta.Op
	size := 0
	flush := func() error {
		if len(ops) == 0 {
			return nil
		}
		err := target.Multi(ctx, ops...)
		ops, size = nil, 0
		return err
	}
	add := func(op meta.Op) error {
		ops = append(ops, op)
		if size += len(op.Path()) + len(op.Data()); oneStep || len(ops) < stepOps && size < stepBytes {
			return nil
		}
		return flush()
	}
	for _, path := range p.Delete {
		if err := add(meta.DeleteOp(path, meta.AnyVersion)); err != nil {
			return err
		}
	}
	var last []meta.Op // the cluster's id makes it a cluster
	for _, n := range p.Create {
		op := meta.CreateOp(n.Path, n.Data, meta.Persistent)
		if n.Path == meta.ClusterIDPath {
			last = append(last, op)
		} else if err := add(op); err != nil {
			return err
		}
	}
	for _, n := range p.Set {
		if err := add(meta.SetOp(n.Path, n.Data, meta.AnyVersion)); err != nil {
			return err
		}
	}
	if p.Unmark {
		last = append(last, meta.DeleteOp(MovedPath, meta.AnyVersion))
	}
	if !oneStep {
		if err := flush(); err != nil {
			return err
		}
	}
	ops = append(ops, last...)
	return flush()
}
