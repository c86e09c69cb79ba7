package loglevel

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
)

// Root is the name of the level that loggers without one of their own have.
const Root = "root"

// Names of levels, those of log4j: slog has four of them.
const (
	trace = slog.LevelDebug - 4
	fatal = slog.LevelError + 4
)

// ParseLevel reads TRACE, DEBUG, INFO, WARN, ERROR or FATAL.
func ParseLevel(name string) (slog.Level, bool) {
	switch name {
	case "TRACE":
		return trace, true
	case "DEBUG":
		return slog.LevelDebug, true
	case "INFO":
		return slog.LevelInfo, true
	case "WARN":
		return slog.LevelWarn, true
	case "ERROR":
		return slog.LevelError, true
	case "FATAL":
		return fatal, true
	}
	return 0, false
}

// LevelName is the name of a level, or of the next lower one that has a name.
func LevelName(l slog.Level) string {
	switch {
	case l >= fatal:
		return "FATAL"
	case l >= slog.LevelError:
		return "ERROR"
	case l >= slog.LevelWarn:
		return "WARN"
	case l >= slog.LevelInfo:
		return "INFO"
	case l >= slog.LevelDebug:
		return "DEBUG"
	}
	return "TRACE"
}

// Levels are the loggers of one broker.
type Levels struct {
	base  slog.Handler
	names []string // sorted, without Root
	root  atomic.Int64
	own   map[string]*atomic.Pointer[slog.Level] // nil: that of root; the map does not change
}

// New makes loggers of the given names that write to base.
func New(base slog.Handler, names ...string) *Levels {
	l := &Levels{base: base, names: slices.Sorted(slices.Values(names)), own: make(map[string]*atomic.Pointer[slog.Level], len(names))}
	l.root.Store(int64(lowest(base)))
	for _, name := range names {
		l.own[name] = new(atomic.Pointer[slog.Level])
	}
	return l
}

// lowest is the lowest named level that h lets through; FATAL if it lets nothing through.
func lowest(h slog.Handler) slog.Level {
	for _, level := range []slog.Level{trace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if h.Enabled(context.Background(), level) {
			return level
		}
	}
	return fatal
}

// Logger is the logger of one of the names.
func (l *Levels) Logger(name string) *slog.Logger {
	return slog.New(&handler{Handler: l.base, levels: l, own: l.own[name]})
}

// Names are those of all loggers, sorted, with Root.
func (l *Levels) Names() []string {
	names := append(slices.Clone(l.names), Root)
	slices.Sort(names)
	return names
}

// Has says whether there is a logger of that name.
func (l *Levels) Has(name string) bool { return name == Root || l.own[name] != nil }

// Level is the level in force for a logger that is there.
func (l *Levels) Level(name string) slog.Level { return l.level(l.own[name]) }

func (l *Levels) level(own *atomic.Pointer[slog.Level]) slog.Level {
	if own != nil {
		if level := own.Load(); level != nil {
			return *level
		}
	}
	return slog.Level(l.root.Load())
}

// Set gives a logger that is there a level of its own.
func (l *Levels) Set(name string, level slog.Level) {
	if name == Root {
		l.root.Store(int64(level))
		return
	}
	l.own[name].Store(&level)
}

// Unset takes the own level of a logger away. Root keeps what it has.
func (l *Levels) Unset(name string) {
	if name != Root {
		l.own[name].Store(nil)
	}
}

// handler is base with a level that can change.
type handler struct {
	slog.Handler
	levels *Levels
	own    *atomic.Pointer[slog.Level]
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.levels.level(h.own)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.levels, h.own}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.levels, h.own}
}
