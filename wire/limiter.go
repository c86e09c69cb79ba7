package wire

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	limiterWindow = 10 * time.Second
	limiterLines  = 5
)

// limiter writes at most limiterLines log lines per reason and limiterWindow. What it holds back is counted and told by the
// first line of a later window, so that a flood of bad clients costs a few lines and is still seen.
type limiter struct {
	log *slog.Logger

	mu      sync.Mutex // guards windows; no other lock is taken under it
	windows [reasonCount]limiterState
}

type limiterState struct {
	start      time.Time
	lines      int
	suppressed int64
}

// allow reports whether a line of this reason may go out now, and how many were held back since the last one.
func (l *limiter) allow(r reason, now time.Time) (suppressed int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &l.windows[r]
	if now.Sub(w.start) >= limiterWindow {
		w.start, w.lines = now, 0
	}
	if w.lines >= limiterLines {
		w.suppressed++
		return 0, false
	}
	w.lines++
	suppressed, w.suppressed = w.suppressed, 0
	return suppressed, true
}

// warn writes the line unless too many of its reason went out.
func (l *limiter) warn(r reason, msg string, attrs ...slog.Attr) {
	suppressed, ok := l.allow(r, time.Now())
	if !ok {
		return
	}
	attrs = append(attrs, slog.String("reason", r.String()))
	if suppressed > 0 {
		attrs = append(attrs, slog.Int64("suppressed", suppressed))
	}
	l.log.LogAttrs(context.Background(), slog.LevelWarn, msg, attrs...)
}
