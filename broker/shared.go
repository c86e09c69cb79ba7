package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"gregor/broker/adopt"
	"gregor/broker/config"
	"gregor/broker/controller"
	"gregor/broker/meta"
	"gregor/broker/meta/zk"
	"gregor/broker/peers"
	"gregor/log/logdir"
)

// The start on ZooKeeper. The tree is opened before the data directory, which it tells whose it is to be; the broker registers when it listens; and it
// leads nothing before the controller, be it this broker or another, has said so.

// openShared opens the tree of zookeeper.connect, if that is set, and returns what the data directory must be of: the cluster, "" for a new one, and the
// broker's id, -1 for whatever the directory says.
func (b *Broker) openShared(ctx context.Context) (clusterID string, nodeID int32, err error) {
	nodeID = b.conf.NodeID
	if b.conf.ZooKeeper.Connect == "" {
		return "", nodeID, nil
	}
	opened, err := openZooKeeper(ctx, b.conf, b.levels.Logger(logOfController))
	if err != nil {
		return "", nodeID, err
	}
	tree := patientTree{opened}
	b.tree = tree
	b.steward = newSteward(b, tree)
	b.share(true)
	if err := checkMoved(ctx, tree, b.Metadata()); err != nil {
		return "", nodeID, err
	}
	data, _, err := tree.Get(ctx, meta.ClusterIDPath)
	if isNoNode(err) {
		err = b.refuseToForget()
		if err == nil {
			nodeID, err = b.identity(ctx)
		}
		return "", nodeID, err
	}
	if err == nil {
		clusterID, err = meta.DecodeClusterID(data)
	}
	if err != nil {
		return "", nodeID, fmt.Errorf("reading %s: %w", meta.ClusterIDPath, err)
	}
	nodeID, err = b.identity(ctx)
	return clusterID, nodeID, err
}

// openZooKeeper begins a session with the ZooKeeper of the settings.
func openZooKeeper(ctx context.Context, conf *config.Server, logger *slog.Logger) (*zk.Tree, error) {
	z := &conf.ZooKeeper
	secure, err := zookeeperTLS(z.TLS)
	if err != nil {
		return nil, err
	}
	return zk.Open(ctx, zk.Options{
		Connect: z.Connect, SessionTimeout: z.SessionTimeout, ConnectTimeout: z.ConnectionTimeout, SetACL: z.SetACL, Digest: z.Digest, TLS: secure, Logger: logger,
	})
}

// identity is the broker's id: broker.id, or -1 when a log directory says it. When neither does, it is the next one of the cluster.
func (b *Broker) identity(ctx context.Context) (int32, error) {
	if b.conf.NodeID >= 0 {
		return b.conf.NodeID, nil
	}
	for _, dir := range b.conf.LogDirs {
		if id, err := logdir.IdentityOf(b.fs, dir); err != nil || id.BrokerID >= 0 {
			return -1, err
		}
	}
	if !b.conf.ZooKeeper.GenerateID {
		return -1, errors.New("broker.id is not set, the log directories are new, and broker.id.generation.enable=false: set broker.id")
	}
	id, err := controller.NextBrokerID(ctx, b.tree, b.conf.ZooKeeper.ReservedIDs)
	if err != nil {
		return -1, fmt.Errorf("generating a broker.id: %w", err)
	}
	b.logger.Info("broker.id is generated", "broker.id", id)
	return id, nil
}

// Metadata says where the topics and settings are: a file, or ZooKeeper.
func (b *Broker) Metadata() string {
	if connect := b.conf.ZooKeeper.Connect; connect != "" {
		return "ZooKeeper at " + connect
	}
	return b.metaFile()
}

// refuseToForget is for a ZooKeeper without a cluster: it is not the one that the topics in the log directories are known to.
func (b *Broker) refuseToForget() error {
	const text = "zookeeper.connect=%s has no cluster, and %s has topics: "
	connect := b.conf.ZooKeeper.Connect
	if _, err := os.Stat(b.metaFile()); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf(text+"bring them over with gregor meta export, or use an empty data directory", connect, b.metaFile())
	}
	for _, dir := range b.conf.LogDirs {
		empty, err := adopt.Empty(adopt.Options{FS: b.fs, Dirs: []string{dir}})
		if err != nil {
			return err
		}
		if !empty {
			return fmt.Errorf(text+"correct the path behind the servers, or bring ZooKeeper's data back; for a new cluster use empty log directories", connect, dir)
		}
	}
	return nil
}

