package broker

import (
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/broker/quota"
	"gregor/wire"
)

// Quotas slow clients down (KIP-219): an answer that takes its client over one is given at once and says for how long to be quiet (throttle_time_ms), and
// for so long nothing more is read from the connection, whatever the client makes of it.
//
//   - Produce counts the request's bytes. A fetch over its quota is answered without records and not counted, so that its client does not wait for ever.
//   - request_percentage counts the time in which the request was handled; requests without an answer are left out.
//   - Changes of topics take tokens (KIP-599); see mutate.

// anonymous is the user of whoever has not said who he is: everybody, as there is no authentication.
const anonymous = "ANONYMOUS"

// measureFrom returns the time if that is needed to account for a request.
func (b *Broker) measureFrom() time.Time {
	if b.quotas.Any(quota.Request) {
		return time.Now()
	}
	return time.Time{}
}

// account counts what a request used and holds its client up if that is too much. began is what measureFrom gave.
func (b *Broker) account(req *wire.Request, reply wire.Reply, began time.Time) wire.Reply {
	var delay time.Duration
	if req.Key == 0 && b.quotas.Any(quota.Produce) {
		delay = b.quotas.Use(quota.Produce, anonymous, req.ClientID, float64(req.Size), time.Now())
	}
	if !began.IsZero() && !reply.Silent {
		now := time.Now()
		delay = max(delay, b.quotas.Use(quota.Request, anonymous, req.ClientID, 100*now.Sub(began).Seconds(), now))
	}
	switch {
	case delay <= reply.Mute || reply.Close != "":
	case reply.Pending != nil:
		reply.Pending = &mutedPending{reply.Pending, delay}
	default:
		reply.Mute = delay
	}
	return reply
}

// mutations is the quota of one request that changes topics.
type mutations struct {
	broker   *Broker
	clientID string
	strict   bool // clients since KIP-599 are refused what is over the quota; older ones are only held up
	delay    time.Duration
}

// take takes tokens for n partitions, or refuses.
func (m *mutations) take(n int) error {
	delay, ok := m.broker.quotas.Mutate(anonymous, m.clientID, n, m.strict, time.Now())
	m.delay = max(m.delay, delay)
	if !ok {
		return refuse(kerr.ThrottlingQuotaExceeded, "The throttling quota has been exceeded.")
	}
	return nil
}

// millis is what the answer says.
func (m *mutations) millis() int32 { return int32(min(m.delay.Milliseconds(), math.MaxInt32)) }

// mutedPending is an answer to come whose client is held up.
type mutedPending struct {
	wire.Pending
	delay time.Duration
}

// Poll implements wire.Pending.
func (p *mutedPending) Poll(now time.Time) (wire.Reply, bool) {
	reply, ready := p.Pending.Poll(now)
	if ready && reply.Close == "" {
		reply.Mute = max(reply.Mute, p.delay)
	}
	return reply, ready
}

// reply is the answer of what was read last, or one without records if they are more than the client may have now.
func (f *fetch) reply() wire.Reply {
	if f.got > 0 && f.broker.quotas.Any(quota.Consume) {
		now, quotas := time.Now(), f.broker.quotas
		if delay := quotas.Use(quota.Consume, anonymous, f.clientID, float64(f.got), now); delay > 0 {
			quotas.Undo(quota.Consume, anonymous, f.clientID, float64(f.got), now)
			f.releaseAll()
			return wire.Reply{Body: &fetchBody{sessionID: f.session.Throttle()}, Mute: delay}
		}
	}
	return wire.Reply{Body: f.finish()}
}
