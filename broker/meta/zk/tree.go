package zk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"gregor/broker/meta"
)

// retryAfter is how long a call waits before it asks a connection again that is down.
const retryAfter = 50 * time.Millisecond

// Tree is a meta.Tree in ZooKeeper.
type Tree struct {
	opts   Options
	at     target
	conn   *zk.Conn
	dialer *dialer
	logger *slog.Logger

	done    chan struct{} // closed by Close
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	session bool          // there is one, as far as we know
	expired chan struct{} // closed when the session that is now ends
	up      chan struct{} // closed when there is a session
	renewed chan struct{} // closed when the connection is there again
}

var _ meta.Tree = (*Tree)(nil)

// Open begins a session. It waits for ZooKeeper at most ConnectTimeout and says meanwhile what for.
func Open(ctx context.Context, o Options) (*Tree, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	at, err := parseConnect(o.Connect)
	if err != nil {
		return nil, err
	}
	t := &Tree{opts: o, at: at, logger: o.Logger, done: make(chan struct{}), expired: make(chan struct{}), up: make(chan struct{}), renewed: make(chan struct{})}
	if t.logger == nil {
		t.logger = slog.New(slog.DiscardHandler)
	}
	t.dialer = newDialer(o.SessionTimeout, len(at.servers), o.TLS)
	conn, events, err := zk.Connect(at.servers, o.SessionTimeout, zk.WithDialer(t.dialer.dial), zk.WithHostProvider(&hosts{}), zk.WithLogger(printer{t.logger}), zk.WithLogInfo(false))
	if err != nil {
		return nil, fmt.Errorf("zookeeper.connect %s: %w", o.Connect, err)
	}
	t.conn = conn
	t.running.Go(func() { t.follow(events) })
	if err := t.begin(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// begin waits for the session and makes the chroot.
func (t *Tree) begin(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, t.opts.ConnectTimeout)
	defer cancel()
	notice := time.AfterFunc(time.Second, func() {
		t.logger.Info("waiting for ZooKeeper", "servers", strings.Join(t.at.servers, ","), "at most", t.opts.ConnectTimeout)
	})
	defer notice.Stop()
	t.mu.Lock()
	up := t.up
	t.mu.Unlock()
	select {
	case <-up:
	case <-waiting.Done():
		if err := ctx.Err(); err != nil {
			return err
		}
		err := fmt.Errorf("ZooKeeper does not answer at %s within %v (zookeeper.connect, zookeeper.connection.timeout.ms)",
			strings.Join(t.at.servers, ","), t.opts.ConnectTimeout)
		if why := t.dialer.why(); why != nil {
			return fmt.Errorf("%w: %w (zookeeper.ssl.*)", err, why)
		}
		return err
	}
	if t.opts.Digest != "" {
		if err := t.conn.AddAuth("digest", []byte(t.opts.Digest)); err != nil {
			return fmt.Errorf("authenticating to ZooKeeper: %w", err)
		}
	}
	return t.makeChroot(waiting)
}

func (t *Tree) makeChroot(ctx context.Context) error {
	for i := 1; i <= len(t.at.chroot); i++ {
		if i < len(t.at.chroot) && t.at.chroot[i] != '/' {
			continue
		}
		path := t.at.chroot[:i]
		_, err := retry(ctx, t, func() (string, error) { return t.conn.Create(path, nil, 0, t.opts.acl("/")) })
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("making the path %s of zookeeper.connect: %w", path, err)
		}
	}
	return nil
}

