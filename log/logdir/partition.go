package logdir

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"gregor/log"
)

// Partition is a log of a directory, or the place of one that did not open. It does not change but by SetTopicID.
type Partition struct {
	id      TopicPartition
	dir     string
	topicID [16]byte
	hw      int64
	store   store // nil: offline
	err     error
}

// ID names the partition.
func (p *Partition) ID() TopicPartition { return p.id }

// Dir is where the partition was opened or made.
func (p *Partition) Dir() string { return p.dir }

// TopicID is the id in partition.metadata, zeros if there is none that can be read.
func (p *Partition) TopicID() [16]byte { return p.topicID }

// CheckpointedHighWatermark is what replication-offset-checkpoint said at Open, 0 if nothing.
func (p *Partition) CheckpointedHighWatermark() int64 { return p.hw }

// Log is the partition's log, nil if it did not open. It is closed by the Dir.
func (p *Partition) Log() *log.Log {
	l, _ := p.store.(*log.Log)
	return l
}

// Err says why there is no log. A log that goes offline later says so itself.
func (p *Partition) Err() error { return p.err }

// load opens the log of an existing directory. An error of the partition's own is kept in it; the returned one is the
// process's: there is no use in going on.
func (d *Dir) load(tp TopicPartition, together *gate) (*Partition, error) {
	p := &Partition{id: tp, dir: filepath.Join(d.opts.Dir, tp.String())}
	p.hw = d.read[highWatermarks][tp]
	topicID, err := readTopicID(d.opts.FS, p.dir)
	if err != nil {
		d.opts.Logger.Warn("topic id cannot be read", "file", filepath.Join(p.dir, topicIDFile), "error", err)
	}
	p.topicID = topicID
	o := d.logOptions(p, together)
	o.RecoveryPoint, o.LogStart = d.read[recoveryPoints][tp], noOffset(d.read[logStarts], tp)
	o.CleanBelow = d.read[cleanOffsets][tp]
	o.Clean, o.FastBoot = d.clean, d.opts.FastBoot
	p.store, p.err = d.opts.open(o)
	if errors.Is(p.err, syscall.EMFILE) || errors.Is(p.err, syscall.ENFILE) {
		return nil, fmt.Errorf("opening %s: %w; raise the limit of open files (ulimit -n)", p.dir, p.err)
	}
	if p.err != nil {
		d.opts.Logger.Error("partition is offline: its log cannot be opened", "dir", p.dir, "error", p.err)
	}
	return p, nil
}

func (d *Dir) logOptions(p *Partition, together *gate) log.Options {
	return log.Options{
		FS: d.opts.FS, Dir: p.dir, Config: d.opts.Config(p.id.Topic), Handles: d.handles, Committer: together,
		Logger: d.opts.Logger, Now: d.opts.Now, LogStart: -1,
	}
}

func noOffset(o offsets, tp TopicPartition) int64 {
	if offset, ok := o[tp]; ok {
		return offset
	}
	return -1
}

// SetTopicID writes partition.metadata, durably, for a partition that was found without one.
func (d *Dir) SetTopicID(p *Partition, id [16]byte) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.end()
	if err := replaceFile(d.opts.FS, p.dir, topicIDFile, formatTopicID(id)); err != nil {
		return err
	}
	if err := d.opts.FS.SyncDir(p.dir); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.partitions[p.id] == p {
		fresh := *p
		fresh.topicID = id
		d.mu.partitions[p.id] = &fresh
	}
	return nil
}
