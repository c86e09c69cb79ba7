package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"gregor/broker/adopt"
	"gregor/broker/config"
	"gregor/broker/controller"
	"gregor/broker/meta"
	"gregor/log/logdir"
	"gregor/log/vfs"
)

// A data directory without metadata of ours, but with logs, is one of Apache Kafka: its topics are taken over at the first start, all or
// none. What was found is checked before anything is written, and written to the tree in one step.

// planAdoption looks at data directories that have no metadata yet. The plan is nil when there is nothing to take over.
func (b *Broker) planAdoption(ctx context.Context, locked bool) (*adopt.Plan, error) {
	o := adopt.Options{FS: b.fs, CheckConfig: config.ValidateTopic, Locked: locked}
	for _, dir := range b.conf.LogDirs {
		if _, err := b.fs.Stat(dir); !errors.Is(err, fs.ErrNotExist) { // those that are missing will be made
			o.Dirs = append(o.Dirs, dir)
		}
	}
	if empty, err := adopt.Empty(o); empty || err != nil {
		return nil, err
	}
	plan, err := adopt.Inspect(ctx, o)
	if err != nil {
		return nil, err
	}
	return plan, plan.Err()
}

// lookForKafka makes the plan when there is no metadata file: what stands in the way is said before anything is made.
func (b *Broker) lookForKafka(ctx context.Context) (*adopt.Plan, error) {
	if b.conf.ZooKeeper.Connect != "" {
		return nil, nil // the topics are there
	}
	if _, err := os.Stat(b.metaFile()); !errors.Is(err, fs.ErrNotExist) {
		return nil, nil // whatever else is wrong, opening it will say
	}
	return b.planAdoption(ctx, false)
}

// adoptInto fills a new tree from the plan. A tree that is new although its file was there is from a start that ended before it was filled.
func (b *Broker) adoptInto(ctx context.Context, tree meta.Tree, plan *adopt.Plan, clusterID string) error {
	isNew, err := controller.IsNew(ctx, tree)
	if err != nil || !isNew {
		return err
	}
	if plan == nil {
		if plan, err = b.planAdoption(ctx, true); plan == nil || err != nil {
			return err
		}
	}
	adoption := plan.Adoption()
	adoption.ClusterID = clusterID // with none in the directory, the one that it just got
	if err := controller.Adopt(ctx, tree, b.nodeID, adoption); err != nil {
		return err
	}
	logAdoption(b.logger, plan)
	return nil
}

func logAdoption(logger *slog.Logger, plan *adopt.Plan) {
	partitions := 0
	for i := range plan.Topics {
		partitions += len(plan.Topics[i].Partitions)
	}
	logger.Warn("no metadata of ours ("+meta.FileName+") in the data directory: its topics are taken over, as from Apache Kafka; if gregor wrote it, put that file back, "+
		"or settings of topics and quotas are lost", "topics", len(plan.Topics), "partitions", partitions,
		"kraft", plan.KRaft, "next producer id", plan.NextProducerID)
	for _, text := range plan.Notes {
		logger.Info("taking over", "note", text)
	}
	for _, text := range plan.Lost {
		logger.Warn("not carried over", "what", text)
	}
}

// Import says what data directories of a stopped Apache Kafka are taken over, and how.
type Import struct {
	// Dirs are Kafka's log.dirs, the first of which gets the metadata.
	Dirs []string
	// Configs has the topics' configurations, nil for none: see adopt.ReadConfigs.
	Configs io.Reader
	// DryRun only looks. Quick does not read every segment. AllowMissing begins partitions that are not there empty.
	DryRun, Quick, AllowMissing bool
	// NodeID is the broker's id where the directories have none; -1 is 0.
	NodeID int32
	// FS is the file system, nil for the real one.
	FS vfs.FS
}

// ErrImported is an import into directories that have metadata of ours.
var ErrImported = errors.New("the directory has metadata of gregor already")

// ImportKafka looks at the directories and, unless something stands in the way, writes their topics into the metadata in the first of them. The
// plan is what was found, also with an error that is a *adopt.BlockedError.
func ImportKafka(ctx context.Context, i Import) (*adopt.Plan, error) {
	if i.FS == nil {
		i.FS = vfs.OS()
	}
	if len(i.Dirs) == 0 {
		return nil, errors.New("no directory is named")
	}
	file := filepath.Join(i.Dirs[0], meta.FileName)
	if _, err := os.Stat(file); err == nil {
		return nil, fmt.Errorf("%w: %s; gregor serve takes it as it is", ErrImported, file)
	}
	o := adopt.Options{FS: i.FS, Dirs: i.Dirs, CheckConfig: config.ValidateTopic, Full: !i.Quick, AllowMissing: i.AllowMissing}
	if i.Configs != nil {
		var err error
		if o.Configs, err = adopt.ReadConfigs(i.Configs); err != nil {
			return nil, err
		}
	}
	plan, err := adopt.Inspect(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := plan.Err(); err != nil || i.DryRun {
		return plan, err
	}
	release, err := adopt.Lock(o)
	if err != nil {
		return plan, err
	}
	defer release()
	return plan, i.carryOut(ctx, plan, file)
}

// carryOut writes what the plan says: who the directories belong to, where they do not say so, then the metadata, in one step.
func (i *Import) carryOut(ctx context.Context, plan *adopt.Plan, file string) error {
	adoption := plan.Adoption()
	node := plan.NodeID
	if node < 0 {
		node = max(i.NodeID, 0)
	}
	if adoption.ClusterID == "" {
		adoption.ClusterID = controller.FormatID(controller.NewID())
	}
	for _, d := range plan.Dirs {
		if d.Identity.ClusterID != "" && d.Identity.BrokerID >= 0 {
			continue
		}
		id := d.Identity
		id.Version, id.BrokerID, id.ClusterID = max(id.Version, 0), node, adoption.ClusterID
		if err := logdir.WriteIdentity(i.FS, d.Path, id, time.Now()); err != nil {
			return err
		}
	}
	tree, err := meta.OpenLocal(file)
	if err != nil {
		return err
	}
	return errors.Join(controller.Adopt(ctx, tree, node, adoption), tree.Close())
}
