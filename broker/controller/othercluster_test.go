package controller

import (
	"errors"
	"testing"

	"gregor/broker/meta"
)

// TestRegisterInAnotherCluster: a broker whose tree was emptied, or filled by others, while it ran does not come back into it.
func TestRegisterInAnotherCluster(t *testing.T) {
	tree := openTree(t, treeFile(t))
	conf := testConfig()
	conf.Shared = true
	c, err := Open(t.Context(), tree, conf)
	must(t, err)
	must(t, c.Register(t.Context(), nil))
	node := meta.BrokerPath(conf.BrokerID)
	for _, op := range []meta.Op{
		meta.SetOp(meta.ClusterIDPath, meta.EncodeClusterID(FormatID(NewID())), meta.AnyVersion),
		meta.DeleteOp(meta.ClusterIDPath, meta.AnyVersion),
	} {
		if exists(t, tree, node) {
			must(t, tree.Multi(t.Context(), meta.DeleteOp(node, meta.AnyVersion)))
		}
		must(t, tree.Multi(t.Context(), op))
		if err := c.Register(t.Context(), nil); !errors.Is(err, ErrOtherCluster) || exists(t, tree, node) {
			t.Errorf("registered in a tree that is another's: %v", err)
		}
	}
	must(t, tree.Multi(t.Context(), meta.CreateOp(meta.ClusterIDPath, meta.EncodeClusterID(c.ClusterID()), meta.Persistent)))
	must(t, c.Register(t.Context(), nil))
}
