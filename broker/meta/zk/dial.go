package zk

import (
	"errors"
	"net"
	"sync"
	"time"
)

// dialer makes the library's connections. The library gives a server that takes a connection and says nothing ten times as long as it should, and cannot
// be closed meanwhile.
type dialer struct {
	greeting time.Duration // limit of the wait for the first answer

	mu     sync.Mutex // a leaf
	closed bool
	now    net.Conn // the last one
}

var errDialerClosed = errors.New("the tree is closed")

func newDialer(sessionTimeout time.Duration, servers int) *dialer {
	return &dialer{greeting: max(sessionTimeout/time.Duration(servers), time.Second)} // Java's client waits as long for each
}

func (d *dialer) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	c, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.Join(errDialerClosed, c.Close())
	}
	d.now = c
	return &conn{Conn: c, greeting: d.greeting}, nil
}

// close ends the connection of now, and has no other made.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.now != nil {
		_ = d.now.Close() // nothing is lost with it
	}
}

// conn bounds the wait for the first answer. The library sets one deadline for the length of that answer, takes it away for the rest, and sets the next
// for what follows.
type conn struct {
	net.Conn
	greeting time.Duration
	waits    int // set by the goroutine that reads
}

func (c *conn) SetReadDeadline(t time.Time) error {
	switch {
	case !t.IsZero():
		if c.waits++; c.waits == 1 {
			t = time.Now().Add(c.greeting)
		}
	case c.waits <= 1:
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}
