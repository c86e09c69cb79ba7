package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"gregor/broker/config"
	"gregor/broker/controller"
	"gregor/broker/fetchsession"
	"gregor/broker/loglevel"
	"gregor/broker/meta"
	"gregor/broker/quota"
	"gregor/broker/telemetry"
	"gregor/log/batch"
	"gregor/log/logdir"
	"gregor/log/vfs"
	"gregor/wire"
)

// Config configures a Broker. The zero value serves on 127.0.0.1:9092 with its data in ./gregor-data.
type Config struct {
	// Settings are Kafka's keys as in server.properties, with Kafka's units. Unknown ones are reported, wrong ones fail New.
	Settings map[string]string
	// Layers are further settings, the strongest first, each with the place that it comes from; they are weaker than Settings.
	Layers []config.Layer
	// Logger gets the broker's log; nil discards it.
	Logger *slog.Logger
	// Version is what the broker calls itself.
	Version string
	// FS is the file system below the store, nil for the real one. Tests give one that fails.
	FS vfs.FS
	// Now is the wall clock, nil for time.Now. Timers do not use it.
	Now func() time.Time
}

// ErrStarted is a second Start, or one after Shutdown: a Broker lives once; New makes another.
var ErrStarted = errors.New("broker was started or shut down before; make a new one")

// Broker is one Kafka broker.
type Broker struct {
	conf   *config.Server
	levels *loglevel.Levels
	logger *slog.Logger // that of logOfBroker
	fs     vfs.FS
	now    func() time.Time

	apis           []api
	byKey          []*api
	softwareName   *regexp.Regexp
	checkers       sync.Pool // of *batch.Checker
	converters     sync.Pool // of *batch.Converter
	builders       sync.Pool // of *batch.Builder
	sessions       *fetchsession.Cache
	quotas         *quota.Manager
	clientMetrics  clientMetrics
	telemetry      clientTelemetry
	groupConfigs   groupConfigs
	topics         *catalog
	diskAlarm      diskAlarm
	topicAlarm     alarm // topics that cannot be made
	groupAlarm     alarm // no group coordinator
	txnAlarm       alarm // transactions that cannot go on
	retentionAlarm alarm // segments that cannot be deleted
	producerIDs    producerIDs
	groups         *coordinator
	cleaner        *cleaner
	txns           *txnCoordinator
	// downgrades are what conversions for old consumers work with.
	downgrades  sync.Pool // of *downgrade
	conversions *conversions

	// layers are what conf was made of. dynamic is conf with what was changed at run time, nil while nothing was; see settings.
	layers  []config.Layer
	dynamic atomic.Pointer[config.Server]
	// finalized are the levels of features.
	finalized atomic.Pointer[finalized]

	// shared says that the metadata tree is that of a cluster: a controller gives this broker orders.
	shared    bool
	obedience obedience

	nodeID    int32 // broker.id, or what the data directory says
	clusterID string
	view      atomic.Pointer[view] // who else is there
	others    asker
	// steward keeps the broker in step with a tree that others change too; nil when the tree is this broker's own.
	steward     *steward
	brokerEpoch atomic.Int64 // of the registration
	bumped      bool         // leader epochs were raised after a stop that was not clean; guarded by admin
	tree        meta.Tree
	control     *controller.Controller
	dir         *logdir.Set
	server      *wire.Server
	metrics     *metricsServer // nil: nowhere
	listeners   listeners

	// admin serialises changes of topics: tree, directories and catalog change together under it.
	admin   sync.Mutex
	leaving []leaving // guarded by admin
	// lostReplicas is why a partition that is not found may be on a disk that cannot be used; nil after the start.
	lostReplicas error

	ticks     sync.WaitGroup
	retick    chan struct{} // capacity 1
	retainNow chan struct{} // capacity 1
	stopping  chan struct{} // ends the ticker and the retention

	started atomic.Bool
	stop    sync.Once
	done    chan struct{}
}

// New checks the configuration. It opens nothing: that is for Start.
func New(c Config) (*Broker, error) {
	layers := append([]config.Layer{{Origin: "settings", Values: c.Settings}}, c.Layers...)
	conf, report, err := config.NewServer(layers...)
	if err != nil {
		return nil, err
	}
	b := &Broker{
		conf:         conf,
		layers:       layers,
		levels:       newLevels(c.Logger),
		fs:           c.FS,
		now:          c.Now,
		softwareName: softwareNamePattern(),
		sessions:     fetchsession.New(int(conf.FetchSessionSlots)),
		quotas:       quota.New(int(conf.QuotaWindows), conf.QuotaWindow),
		topics:       newCatalog(),
		retick:       make(chan struct{}, 1),
		retainNow:    make(chan struct{}, 1),
		stopping:     make(chan struct{}),
		done:         make(chan struct{}),
	}
	b.logger = b.levels.Logger(logOfBroker)
	if b.fs == nil {
		b.fs = vfs.OS()
	}
	if b.now == nil {
		b.now = time.Now
	}
	b.checkers.New = func() any { return new(batch.Checker) }
	b.converters.New = func() any { return new(batch.Converter) }
	b.conversions = newConversions(b.logger)
	b.telemetry.Clients = telemetry.New()
	b.downgrades.New = func() any { return new(downgrade) }
	b.builders.New = func() any { return new(batch.Builder) }
	b.groups = newCoordinator(b)
	b.cleaner = newCleaner(b)
	b.txns = newTxnCoordinator(b)
	b.others = b.newAsker()
	b.share(conf.ZooKeeper.Connect != "")
	if n := conf.Defaults.MinInsyncReplicas; n > 1 {
		b.logger.Warn("acks=all will be refused: a partition has one replica", "min.insync.replicas", n)
	}
	for _, n := range report.Grouped() {
		b.logger.Warn("setting without effect", "key", n.Key, "from", n.Origin, "what", n.Text)
	}
	return b, nil
}

