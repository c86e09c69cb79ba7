package broker

import (
	"net"
	"slices"
	"strconv"

	"gregor/broker/meta"
	"gregor/wire"
)

// view is who else is there: the live brokers and the controller. It is replaced as a whole.
type view struct {
	self       int32
	controller int32 // -1: nobody, or not known
	brokers    []peer
}

// peer is a live broker, this one included, sorted by id.
type peer struct {
	id    int32
	epoch int64 // of its registration
	node  meta.BrokerNode
}

// lives says whether a broker is there.
func (v *view) lives(id int32) bool {
	_, found := v.find(id)
	return found
}

// ids are those of the live brokers, sorted.
func (v *view) ids() []int32 {
	ids := make([]int32, len(v.brokers))
	for i := range ids {
		ids[i] = v.brokers[i].id
	}
	return ids
}

func (v *view) find(id int32) (int, bool) {
	return slices.BinarySearchFunc(v.brokers, id, func(p peer, id int32) int { return int(p.id) - int(id) })
}

// lookAround makes the view one of this broker only.
func (b *Broker) lookAround(controller int32) {
	self := peer{b.nodeID, 0, meta.BrokerNode{Endpoints: b.endpoints(), Rack: b.conf.Rack}}
	b.view.Store(&view{self: b.nodeID, controller: controller, brokers: []peer{self}})
}

// seenBroker is a broker as a client on one listener sees it.
type seenBroker struct {
	id   int32
	host string
	port int32
	rack *string
}

// brokersFor are the brokers that a client on this connection can reach, by the listener of the same name.
func (b *Broker) brokersFor(conn *wire.ConnInfo) []seenBroker {
	v := b.view.Load()
	out := make([]seenBroker, 0, len(v.brokers))
	for i := range v.brokers {
		if s, ok := b.seenAs(&v.brokers[i], conn); ok {
			out = append(out, s)
		}
	}
	return out
}

// seenAs is one broker for a client on this connection; ok is false when that has no listener of that name.
func (b *Broker) seenAs(p *peer, conn *wire.ConnInfo) (s seenBroker, ok bool) {
	s.id = p.id
	if p.node.Rack != "" {
		s.rack = &p.node.Rack
	}
	if p.id == b.nodeID {
		s.host, s.port = b.address(conn)
		return s, true
	}
	for _, e := range p.node.Endpoints {
		if e.Listener == conn.Listener {
			s.host, s.port = e.Host, e.Port
			return s, true
		}
	}
	return s, false
}

// address is the one of this broker that a client on this connection should connect to.
func (b *Broker) address(conn *wire.ConnInfo) (host string, port int32) {
	for _, l := range b.settings().Advertised {
		if l.Name == conn.Listener {
			return l.Host, l.Port
		}
	}
	h, p, err := net.SplitHostPort(conn.Local.String())
	if err != nil {
		return conn.Local.String(), 0
	}
	n, _ := strconv.ParseInt(p, 10, 32) // 0 for an address without a number, which only tests have
	return h, int32(n)
}
