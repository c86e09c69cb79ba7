package broker

import (
	"context"
	"sync"
	"time"
)

// pacer slows down what reads and writes a lot (log.cleaner.io.max.bytes.per.second).
type pacer struct {
	mu   sync.Mutex
	rate float64 // bytes a second
	next time.Time
}

// endless is a rate that no disk reaches.
const endless = 1e12

func (p *pacer) set(bytesPerSecond float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate, p.next = bytesPerSecond, time.Time{}
}

// wait returns when bytes more may follow what was told before; with an error if ctx ended.
func (p *pacer) wait(ctx context.Context, bytes int) error {
	d := p.delay(bytes, time.Now())
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// shortestPause saves timers: what is due earlier is waited for with what comes after.
const shortestPause = 5 * time.Millisecond

// delay is how long to wait for bytes more.
func (p *pacer) delay(bytes int, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rate >= endless {
		return 0
	}
	if p.next.Before(now) {
		p.next = now
	}
	seconds := min(float64(bytes)/max(p.rate, 1), 3600)
	p.next = p.next.Add(time.Duration(seconds * float64(time.Second)))
	if d := p.next.Sub(now); d > shortestPause {
		return d
	}
	return 0
}
