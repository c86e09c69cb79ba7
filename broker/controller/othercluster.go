package controller

import (
	"context"
	"errors"
	"fmt"

	"gregor/broker/meta"
)

// SameCluster is nil while the tree is that of the broker's cluster, and else ErrOtherCluster. It keeps a broker out of a tree that was emptied, or
// became another's, while it ran: its topics are not in it, their settings neither, and others of the same names would be mixed with the data here.
func (c *Controller) SameCluster(ctx context.Context) error {
	data, _, err := c.tree.Get(ctx, meta.ClusterIDPath)
	if errors.Is(err, meta.ErrNoNode) {
		return fmt.Errorf("%w: %s is gone, and this broker is of cluster %s; bring the metadata back", ErrOtherCluster, meta.ClusterIDPath, c.clusterID)
	}
	if err != nil {
		return err
	}
	id, err := meta.DecodeClusterID(data)
	if err == nil && id != c.clusterID {
		return fmt.Errorf("%w: it is of cluster %s, and this broker of cluster %s; bring the metadata of that one back", ErrOtherCluster, id, c.clusterID)
	}
	return at(meta.ClusterIDPath, err)
}
