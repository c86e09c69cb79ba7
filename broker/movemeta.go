package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gregor/broker/adopt"
	"gregor/broker/config"
	"gregor/broker/meta"
	"gregor/broker/metamove"
	"gregor/log/logdir"
	"gregor/log/vfs"
)

// MetadataTools reads and moves the metadata of a stopped broker with these settings (gregor meta).
type MetadataTools struct {
	// Layers are the settings, the strongest first, as in Config.
	Layers []config.Layer
	Logger *slog.Logger // nil: discard
}

// Moved says what a move did, or would do.
type Moved struct {
	*metamove.Plan
	From, To string
}

// View calls do with the tree that a broker with these settings would use: ZooKeeper's if zookeeper.connect is set, else the one in the data directory, whose
// broker must be stopped.
func (m *MetadataTools) View(ctx context.Context, do func(meta.Tree) error) error {
	conf, _, err := config.NewServer(m.Layers...)
	if err != nil {
		return err
	}
	if conf.ZooKeeper.Connect == "" {
		return m.embedded(conf, false, do)
	}
	return m.shared(ctx, conf, do)
}

// Export moves the metadata from the data directory into ZooKeeper, Import from there into the data directory. Without carryOut they say what would
// change. The broker must be stopped; ErrRunning says that it is not.
func (m *MetadataTools) Export(ctx context.Context, carryOut bool) (Moved, error) {
	return m.move(ctx, carryOut, true)
}

// Import: see Export. The data directory's broker must have all replicas.
func (m *MetadataTools) Import(ctx context.Context, carryOut bool) (Moved, error) {
	return m.move(ctx, carryOut, false)
}

// ErrRunning is metadata that brokers use.
var ErrRunning = errors.New("stop the brokers first")

func (m *MetadataTools) move(ctx context.Context, carryOut, export bool) (done Moved, err error) {
	conf, _, err := config.NewServer(m.Layers...)
	if err != nil {
		return done, err
	}
	if conf.ZooKeeper.Connect == "" {
		return done, errors.New("name the ZooKeeper: --zookeeper HOST:PORT/PATH, or zookeeper.connect in the configuration")
	}
	err = m.embedded(conf, !export && carryOut, func(local meta.Tree) error {
		return m.shared(ctx, conf, func(shared meta.Tree) error {
			if ids, err := shared.Children(ctx, meta.BrokersPath); err == nil && len(ids) > 0 {
				return fmt.Errorf("%w: brokers %s are registered in ZooKeeper at %s", ErrRunning, strings.Join(ids, ", "), conf.ZooKeeper.Connect)
			}
			done.From, done.To = conf.LogDir, "ZooKeeper at "+conf.ZooKeeper.Connect
			if export {
				return done.carry(ctx, local, shared, carryOut, false)
			}
			done.From, done.To = done.To, done.From
			if err := allHere(ctx, conf, shared); err != nil {
				return err
			}
			return done.carry(ctx, shared, local, carryOut, true)
		})
	})
	return done, err
}

// carry makes the plan and, if asked, carries it out. What is marked last is no broker's any more.
func (d *Moved) carry(ctx context.Context, from, to meta.Tree, carryOut, oneStep bool) error {
	where, err := metamove.Moved(ctx, from)
	if err != nil {
		return err
	}
	if where != "" && where != d.To {
		return fmt.Errorf("the metadata of %s was moved to %s before, and is old", d.From, where)
	}
	nodes, err := metamove.Read(ctx, from)
	if err != nil {
		return err
	}
	if d.Plan, err = metamove.NewPlan(ctx, nodes, to); err != nil || !carryOut {
		return err
	}
	if err := d.Write(ctx, to, oneStep); err != nil {
		return fmt.Errorf("writing to %s: %w", d.To, err)
	}
	return metamove.Mark(ctx, from, d.To)
}

// allHere refuses to bring home partitions whose replicas are on other brokers: nobody would lead them.
func allHere(ctx context.Context, conf *config.Server, tree meta.Tree) error {
	id := conf.NodeID
	if found, err := logdir.IdentityOf(vfs.OS(), conf.LogDir); err != nil {
		return err
	} else if found.BrokerID >= 0 {
		id = found.BrokerID
	}
	names, err := tree.Children(ctx, meta.TopicsPath)
	if err != nil && !isNoNode(err) {
		return err
	}
	for _, name := range names {
		data, _, err := tree.Get(ctx, meta.TopicPath(name))
		if err != nil {
			return err
		}
		n, err := meta.DecodeTopic(data)
		if err != nil {
			return fmt.Errorf("topic %s: %w", name, err)
		}
		for p, replicas := range n.Replicas {
			if !slices.Equal(replicas, []int32{id}) {
				return fmt.Errorf("partition %s-%d is on brokers %v, not on %d alone: it cannot be brought to one broker", name, p, replicas, id)
			}
		}
	}
	return nil
}

// embedded calls do with the tree in the data directory. With make it may be a new one.
func (m *MetadataTools) embedded(conf *config.Server, mayMake bool, do func(meta.Tree) error) error {
	file := filepath.Join(conf.LogDir, meta.FileName)
	_, err := os.Stat(file)
	isNew := errors.Is(err, fs.ErrNotExist)
	if isNew && mayMake {
		err = nil
	}
	if isNew && !mayMake {
		if _, e := os.Stat(conf.LogDir); e == nil && conf.ZooKeeper.Connect != "" {
			return do(emptyTree{}) // a dry run into a directory that has none yet, or nothing to export
		}
		return fmt.Errorf("%s has no metadata of gregor; name its data directory, the first of log.dirs: %w", conf.LogDir, err)
	}
	if err != nil {
		return err
	}
	release, err := adopt.Lock(adopt.Options{FS: vfs.OS(), Dirs: conf.LogDirs})
	if err != nil {
		return err
	}
	defer release()
	tree, err := meta.OpenLocal(file)
	if err != nil {
		return err
	}
	return errors.Join(do(tree), tree.Close())
}

// shared calls do with the tree in ZooKeeper.
func (m *MetadataTools) shared(ctx context.Context, conf *config.Server, do func(meta.Tree) error) error {
	tree, err := openZooKeeper(ctx, conf, m.Logger)
	if err != nil {
		return err
	}
	return errors.Join(do(tree), tree.Close())
}

// emptyTree has nothing.
type emptyTree struct{ meta.Tree }

func (emptyTree) Get(_ context.Context, path string) ([]byte, int32, error) {
	return nil, 0, fmt.Errorf("read %s: %w", path, meta.ErrNoNode)
}

func (emptyTree) Children(_ context.Context, path string) ([]string, error) {
	return nil, fmt.Errorf("list %s: %w", path, meta.ErrNoNode)
}

// checkMoved refuses metadata that was moved away: what is there is old.
func checkMoved(ctx context.Context, tree meta.Tree, where string) error {
	to, err := metamove.Moved(ctx, tree)
	if err != nil || to == "" {
		return err
	}
	return fmt.Errorf("the metadata in %s was moved to %s and is old: use that, or bring it back with gregor meta import or export", where, to)
}
