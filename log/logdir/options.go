package logdir

import (
	"errors"
	"log/slog"
	"runtime"
	"time"

	"gregor/log"
	"gregor/log/commit"
	"gregor/log/vfs"
)

// Errors of a directory, besides ErrIdentity.
var (
	// ErrInUse is a directory whose lock is held.
	ErrInUse = errors.New("log directory is in use by another process")
	// ErrClosed is any change after Close.
	ErrClosed = errors.New("log directory is closed")
	// ErrExists is the creation of a partition that is there, or whose directory is.
	ErrExists = errors.New("partition exists already")
	// ErrNotFound is the deletion of a partition that is not there.
	ErrNotFound = errors.New("no such partition")
)

// Defaults of Options, as in Kafka.
const (
	DefaultFileDeleteDelay    = time.Minute
	DefaultCheckpointInterval = time.Minute
	// DefaultIdleHandles is the number of read handles that a directory keeps open without a reader.
	DefaultIdleHandles = 1024
)

// Options say which directory is opened, and how.
type Options struct {
	FS  vfs.FS
	Dir string // made when missing
	// BrokerID and ClusterID must be those of meta.properties, if it is there. -1 and "" stand for what is there; with nothing there the
	// id is 0 and the cluster a new one.
	BrokerID  int32
	ClusterID string
	// BrokerEpoch goes into the marker of a clean stop; 0 is right without a cluster.
	BrokerEpoch int64

	// Locked is called when the directory is locked and its identity is known, before its logs are opened. What Config needs, such as
	// metadata in the same directory, can be opened there. Its error fails Open. nil: nothing to do.
	Locked func(d *Dir) error
	// Config gives the configuration of a topic's logs; nil: the defaults. It is called from several goroutines.
	Config func(topic string) log.Config
	// Handles and Committer are shared with other directories on the same file system; nil: the Dir has its own. They are
	// closed by whoever made them, after the Dir.
	Handles   *log.HandleCache
	Committer Committer

	Logger   *slog.Logger     // nil: discard
	Now      func() time.Time // nil: time.Now
	Parallel int              // logs opened, made or closed at once; 0: twice the cores
	FastBoot bool             // gregor.fast.boot: logs are not validated

	FileDeleteDelay    time.Duration // file.delete.delay.ms, from Delete to the removal of the files; 0: the default; below 0: none
	CheckpointInterval time.Duration // log.flush.offset.checkpoint.interval.ms; 0: the default

	open opener // tests have logs of their own
}

// Committer is commit.Committer.
type Committer interface {
	Dirty(commit.Source)
}

// store is what a Dir needs of a *log.Log.
type store interface {
	commit.Source
	StartOffset() int64
	HighWatermark() int64
	RecoveryPoint() int64
	CleanBelow() int64
	Rename(newDir string) error
	Close() error
	Abandon()
}

type opener func(log.Options) (store, error)

func openLog(o log.Options) (store, error) {
	l, err := log.Open(o)
	if err != nil {
		return nil, err // not a store with a nil *log.Log in it
	}
	return l, nil
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Parallel <= 0 {
		o.Parallel = 2 * runtime.GOMAXPROCS(0)
	}
	if o.Config == nil {
		o.Config = func(string) log.Config { return log.Config{} }
	}
	if o.FileDeleteDelay == 0 {
		o.FileDeleteDelay = DefaultFileDeleteDelay
	}
	if o.CheckpointInterval <= 0 {
		o.CheckpointInterval = DefaultCheckpointInterval
	}
	if o.open == nil {
		o.open = openLog
	}
	return o
}
