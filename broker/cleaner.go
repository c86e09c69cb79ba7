package broker

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"gregor/broker/config"
	"gregor/log"
	"gregor/log/compact"
)

// Compaction (cleanup.policy with compact). log.cleaner.threads goroutines look for the log with the largest share of bytes that were not compacted yet, above
// min.cleanable.dirty.ratio or with records older than max.compaction.lag.ms, and compact it; without one they wait log.cleaner.backoff.ms. How far a
// log is clean is written to cleaner-offset-checkpoint after the swap. A log with damage is left alone until the next start, with one error; the others go on.

// cleaner owns the goroutines.
type cleaner struct {
	broker  *Broker
	pace    pacer
	alarm   alarm
	changed chan struct{} // capacity 1: the settings changed
	workers sync.WaitGroup

	mu    sync.Mutex // guards partition.cleaning and what follows; a leaf
	stats CleanerStats
}

// cleaning is what the cleaner knows of a partition. Guarded by cleaner.mu.
type cleaning struct {
	busy   bool
	damage error     // why it is left alone
	retry  time.Time // after a failure
}

// CleanerStats count what compaction did since the start.
type CleanerStats struct {
	Rounds         int64 // logs that were compacted
	Failures       int64 // rounds that failed
	Damaged        int64 // partitions that are left alone because of damage
	Seconds        float64
	BytesRead      int64
	BytesWritten   int64
	RecordsRead    int64
	RecordsRemoved int64
	SegmentsGone   int64 // segments that were merged into others
	LargestIndex   int64 // bytes of memory that the largest index of keys took
}

func newCleaner(b *Broker) *cleaner {
	return &cleaner{broker: b, changed: make(chan struct{}, 1)}
}

// snapshot returns the counters.
func (c *cleaner) snapshot() CleanerStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// settingsChanged makes the cleaner look at its settings.
func (c *cleaner) settingsChanged() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// run starts the workers, and starts them anew when the settings that they work with changed, until the broker stops.
func (c *cleaner) run() {
	defer c.broker.ticks.Done()
	for {
		conf := c.broker.settings().Cleaner
		ctx, cancel := context.WithCancel(context.Background())
		c.pace.set(conf.BytesPerSecond)
		for range conf.Threads {
			c.workers.Go(func() { c.work(ctx, conf) })
		}
		stop := c.awaitChange(conf)
		cancel()
		c.workers.Wait()
		if stop {
			return
		}
	}
}

// awaitChange waits for other settings than conf; true: the broker stops.
func (c *cleaner) awaitChange(conf config.Cleaner) bool {
	for {
		select {
		case <-c.broker.stopping:
			return true
		case <-c.changed:
			if c.broker.settings().Cleaner != conf {
				return false
			}
		}
	}
}

