package wire

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// later is a request at a version that kmsg does not have: its body is one byte and no tagged fields.
type later struct {
	kmsg.InitProducerIDRequest
	only byte
}

func (l *later) AppendTo(b []byte) []byte { return append(b, l.only, 0) }

func (l *later) ReadFrom(b []byte) error {
	if len(b) != 2 {
		return errNotEnough
	}
	l.only = b[0]
	return nil
}

// TestNewBody: what Config.NewBody makes is decoded with the request's version and reaches the handler; the rest is kmsg's. One that does not
// parse ends the connection.
func TestNewBody(t *testing.T) {
	const version = 6
	type seen struct {
		only    byte
		version int16
	}
	got := make(chan seen, 1)
	_, addr := running(t, Config{
		Supports: func(int16) (int16, int16, bool) { return 0, version, true },
		NewBody: func(key, v int16) kmsg.Request {
			if key == 22 && v == version {
				return new(later)
			}
			return nil
		},
		Handler: handlerFunc(func(ctx context.Context, req *Request) Reply {
			if l, ok := req.Body.(*later); ok {
				got <- seen{l.only, l.Version}
			}
			return echo(ctx, req)
		}),
	})
	c := dial(t, addr)
	c.send(frame(versioned(&later{only: 7}, version), 1))
	c.recvIDs(1)
	if s := <-got; s != (seen{7, version}) {
		t.Errorf("the handler got %+v", s)
	}
	c.send(frame(versioned(kmsg.NewPtrInitProducerIDRequest(), 5), 2))
	c.recvIDs(2)
	long := frame(versioned(&later{only: 7}, version), 3)
	long = append(long, 0)
	long[3]++
	c.send(long)
	c.closed()
}
