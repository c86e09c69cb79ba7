package peers

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/meta"
)

const (
	defaultTimeout   = 30 * time.Second // controller.socket.timeout.ms
	defaultMaxAnswer = 100 << 20        // socket.request.max.bytes

	// A connection that was not used for probeAfter may have been ended by the broker (connections.max.idle.ms): before it is used again it is looked at for
	// probeFor.
	probeAfter = 30 * time.Second
	probeFor   = time.Millisecond
)

// errNotSent says that a connection was of no use before anything was sent on it: the request may go on another.
var errNotSent = errors.New("nothing was sent")

// Dialer makes connections. The zero value works.
type Dialer struct {
	// Listener is inter.broker.listener.name, "" for any PLAINTEXT one (Endpoint).
	Listener string
	// ClientID is sent with each request; Kafka's controllers send their broker id.
	ClientID string
	// Timeout limits making a connection, and each request whose context has no deadline; 0 means 30 s.
	Timeout time.Duration
	// MaxAnswer limits an answer, in bytes; 0 means 100 MiB.
	MaxAnswer int
	// Highest limits the versions of requests, by key, as inter.broker.protocol.version does; nil for what both sides know. It is not changed.
	Highest map[int16]int16
	// DialContext opens the connection, nil for a net.Dialer's.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

func (d *Dialer) timeout() time.Duration { return cmp.Or(d.Timeout, defaultTimeout) }

// Conn is one connection to a broker, for any number of goroutines. After an error of the connection, or a context that ended before the answer came, it
// is broken for good.
type Conn struct {
	conn     net.Conn
	r        *bufio.Reader
	address  string
	clientID string
	timeout  time.Duration
	limit    int
	versions map[int16]span
	highest  map[int16]int16

	turn   chan struct{} // holds one token while nobody's request is under way
	broken atomic.Bool
	// of who has the token
	correlation int32
	buf         []byte
	used        time.Time // when it was used last
}

// Dial connects and asks for the broker's versions. Errors say where to, and wrap ErrNoListener, ErrProtocol or those of package net.
func (d *Dialer) Dial(ctx context.Context, endpoints []meta.Endpoint) (*Conn, error) {
	e, err := Endpoint(d.Listener, endpoints)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout())
	defer cancel()
	dial := d.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	address := net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", e, err)
	}
	c := &Conn{conn: conn, r: bufio.NewReader(conn), address: address, clientID: d.ClientID, timeout: d.timeout(), highest: d.Highest, turn: make(chan struct{}, 1)}
	c.limit = cmp.Or(d.MaxAnswer, defaultMaxAnswer)
	c.turn <- struct{}{}
	if err := c.askVersions(ctx); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("asking %s for its versions: %w", e, err)
	}
	return c, nil
}

// askVersions asks with version 3, and with 0 when the broker is older than that (KIP-511).
func (c *Conn) askVersions(ctx context.Context) error {
	for _, version := range []int16{3, 0} {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "gregor", "1"
		req.SetVersion(version)
		kresp, err := c.Do(ctx, req)
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w (Apache Kafka before 0.10 ends connections that ask)", err)
		}
		if err != nil {
			return err
		}
		resp, ok := kresp.(*kmsg.ApiVersionsResponse)
		switch {
		case !ok:
			return fmt.Errorf("%w: it is a %T", ErrProtocol, kresp)
		case resp.ErrorCode == codeUnsupportedVersion && version > 0:
			continue
		case resp.ErrorCode != 0:
			return fmt.Errorf("%w: error code %d", ErrProtocol, resp.ErrorCode)
		}
		c.versions = make(map[int16]span, len(resp.ApiKeys))
		for _, k := range resp.ApiKeys {
			c.versions[k.ApiKey] = span{k.MinVersion, k.MaxVersion}
		}
		return nil
	}
	return fmt.Errorf("%w: it knows neither version 3 nor 0 of ApiVersions", ErrProtocol)
}

// Close ends the connection, and with it the request that is under way.
func (c *Conn) Close() error {
	c.broken.Store(true)
	return c.conn.Close()
}

// Broken says that the connection is of no use any more.
func (c *Conn) Broken() bool { return c.broken.Load() }

// Version is the highest version of the request that both sides know and Dialer.Highest allows, ErrUnsupported if there is none.
func (c *Conn) Version(req kmsg.Request) (int16, error) { return choose(req, c.versions, c.highest) }

// Request sends a request at that version, which it sets, and waits for the answer.
func (c *Conn) Request(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	v, err := c.Version(req)
	if err != nil {
		return nil, err
	}
	req.SetVersion(v)
	return c.Do(ctx, req)
}

// Do sends a request at the version that it has.
func (c *Conn) Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	if _, ok := ctx.Deadline(); !ok {
		limited, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		ctx = limited
	}
	select {
	case <-c.turn:
		defer func() { c.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the connection to %s: %w", c.address, ctx.Err())
	}
	if !c.Broken() && !c.used.IsZero() && time.Since(c.used) > probeAfter && c.ended() {
		_ = c.Close()
	}
	if c.Broken() {
		return nil, fmt.Errorf("connection to %s: %w: %w", c.address, errNotSent, net.ErrClosed)
	}
	resp, err := c.roundTrip(ctx, req)
	if err != nil {
		if cause := ctx.Err(); cause != nil { // what it did to the connection says less
			err = cause
		}
		_ = c.Close() // the context may have done so
		return nil, fmt.Errorf("%s %d to %s: %w", kmsg.NameForKey(req.Key()), req.GetVersion(), c.address, err)
	}
	c.used = time.Now()
	return resp, nil
}

// ended looks whether the broker has ended the connection, or sent what nobody asked for.
func (c *Conn) ended() bool {
	if c.conn.SetReadDeadline(time.Now().Add(probeFor)) != nil {
		return true
	}
	_, err := c.r.Peek(1)
	return !errors.Is(err, os.ErrDeadlineExceeded) || c.conn.SetReadDeadline(time.Time{}) != nil
}

// roundTrip writes a request and reads its answer, until the context ends.
func (c *Conn) roundTrip(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	c.correlation++
	c.buf = appendRequest(c.buf[:0], req, c.correlation, c.clientID)
	_, err := c.conn.Write(c.buf)
	if cap(c.buf) > firstStep {
		c.buf = nil // large ones are rare
	}
	if err != nil {
		return nil, err
	}
	frame, err := readFrame(c.r, c.limit)
	if err != nil {
		return nil, err
	}
	return decode(frame, req, c.correlation)
}

// decode reads an answer. One to ApiVersions has header version 0 always, and a body of version 0 when the broker does not know the version (KIP-511).
func decode(frame []byte, req kmsg.Request, correlation int32) (kmsg.Response, error) {
	versions := req.Key() == keyAPIVersions
	b, err := body(frame, correlation, req.IsFlexible() && !versions)
	if err != nil {
		return nil, err
	}
	resp := req.ResponseKind()
	if versions && len(b) >= 2 && b[0] == 0 && b[1] == codeUnsupportedVersion {
		resp.SetVersion(0)
	}
	if err := resp.ReadFrom(b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return resp, nil
}