// Start opens the data directory, recovers what is in it, and listens. When it returns, clients are served. After an error nothing is left open.
// The context ends the start, not the broker.
func (b *Broker) Start(ctx context.Context) (err error) {
	if !b.started.CompareAndSwap(false, true) {
		return ErrStarted
	}
	defer func() {
		if err != nil {
			b.closeAll(ctx)
		}
	}()
	if err := b.openStore(ctx); err != nil {
		return err
	}
	b.groups.open()
	b.txns.open()
	if err := b.listen(ctx); err != nil {
		return err
	}
	if b.conf.Cleaner.Enable {
		b.ticks.Add(1)
		go b.cleaner.run()
	}
	b.ticks.Add(2)
	go b.runTicks()
	go b.runRetention()
	return nil
}

// listen makes the front end and its listeners, takes the broker's place in a cluster, and serves.
func (b *Broker) listen(ctx context.Context) error {
	var err error
	b.server, err = wire.New(wire.Config{
		Handler:       b,
		Logger:        b.levels.Logger(logOfWire),
		Supports:      b.supports,
		NewBody:       newBody,
		Delay:         func(peer netip.Addr) time.Duration { return b.quotas.Connect(peer.String(), time.Now()) },
		MaxFrame:      b.conf.SocketRequestMaxBytes,
		QueuedBytes:   b.conf.QueuedMaxRequestBytes,
		SendBuffer:    int(b.conf.SocketSendBuffer),
		ReceiveBuffer: int(b.conf.SocketReceiveBuffer),
		IdleTimeout:   idleTimeout(b.conf.ConnectionsMaxIdle),
		Limits:        b.limits(b.settings()),
		Pace:          func(listener string) time.Duration { return b.quotas.Accept(listener, time.Now()) },
	})
	if err != nil {
		return err
	}
	if err := b.openListeners(ctx); err != nil {
		return err
	}
	if addr := b.conf.MetricsListener; addr != "" {
		if b.metrics, err = b.serveMetrics(addr); err != nil {
			return err
		}
	}
	if b.steward != nil { // whoever connects meanwhile waits: a controller that is about to be would refuse what it is asked
		if err := b.steward.start(ctx); err != nil {
			return err
		}
	}
	b.server.Serve()
	return nil
}

// deleteDelay is file.delete.delay.ms as logdir wants it.
func deleteDelay(ms int64) time.Duration {
	if ms == 0 {
		return -1 // none
	}
	return time.Duration(min(ms, int64(math.MaxInt64/time.Millisecond))) * time.Millisecond
}

// idleTimeout is connections.max.idle.ms, where 0 and less mean never.
func idleTimeout(d time.Duration) time.Duration {
	const never = 100 * 365 * 24 * time.Hour
	if d <= 0 {
		return never
	}
	return d
}

// Addr is the address of the first listener as host:port, once Start returned.
func (b *Broker) Addr() string {
	if all := b.listeners.get(); len(all) > 0 {
		return all[0].addr.String()
	}
	return ""
}

// Addrs are the addresses of all listeners as host:port, once Start returned.
func (b *Broker) Addrs() (addrs []string) {
	for _, l := range b.listeners.get() {
		addrs = append(addrs, l.addr.String())
	}
	return addrs
}

// DataDir is the directory that holds the broker's metadata, the first of log.dirs.
func (b *Broker) DataDir() string { return b.conf.LogDir }

// ClusterID is the cluster's id, once Start returned.
func (b *Broker) ClusterID() string { return b.clusterID }

// Done is closed when the broker has stopped.
func (b *Broker) Done() <-chan struct{} { return b.done }

// Shutdown stops the broker cleanly: no new connections, waiting answers are given, connections end, everything is synced and marked clean. The
// context bounds the wait for connections; the store is closed in any case.
func (b *Broker) Shutdown(ctx context.Context) error {
	var err error
	b.started.Store(true) // no Start after this
	b.stop.Do(func() {
		close(b.stopping)
		b.ticks.Wait()
		err = b.closeAll(ctx)
		close(b.done)
	})
	return err
}

// closeAll closes what is open, front end first.
func (b *Broker) closeAll(ctx context.Context) error {
	var first error
	keep := func(what string, err error) {
		if err != nil && first == nil {
			first = fmt.Errorf("%s: %w", what, err)
		}
	}
	if b.metrics != nil {
		b.metrics.close(ctx)
	}
	if b.server != nil {
		keep("closing connections", b.server.Shutdown(ctx))
	}
	if b.steward != nil {
		b.steward.close()
	}
	keep("closing connections to other brokers", b.others.Close())
	b.txns.close()
	b.groups.close()
	if b.dir != nil {
		keep("closing "+b.conf.LogDir, b.dir.Close())
	}
	if b.tree != nil {
		keep("closing the metadata tree", b.tree.Close())
	}
	return first
}

// metaFile is the embedded metadata tree in the data directory.
func (b *Broker) metaFile() string { return filepath.Join(b.conf.LogDir, meta.FileName) }
