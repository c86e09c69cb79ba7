package peers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/meta"
)

// retryAfter is how long a broker that failed is left alone, as in Kafka's RequestSendThread.
const retryAfter = 100 * time.Millisecond

// peer is one other live broker.
type peer struct {
	announcer *Announcer
	broker    Broker          // its Endpoints under Announcer.mu, the rest does not change
	ctx       context.Context // ends when the broker leaves, or by Close
	cancel    context.CancelFunc
	logger    *slog.Logger
	news      chan struct{} // has room for one

	queue queue // under Announcer.mu

	// of the goroutine
	conn    *Conn
	failing bool // the last try failed, and was logged
}

// run sends what is in the queue until the context ends.
func (p *peer) run() {
	defer p.leave()
	for {
		if !p.waiting() {
			select {
			case <-p.news:
			case <-p.ctx.Done():
				return
			}
			continue
		}
		// The step is taken when there is a connection: until then it takes what else happens.
		if !p.connect() {
			return
		}
		if !p.tell(p.take()) {
			return
		}
	}
}

func (p *peer) waiting() bool {
	p.announcer.mu.Lock()
	defer p.announcer.mu.Unlock()
	for len(p.queue) > 0 && p.queue[0].empty() {
		p.queue = p.queue[1:]
	}
	return len(p.queue) > 0
}

// work is a step with what it is sent with.
type work struct {
	*step
	sender
}

// take takes the oldest step out of the queue.
func (p *peer) take() work {
	a := p.announcer
	a.mu.Lock()
	defer a.mu.Unlock()
	s := p.queue[0]
	p.queue = p.queue[1:]
	return work{s, sender{a.conf.ControllerID, a.conf.ControllerEpoch, a.conf.Dialer.Listener, a.live, &p.broker}}
}

// connect makes a connection if there is none, again and again. It is false when the context ended.
func (p *peer) connect() bool {
	for p.conn == nil || p.conn.Broken() {
		conn, err := p.announcer.conf.Dialer.Dial(p.ctx, p.endpoints())
		if err == nil {
			p.conn = conn
			break
		}
		if !p.pause("cannot reach the broker, trying on", err) {
			return false
		}
	}
	return p.ctx.Err() == nil
}

func (p *peer) endpoints() []meta.Endpoint {
	p.announcer.mu.Lock()
	defer p.announcer.mu.Unlock()
	return p.broker.Endpoints
}

// pause logs the first of several failures and waits. It is false when the context ended.
func (p *peer) pause(message string, err error) bool {
	if p.ctx.Err() != nil {
		return false
	}
	level := slog.LevelWarn
	if p.failing {
		level = slog.LevelDebug
	}
	p.failing = true
	p.logger.Log(p.ctx, level, message, "error", err)
	timer := time.NewTimer(retryAfter)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// tell sends a step's requests until each is answered, and hands out the answers. It is false when the context ended.
func (p *peer) tell(w work) bool {
	var answers []Answer
	reqs, ok := p.build(w)
	for _, req := range reqs {
		var a Answer
		if a, ok = p.send(req); !ok {
			break
		}
		if p.announcer.conf.Answered(a); a.Key == keyStopReplica {
			answers = append(answers, a)
		}
	}
	if !ok {
		w.drop(p.broker.ID, p.reason())
		return false
	}
	for i := range w.waiters {
		w.waiters[i].reply(w.waiters[i].outcome(p.broker.ID, answers))
	}
	return true
}

// build makes the requests of a step for the versions that the broker knows. A broker that lacks one is asked again after a while: there is nothing else
// that could be done for it.
func (p *peer) build(w work) ([]kmsg.Request, bool) {
	for {
		reqs, err := w.requests(w.step, p.conn.Version)
		if err == nil {
			return reqs, true
		}
		_ = p.conn.Close()
		if !p.pause("broker cannot be told of changes", err) || !p.connect() {
			return nil, false
		}
	}
}

// send sends one request until it is answered. It is false when the context ended.
func (p *peer) send(req kmsg.Request) (Answer, bool) {
	for {
		if !p.connect() {
			return Answer{}, false
		}
		resp, err := p.conn.Do(p.ctx, req)
		if err == nil {
			var a Answer
			if a, err = read(&p.broker, req, resp); err == nil {
				p.answered(&a)
				return a, true
			}
			_ = p.conn.Close()
		}
		if errors.Is(err, errNotSent) {
			continue // the broker ended an idle connection
		}
		if !p.pause("broker did not answer, sending again", err) {
			return Answer{}, false
		}
	}
}

// answered logs what is notable about an answer.
func (p *peer) answered(a *Answer) {
	if p.failing {
		p.failing = false
		p.logger.Info("broker answers again")
	}
	if a.Code != 0 {
		p.logger.Warn("broker refused a change", "request", kmsg.NameForKey(a.Key), "code", a.Code)
	}
	failed := 0
	var first PartitionError
	for _, e := range a.Partitions {
		if e.Failed() {
			if failed++; failed == 1 {
				first = e
			}
		}
	}
	if failed > 0 {
		p.logger.Warn("broker failed with partitions", "request", kmsg.NameForKey(a.Key), "partitions", failed,
			"first", first.Topic, "partition", first.Partition, "code", first.Code)
	}
}

// reason is why there will be no answers.
func (p *peer) reason() error {
	p.announcer.mu.Lock()
	defer p.announcer.mu.Unlock()
	if p.announcer.closed {
		return ErrClosed
	}
	return ErrLeft
}

// leave ends the connection and tells who waits for answers that there will be none.
func (p *peer) leave() {
	if p.conn != nil {
		_ = p.conn.Close()
	}
	p.announcer.mu.Lock()
	rest := p.queue
	p.queue = nil
	p.announcer.mu.Unlock()
	for _, s := range rest {
		s.drop(p.broker.ID, p.reason())
	}
	p.cancel()
}

func (s *step) drop(broker int32, why error) {
	for _, w := range s.waiters {
		w.reply(Stopped{Broker: broker, Err: why})
	}
}

func (s *step) empty() bool { return len(s.leaders)+len(s.stops) == 0 && !s.update }
