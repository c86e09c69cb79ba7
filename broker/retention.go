package broker

import (
	"context"
	"errors"
	"time"

	"gregor/broker/config"
	"gregor/log"
)

// Retention (cleanup.policy with delete): what is too old or too much goes, a segment at a time. One goroutine looks at all partitions every
// log.retention.check.interval.ms, and at once when a configuration changes. It works through them one after the other, with pauses, off the way of
// produce and fetch: first the log starts move, in memory; then they are written to their checkpoint, once for all; then files are renamed to
// .deleted, and removed after file.delete.delay.ms.

// firstRetention is when the first look is taken after the start, as in Kafka.
const firstRetention = 30 * time.Second

// Between two partitions in which something was rolled or deleted there is a pause of pauseShare times what that took, within these bounds: producers wait for
// the same disk.
const (
	pauseShare   = 4
	leastPause   = 2 * time.Millisecond
	longestPause = 100 * time.Millisecond
)

// runRetention deletes old segments until the broker stops.
func (b *Broker) runRetention() {
	defer b.ticks.Done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ticks.Go(func() {
		<-b.stopping
		cancel()
	})
	every := b.conf.RetentionCheckInterval
	check := time.Now().Add(min(every, firstRetention))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := max(time.Until(check), 0)
		if next := b.sweep(ctx); !next.IsZero() {
			wait = min(wait, max(next.Sub(b.now()), time.Second))
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-b.retainNow:
			check = time.Now()
		case <-timer.C:
		}
		if !time.Now().Before(check) {
			b.retain(ctx)
			check = time.Now().Add(every)
		}
	}
}

// retentionChanged makes the goroutine look now.
func (b *Broker) retentionChanged() {
	select {
	case b.retainNow <- struct{}{}:
	default:
	}
}

// retention is what of a topic is kept.
func retention(t *config.Topic) log.Retention {
	if !t.CleanupPolicy.Delete {
		return log.Forever()
	}
	return log.Retention{Ms: t.RetentionMs, Bytes: t.RetentionBytes}
}

// logs calls do with every partition that has a log, until ctx ends.
func (b *Broker) logs(ctx context.Context, do func(*partition)) {
	for _, t := range b.topics.all() {
		for _, p := range *t.partitions.Load() {
			if ctx.Err() != nil {
				return
			}
			if p.log != nil {
				do(p)
			}
		}
	}
}

// retain looks at all partitions once.
func (b *Broker) retain(ctx context.Context) {
	var due []*partition
	b.logs(ctx, func(p *partition) {
		began := time.Now()
		found, err := p.log.Retain(ctx, retention(p.topic.config.Load()))
		b.noteRetention(p, err)
		if found {
			due = append(due, p)
			pause(ctx, time.Since(began))
		}
	})
	if len(due) == 0 || ctx.Err() != nil {
		return
	}
	start := time.Now()
	if err := b.dir.CheckpointStarts(); err != nil {
		b.logger.Warn("old segments stay: the log start offsets cannot be written", "error", err)
		return
	}
	for _, p := range due {
		began := time.Now()
		b.noteRetention(p, p.log.DeleteBelowStart())
		if !pause(ctx, time.Since(began)) {
			return
		}
	}
	b.logger.Info("old segments are deleted", "partitions", len(due), "took", time.Since(start))
}

// pause waits after work that took d; false when ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(min(max(pauseShare*d, leastPause), longestPause))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// noteRetention tells of a failure, but of those that were told or end with the topic or the broker.
func (b *Broker) noteRetention(p *partition, err error) {
	if err == nil || errors.Is(err, log.ErrClosed) || errors.Is(err, log.ErrOffline) || errors.Is(err, context.Canceled) {
		return
	}
	if b.retentionAlarm.due() {
		b.logger.Error("old segments of a partition cannot be deleted", "topic", p.topic.name, "partition", p.num, "error", err)
	}
}

// sweep removes the files of deleted segments that are due, and returns when the next are.
func (b *Broker) sweep(ctx context.Context) (next time.Time) {
	b.logs(ctx, func(p *partition) {
		if due := p.log.Sweep(); !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	})
	return next
}