// openSharedMetadata reads the tree. The directory is locked. Nobody leads anything yet.
func (b *Broker) openSharedMetadata(ctx context.Context, d *logdir.Set) ([]controller.Topic, error) {
	var err error
	if b.control, err = controller.Open(ctx, b.tree, b.controllerConfig(d)); err != nil {
		return nil, err
	}
	b.lookAround(noLeader)
	topics, err := b.readMetadata(ctx)
	for i := range topics {
		for n := range topics[i].Partitions {
			if p := &topics[i].Partitions[n]; p.Leader == b.nodeID {
				p.Leader = noLeader
			}
		}
	}
	return topics, err
}

// knownTopicID is the id of a topic in the catalog, or in the directory of one of its partitions.
func (b *Broker) knownTopicID(name string, partitions int) (id [16]byte) {
	if t := b.topics.name(name); t != nil && t.id != id {
		return t.id
	}
	if b.dir == nil { // not before the directories are open
		return id
	}
	for n := range partitions {
		if found, ok := b.dir.Get(logdir.TopicPartition{Topic: name, Partition: int32(n)}); ok {
			return found.TopicID()
		}
	}
	return id
}

// registered are the endpoints that other brokers and tools are told of: those of advertised.listeners, or where this broker listens.
func (b *Broker) registered() []meta.Endpoint {
	endpoints := b.endpoints()
	if len(b.settings().Advertised) > 0 {
		return endpoints
	}
	bound := b.listeners.get()
	for i := range endpoints {
		e := &endpoints[i]
		if ip := net.ParseIP(e.Host); e.Host == "" || ip != nil && ip.IsUnspecified() {
			if name, err := os.Hostname(); err == nil {
				e.Host = name
			}
		}
		if i >= len(bound) {
			break // they are being changed; the change registers anew
		}
		if _, port, err := net.SplitHostPort(bound[i].addr.String()); err == nil {
			n, _ := strconv.ParseInt(port, 10, 32) // it is the one that is listened on
			e.Port = int32(n)
		}
	}
	return endpoints
}

// dialer connects to other brokers.
func (b *Broker) dialer() peers.Dialer {
	return peers.Dialer{ClientID: strconv.Itoa(int(b.nodeID))}
}

// treePatience is how long a call waits for ZooKeeper, so that a client hears that it is away, and others are not kept waiting behind it.
const treePatience = 5 * time.Second

// patientTree is a shared tree whose calls do not wait for ever. A change that was given up may have been made all the same: the steward finds it.
type patientTree struct{ sharedTree }

func (t patientTree) Get(ctx context.Context, path string) (data []byte, version int32, err error) {
	ctx, cancel := context.WithTimeout(ctx, treePatience)
	defer cancel()
	return t.sharedTree.Get(ctx, path)
}

func (t patientTree) Children(ctx context.Context, path string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, treePatience)
	defer cancel()
	return t.sharedTree.Children(ctx, path)
}

func (t patientTree) Multi(ctx context.Context, ops ...meta.Op) error {
	ctx, cancel := context.WithTimeout(ctx, treePatience)
	defer cancel()
	return t.sharedTree.Multi(ctx, ops...)
}

// Watch gives up what cannot be set. A watch that is set lives as long as its context.
func (t patientTree) Watch(ctx context.Context, path string) (<-chan meta.Event, error) {
	setting, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(treePatience, func() { cancel(context.DeadlineExceeded) })
	events, err := t.sharedTree.Watch(setting, path)
	if timer.Stop() && err == nil {
		return events, nil
	}
	cancel(nil)
	if err == nil || ctx.Err() == nil && setting.Err() != nil {
		err = fmt.Errorf("watch %s: %w", path, context.Cause(setting))
	}
	return nil, err
}

func (t patientTree) Born(ctx context.Context, path string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, treePatience)
	defer cancel()
	return t.sharedTree.Born(ctx, path)
}
