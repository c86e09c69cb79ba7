package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of Config, Kafka's own except for QueuedBytes, which Kafka does not bound.
const (
	defaultMaxFrame    = 100 << 20
	defaultQueuedBytes = 256 << 20
	defaultIdleTimeout = 10 * time.Minute
	defaultMaxPipeline = 128
)

// stallWindow is how long a sender may keep memory from others without sending stallBytes of its frame. The frame that may overdraw
// the budget must be there after stallWindows of them.
const (
	stallWindow  = 10 * time.Second
	stallBytes   = 4 << 10
	stallWindows = 32
)

// Server accepts connections and serves them. Its methods may be called from any goroutine.
type Server struct {
	cfg     Config
	log     *slog.Logger
	quiet   limiter
	budget  budget
	buffers buffers
	slots   sync.Pool // *slot
	produce sync.Pool // *kmsg.ProduceRequest
	count   counters
	stall   time.Duration // stallWindow; tests shorten it
	plain   bool          // no raw sides, as on systems without; for tests

	base   context.Context // parent of the connections' contexts, ended by Shutdown
	cancel context.CancelFunc

	stopping atomic.Bool    // set once, before connections are woken to see it
	aborting atomic.Bool    // Shutdown's time is over: connections end whatever is pending
	quit     chan struct{}  // closed with stopping
	running  sync.WaitGroup // goroutines of listeners and connections
	nextID   atomic.Uint64

	mu        sync.Mutex // guards what follows; taken alone
	listeners []listener
	serving   bool
	conns     map[*conn]struct{}
	perIP     map[netip.Addr]int // open connections
	limits    Limits
	open      int            // places that are taken
	openOn    map[string]int // by listener
	placed    chan struct{}  // closed when there may be a place again; nil while nobody waits
}

// listener is a bound listener and its name.
type listener struct {
	name string
	net.Listener
}

// New checks the configuration and makes a Server that listens nowhere yet.
func New(cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, log: cfg.Logger, stall: stallWindow,
		quit: make(chan struct{}), conns: map[*conn]struct{}{}, perIP: map[netip.Addr]int{}, openOn: map[string]int{},
	}
	s.quiet.log = cfg.Logger
	s.budget.limit = cfg.QueuedBytes
	s.base, s.cancel = context.WithCancel(context.Background())
	s.limits = cfg.Limits
	return s, nil
}

// complete fills in the defaults and refuses what cannot work.
func (cfg *Config) complete() error {
	if cfg.Handler == nil {
		return errors.New("wire: Config.Handler is nil: give a Handler")
	}
	if cfg.Supports == nil {
		return errors.New("wire: Config.Supports is nil: give a function that reports the versions of a key")
	}
	if cfg.MaxFrame < 0 || cfg.QueuedBytes < 0 || cfg.IdleTimeout < 0 || cfg.Limits.MaxConns < 0 || cfg.MaxPipeline < 0 {
		return fmt.Errorf("wire: negative limit in Config (MaxFrame %d, QueuedBytes %d, IdleTimeout %v, MaxConns %d, MaxPipeline %d): "+
			"use 0 for the default", cfg.MaxFrame, cfg.QueuedBytes, cfg.IdleTimeout, cfg.Limits.MaxConns, cfg.MaxPipeline)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.MaxFrame = orDefault(cfg.MaxFrame, defaultMaxFrame)
	cfg.QueuedBytes = orDefault(cfg.QueuedBytes, defaultQueuedBytes)
	cfg.IdleTimeout = orDefault(cfg.IdleTimeout, defaultIdleTimeout)
	cfg.MaxPipeline = orDefault(cfg.MaxPipeline, defaultMaxPipeline)
	return nil
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Serve starts to accept on every listener and returns at once.
func (s *Server) Serve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving || s.stopping.Load() {
		return
	}
	s.serving = true
	for _, l := range s.listeners {
		s.running.Add(1)
		go s.acceptLoop(l)
	}
}

// Shutdown stops accepting, ends the contexts of all requests, asks the pending answers once more, writes what is ready and
// closes every connection. Pending answers whose Reply said Pipeline are short by nature and are waited for; others that are not
// ready are cancelled. When ctx ends first the connections are closed at once and ctx's error is returned. All goroutines have
// ended when it returns.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.stopping.Swap(true) {
		close(s.quit)
	}
	for _, l := range s.listeners {
		l.Close() //nolint:errcheck // nothing is lost with a listener, and a second Shutdown closes it again
	}
	s.cancel()
	for c := range s.conns {
		c.wake()
	}
	s.mu.Unlock()

	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.aborting.Store(true)
	s.mu.Lock()
	for c := range s.conns {
		c.nc.Close() //nolint:errcheck // ends what blocks; the connection's goroutine reports the end
		c.wake()     // for one that waits outside of the socket
	}
	s.mu.Unlock()
	<-done
	return fmt.Errorf("wire: shutdown: connections closed with answers outstanding: %w", ctx.Err())
}
