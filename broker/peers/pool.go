package peers

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Pool keeps one connection to each broker that it was asked for, for requests such as WriteTxnMarkers. Its methods may be called from any goroutine.
type Pool struct {
	dialer Dialer
	find   func(id int32) (Broker, bool)

	mu     sync.Mutex
	slots  map[int32]*slot
	closed bool
}

// slot is the connection to one broker. Its turn is held while one is made.
type slot struct {
	turn  chan struct{} // holds one token while nobody dials
	conn  *Conn         // under Pool.mu
	epoch int64         // of the broker that it is to
}

// NewPool makes one; find looks a live broker up, and is called for each request.
func NewPool(d Dialer, find func(id int32) (Broker, bool)) *Pool {
	return &Pool{dialer: d, find: find, slots: map[int32]*slot{}}
}

// Request sends a request to a broker at the highest version that both know, and waits for the answer. A connection is made when there is none, or the one
// there is broken or of an earlier start of the broker. Nothing is sent twice: whoever needs an answer asks again after an error. Requests to one broker wait for
// each other: those that may take long are better in a pool of their own. Errors wrap ErrLeft when the broker is not live, ErrClosed, or are those of
// Dial and Conn.
func (p *Pool) Request(ctx context.Context, id int32, req kmsg.Request) (kmsg.Response, error) {
	for {
		c, err := p.conn(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("broker %d: %w", id, err)
		}
		resp, err := c.Request(ctx, req)
		if errors.Is(err, errNotSent) {
			continue // whoever had the connection before broke it, or the broker ended it
		}
		if err != nil {
			return nil, fmt.Errorf("broker %d: %w", id, err)
		}
		return resp, nil
	}
}

func (p *Pool) conn(ctx context.Context, id int32) (*Conn, error) {
	broker, live := p.find(id)
	if !live {
		p.forget(id)
		return nil, ErrLeft
	}
	s, err := p.slot(id)
	if err != nil {
		return nil, err
	}
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	c, epoch := s.conn, s.epoch
	p.mu.Unlock()
	if c != nil && !c.Broken() && epoch == broker.Epoch {
		return c, nil
	}
	if c != nil {
		_ = c.Close()
	}
	if c, err = p.dialer.Dial(ctx, broker.Endpoints); err != nil {
		return nil, err
	}
	return c, p.keep(s, id, c, broker.Epoch)
}

func (p *Pool) slot(id int32) (*slot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	s := p.slots[id]
	if s == nil {
		s = &slot{turn: make(chan struct{}, 1)}
		s.turn <- struct{}{}
		p.slots[id] = s
	}
	return s, nil
}

// keep puts a new connection in its place, unless the place is gone.
func (p *Pool) keep(s *slot, id int32, c *Conn, epoch int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return errors.Join(ErrClosed, c.Close())
	case p.slots[id] != s:
		return errors.Join(ErrLeft, c.Close())
	}
	s.conn, s.epoch = c, epoch
	return nil
}

// forget ends the connection to a broker that left.
func (p *Pool) forget(id int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.slots[id]; s != nil && s.conn != nil {
		_ = s.conn.Close()
	}
	delete(p.slots, id)
}

// Close ends all connections, and with them the requests under way. A connection that is being made ends when it is there.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for _, s := range p.slots {
		if s.conn != nil && !s.conn.Broken() {
			errs = append(errs, s.conn.Close())
		}
	}
	return errors.Join(errs...)
}
