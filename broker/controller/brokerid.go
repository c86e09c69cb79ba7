package controller

import (
	"context"
	"errors"

	"gregor/broker/meta"
)

// NextBrokerID is an id that no broker of the cluster has got this way, above the reserved ones: as in Kafka, the version of a node that is written for
// each, and made in a new cluster.
func NextBrokerID(ctx context.Context, tree meta.Tree, reserved int32) (int32, error) {
	for {
		_, version, err := tree.Get(ctx, meta.BrokerSequencePath)
		if errors.Is(err, meta.ErrNoNode) {
			if err = meta.EnsureRoot(ctx, tree); err != nil && !errors.Is(err, meta.ErrNodeExists) {
				return -1, err
			}
			continue
		}
		if err != nil {
			return -1, err
		}
		err = tree.Multi(ctx, meta.SetOp(meta.BrokerSequencePath, nil, version))
		if err == nil {
			return reserved + version + 1, nil
		}
		if !errors.Is(err, meta.ErrBadVersion) { // another broker was quicker
			return -1, err
		}
	}
}
