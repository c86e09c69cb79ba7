package controller

import (
	"context"
	"errors"
	"fmt"

	"gregor/broker/meta"
)

// sameCluster keeps a broker out of a tree that became another's while it ran: topics that are not in it would be forgotten, and others of the same
// names be mixed with the data here.
func (c *Controller) sameCluster(ctx context.Context) error {
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
