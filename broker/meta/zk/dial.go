package zk

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// dialer makes the library's connections. The library gives a server that takes a connection and says nothing ten times as long as it should, and cannot
// be closed meanwhile.
type dialer struct {
	greeting time.Duration // limit of the wait for the first answer
	tls      *tls.Config   // nil: without

	mu      sync.Mutex // a leaf
	closed  bool
	now     net.Conn // the last one
	problem error    // of TLS
}

var errDialerClosed = errors.New("the tree is closed")

func newDialer(sessionTimeout time.Duration, servers int, conf *tls.Config) *dialer {
	return &dialer{tls: conf, greeting: max(sessionTimeout/time.Duration(servers), time.Second)} // Java's client waits as long for each
}

func (d *dialer) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	c, err := net.DialTimeout(network, address, timeout)
	if err == nil && d.tls != nil {
		c, err = d.handshake(c, address, timeout)
	}
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

// handshake makes a connection one with TLS. Why it fails is only known here: the library tries again without a word.
func (d *dialer) handshake(plain net.Conn, address string, timeout time.Duration) (net.Conn, error) {
	conf := d.tls.Clone()
	if host, _, err := net.SplitHostPort(address); err == nil && conf.ServerName == "" {
		conf.ServerName = host
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c := tls.Client(plain, conf)
	if err := c.HandshakeContext(ctx); err != nil {
		err = fmt.Errorf("TLS with ZooKeeper at %s: %w", address, err)
		d.mu.Lock()
		d.problem = err
		d.mu.Unlock()
		return nil, errors.Join(err, plain.Close())
	}
	return c, nil
}

// why is the last reason why TLS failed, nil for none.
func (d *dialer) why() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.problem
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