// work compacts one log after the other until ctx ends.
func (c *cleaner) work(ctx context.Context, conf config.Cleaner) {
	timer := time.NewTimer(conf.Backoff)
	defer timer.Stop()
	for {
		if p := c.take(ctx); p != nil {
			c.clean(ctx, p, conf)
			c.giveBack(p)
			continue
		}
		timer.Reset(conf.Backoff)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// take finds the log that needs compaction most and makes it busy; nil if there is none.
func (c *cleaner) take(ctx context.Context) *partition {
	var filthiest *partition
	most := -1.0
	c.broker.logs(ctx, func(p *partition) {
		conf := p.topic.config.Load()
		if !conf.CleanupPolicy.Compact || !c.free(p) {
			return
		}
		found, err := p.log.Cleanable(conf.MinCompactionLagMs, conf.MaxCompactionLagMs < math.MaxInt64)
		if err != nil {
			c.failed(p, err)
			return
		}
		if ratio := found.Ratio(); ratio > most && c.worth(found, conf) {
			filthiest, most = p, ratio
		}
	})
	if filthiest == nil || ctx.Err() != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if filthiest.cleaning.busy {
		return nil // another worker was faster
	}
	filthiest.cleaning.busy = true
	return filthiest
}

// worth says that a log is dirty enough, or that something in it has waited long enough.
func (c *cleaner) worth(found log.Cleanable, conf *config.Topic) bool {
	if found.DirtyBytes == 0 {
		return false
	}
	if found.Ratio() > conf.MinCleanableDirtyRatio {
		return true
	}
	return found.OldestMs < math.MaxInt64 && c.broker.now().UnixMilli()-found.OldestMs > conf.MaxCompactionLagMs
}

func (c *cleaner) free(p *partition) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &p.cleaning
	return !s.busy && s.damage == nil && !time.Now().Before(s.retry)
}

func (c *cleaner) giveBack(p *partition) {
	c.mu.Lock()
	p.cleaning.busy = false
	c.mu.Unlock()
}

// clean compacts one log.
func (c *cleaner) clean(ctx context.Context, p *partition, conf config.Cleaner) {
	topic := p.topic.config.Load()
	began := time.Now()
	done, err := c.cleanDurably(ctx, p, log.CleanOptions{
		MinLagMs:          topic.MinCompactionLagMs,
		DeleteRetentionMs: topic.DeleteRetentionMs,
		Index:             compact.Limits{Bytes: conf.DedupeBytes / int64(conf.Threads), Load: conf.LoadFactor},
		BufferBytes:       int(conf.BufferBytes) / 2 / int(conf.Threads),
		Pace:              func(bytes int) error { return c.pace.wait(ctx, bytes) },
	})
	took := time.Since(began)
	c.note(done, err == nil, took)
	if err != nil {
		c.failed(p, err)
		return
	}
	f := &done.Filter
	c.broker.logger.Info("log is compacted", "topic", p.topic.name, "partition", p.num, "clean_below", done.Next, "records", f.RecordsRead,
		"kept", f.RecordsKept, "bytes", f.BytesRead, "bytes_kept", f.BytesKept, "segments", done.SegmentsOld, "segments_now", done.SegmentsNew,
		"index_bytes", done.IndexBytes, "index_full", done.Full, "took", took)
}

// cleanDurably compacts below a recovery point that is in its checkpoint, and keeps how far it got there too.
func (c *cleaner) cleanDurably(ctx context.Context, p *partition, o log.CleanOptions) (log.Cleaned, error) {
	if p.log.RecoveryPoint() < p.log.HighWatermark() { // flush.messages is not 1
		if err := p.log.Flush(); err != nil {
			return log.Cleaned{}, err
		}
	}
	o.Bound = p.log.RecoveryPoint()
	if err := c.broker.dir.Checkpoint(); err != nil {
		return log.Cleaned{}, err
	}
	done, err := p.log.Clean(ctx, o)
	if err != nil {
		return done, err
	}
	if err := c.broker.dir.Checkpoint(); err != nil {
		c.broker.logger.Warn("how far a log is compacted was not written, it is compacted again after a restart", "topic", p.topic.name,
			"partition", p.num, "error", err)
	}
	return done, nil
}

func (c *cleaner) note(done log.Cleaned, ok bool, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.stats
	if ok {
		s.Rounds++
	}
	s.Seconds += took.Seconds()
	s.BytesRead += done.IndexedBytes + done.Filter.BytesRead
	s.BytesWritten += done.Filter.BytesKept
	s.RecordsRead += done.Filter.RecordsRead
	s.RecordsRemoved += done.Filter.RecordsRead - done.Filter.RecordsKept
	s.SegmentsGone += int64(done.SegmentsOld - done.SegmentsNew)
	s.LargestIndex = max(s.LargestIndex, done.IndexBytes)
}

// failed takes note of a failure: damage stops the compaction of this log, anything else is tried again later. What a deleted topic, a truncation
// or the stop of the broker ends is no failure.
func (c *cleaner) failed(p *partition, err error) {
	if errors.Is(err, log.ErrClosed) || errors.Is(err, log.ErrOffline) || errors.Is(err, context.Canceled) {
		return
	}
	var damage *log.CorruptError
	corrupt := errors.As(err, &damage)
	c.mu.Lock()
	p.cleaning.retry = time.Now().Add(c.broker.settings().Cleaner.Backoff)
	if errors.Is(err, log.ErrCleanAgain) {
		c.mu.Unlock()
		return
	}
	c.stats.Failures++
	if corrupt {
		c.stats.Damaged++
		p.cleaning.damage = err
	}
	c.mu.Unlock()
	switch {
	case corrupt:
		c.broker.logger.Error("log is damaged and is not compacted any more; copy what can be read to another topic, or restore the file and restart",
			"topic", p.topic.name, "partition", p.num, "file", damage.File, "position", damage.Pos, "error", err)
	case c.alarm.due():
		c.broker.logger.Warn("log could not be compacted, trying again later", "topic", p.topic.name, "partition", p.num, "error", err)
	}
}
