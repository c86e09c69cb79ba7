package wire

import (
	"net/netip"
	"testing"
)

// alive asks on a connection and reads the answer.
func (c client) alive(id int32) {
	c.Helper()
	c.send(frame(metadataRequest(), id))
	c.recvIDs(id)
}

func TestLimitsChange(t *testing.T) {
	log := newLines()
	s, addr := running(t, Config{Logger: log.logger(), Handler: handlerFunc(echo), Limits: Limits{MaxConns: 1}})
	a, b := dial(t, addr), dial(t, addr)
	a.alive(1)
	b.send(frame(metadataRequest(), 2))
	log.next(t) // b waits
	s.SetLimits(Limits{MaxConns: 2})
	b.recvIDs(2)
	s.SetLimits(Limits{MaxConns: 1, MaxConnsPerIP: 1}) // those that are open stay, and count
	a.alive(3)
	refused := dial(t, addr)
	refused.closed()
	log.next(t)
	s.SetLimits(Limits{MaxConnsPerIP: 1, PerIP: map[netip.Addr]int{netip.MustParseAddr("127.0.0.1"): 3}})
	c := dial(t, addr)
	c.alive(4)
	s.SetLimits(Limits{PerIP: map[netip.Addr]int{netip.MustParseAddr("127.0.0.1"): 0}})
	refused = dial(t, addr)
	refused.closed()
	a.alive(5)
}

func TestListenersChange(t *testing.T) {
	s, addr := running(t, Config{Handler: handlerFunc(echo)})
	first := dial(t, addr)
	first.alive(1)
	other, err := s.Listen("OTHER", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	second := dial(t, other.String())
	second.alive(1)
	s.Unlisten(other)
	s.Unlisten(other) // is not there any more
	second.closed()
	first.alive(2)
	again, err := s.Listen("OTHER", other.String())
	if err != nil {
		t.Fatal(err)
	}
	third := dial(t, again.String())
	third.alive(1)
}

func TestLimitsOfListener(t *testing.T) {
	log := newLines()
	s, addr := running(t, Config{Logger: log.logger(), Handler: handlerFunc(echo), Limits: Limits{MaxConns: 3, PerListener: map[string]int{"PLAINTEXT": 1}}})
	other, err := s.Listen("OTHER", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a, b := dial(t, addr), dial(t, addr)
	a.alive(1)
	b.send(frame(metadataRequest(), 2))
	log.next(t) // b waits
	c := dial(t, other.String())
	c.alive(3)
	a.Close()
	b.recvIDs(2)
	d := dial(t, addr)
	d.send(frame(metadataRequest(), 4))
	s.SetLimits(Limits{PerListener: map[string]int{"PLAINTEXT": 2, "OTHER": 1}})
	d.recvIDs(4)
}
