package wire

import "sync/atomic"

// Stats are the counters of a Server since it was made.
type Stats struct {
	Connections   int64            // open now
	Accepted      int64            // connections accepted
	Closed        map[string]int64 // connections ended, by reason
	Requests      map[int16]int64  // requests handed to the Handler, by key
	BytesIn       int64            // bytes read from sockets
	BytesOut      int64            // bytes written to sockets, SendfileBytes included
	SendfileBytes int64            // bytes that went out by sendfile
	QueuedBytes   int64            // bytes of request buffers that count for Config.QueuedBytes now
}

// countedKeys is how many keys have a counter of their own; the last one is shared by whatever lies above.
const countedKeys = 128

// counters are the live form of Stats.
type counters struct {
	connections, accepted     atomic.Int64
	bytesIn, bytesOut, direct atomic.Int64
	closed                    [reasonCount]atomic.Int64
	requests                  [countedKeys]atomic.Int64
}

func (c *counters) request(key int16) {
	c.requests[min(int(uint16(key)), countedKeys-1)].Add(1)
}

// Stats reports the counters. Each is exact; together they are not one moment.
func (s *Server) Stats() Stats {
	c := &s.count
	st := Stats{
		Connections: c.connections.Load(), Accepted: c.accepted.Load(),
		Closed: map[string]int64{}, Requests: map[int16]int64{},
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(), SendfileBytes: c.direct.Load(),
		QueuedBytes: s.budget.used.Load(),
	}
	for r := range reasonCount {
		if n := c.closed[r].Load(); n > 0 {
			st.Closed[r.String()] = n
		}
	}
	for key := range c.requests {
		if n := c.requests[key].Load(); n > 0 {
			st.Requests[int16(key)] = n
		}
	}
	return st
}