// follow keeps track of the session. A connection that is lost is said once, until there is a session again.
func (t *Tree) follow(events <-chan zk.Event) {
	away := false
	for e := range events {
		if e.Type != zk.EventSession {
			continue
		}
		t.mu.Lock()
		switch e.State {
		case zk.StateHasSession:
			if !t.session {
				t.session = true
				close(t.up)
			}
			close(t.renewed)
			t.renewed = make(chan struct{})
			if away {
				away = false
				t.logger.Info("ZooKeeper answers again")
			}
		case zk.StateDisconnected:
			if t.session && !away && !t.closed {
				away = true
				t.logger.Warn("the connection to ZooKeeper is lost; clients are served on, and it is tried again. Should it not come back, look at ZooKeeper's log: "+
					"one that has lost data refuses who has seen more", "servers", strings.Join(t.at.servers, ","))
			}
		case zk.StateExpired:
			t.logger.Warn("the session with ZooKeeper has ended, beginning another")
			close(t.expired)
			t.expired = make(chan struct{})
			if t.session {
				t.session, t.up = false, make(chan struct{})
			}
		}
		t.mu.Unlock()
	}
}

// Expired is closed when the session of now ends, and with it the ephemeral nodes that were made in it. Ask before making them.
func (t *Tree) Expired() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.expired
}

// reconnected is closed when the next connection has been made.
func (t *Tree) reconnected() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.renewed
}

// Close implements meta.Tree. The ephemeral nodes end at once.
func (t *Tree) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	close(t.done)
	t.mu.Unlock()
	t.conn.Close()
	t.dialer.close()
	t.running.Wait()
	return nil
}

func (t *Tree) pause(ctx context.Context) error {
	timer := time.NewTimer(retryAfter)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.done:
		return meta.ErrClosed
	}
}

// lost says that the connection or the session ended before the answer came.
func lost(err error) bool {
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionExpired) ||
		errors.Is(err, zk.ErrSessionMoved) || errors.Is(err, zk.ErrClosing)
}

// full is a path of the tree as ZooKeeper has it.
func (t *Tree) full(path string) string {
	if path == "/" && t.at.chroot != "" {
		return t.at.chroot
	}
	return t.at.chroot + path
}

// Get implements meta.Tree.
func (t *Tree) Get(ctx context.Context, path string) ([]byte, int32, error) {
	if !meta.ValidPath(path) {
		return nil, 0, fmt.Errorf("%q: %w", path, meta.ErrBadPath)
	}
	data, stat, err := t.get(ctx, path)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", path, known(err))
	}
	return data, stat.Version, nil
}

func (t *Tree) get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	type node struct {
		data []byte
		stat *zk.Stat
	}
	got, err := retry(ctx, t, func() (n node, err error) {
		n.data, n.stat, err = t.conn.Get(t.full(path))
		return n, err
	})
	return got.data, got.stat, err
}

// Born implements meta.Tree: the czxid.
func (t *Tree) Born(ctx context.Context, path string) (int64, error) {
	if !meta.ValidPath(path) {
		return 0, fmt.Errorf("%q: %w", path, meta.ErrBadPath)
	}
	_, stat, err := t.get(ctx, path)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", path, known(err))
	}
	return stat.Czxid, nil
}

// Children implements meta.Tree.
func (t *Tree) Children(ctx context.Context, path string) ([]string, error) {
	if !meta.ValidPath(path) {
		return nil, fmt.Errorf("%q: %w", path, meta.ErrBadPath)
	}
	names, err := retry(ctx, t, func() ([]string, error) {
		list, _, err := t.conn.Children(t.full(path))
		return append([]string{}, list...), err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, known(err))
	}
	sort.Strings(names)
	return names, nil
}

// known makes one of package meta's errors of one of the library's that says the same.
func known(err error) error {
	for _, m := range [...]struct{ zk, meta error }{
		{zk.ErrNoNode, meta.ErrNoNode}, {zk.ErrNodeExists, meta.ErrNodeExists}, {zk.ErrBadVersion, meta.ErrBadVersion},
		{zk.ErrNotEmpty, meta.ErrNotEmpty}, {zk.ErrNoChildrenForEphemerals, meta.ErrBadPath},
	} {
		if errors.Is(err, m.zk) {
			return m.meta
		}
	}
	return err
}
