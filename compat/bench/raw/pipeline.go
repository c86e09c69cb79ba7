package raw

import (
	"fmt"
	"sync/atomic"
)

// Cycle is a row of encoded requests, sent one after another from the first again after the last.
type Cycle struct {
	bytes  []byte
	starts []int // where each request begins, and the end
}

// NewCycle joins the requests into one buffer, repeated so often that at least depth of them can leave in one write.
func NewCycle(depth int, requests ...[]byte) *Cycle {
	c := &Cycle{starts: []int{0}}
	for len(c.starts) == 1 || len(c.starts)-1 < depth {
		for _, r := range requests {
			c.bytes = append(c.bytes, r...)
			c.starts = append(c.starts, len(c.bytes))
		}
	}
	return c
}

func (c *Cycle) len() int { return len(c.starts) - 1 }

// send writes count requests beginning with number i of the cycle and returns the number that follows.
func (c *Cycle) send(conn *Conn, i, count int) (int, error) {
	for count > 0 {
		n := min(count, c.len()-i)
		if err := conn.Write(c.bytes[c.starts[i]:c.starts[i+n]]); err != nil {
			return i, err
		}
		count -= n
		i = (i + n) % c.len()
	}
	return i, nil
}

// Pipeline keeps InFlight requests on their way over one connection.
type Pipeline struct {
	Conn     *Conn
	Cycle    *Cycle
	InFlight int
	Check    func(frame []byte) error // called for each answer; its error ends the run
	Answers  *atomic.Int64            // counts answers; may be shared by several pipelines
	Limit    int64                    // stop by itself after so many requests; 0: never
}

// Run sends until stop is set or the limit is reached and then reads the answers that are still due.
func (p *Pipeline) Run(stop *atomic.Bool) error {
	credit := make(chan int, p.InFlight+1)
	credit <- p.InFlight
	sent := make(chan writeEnd, 1)
	var total atomic.Int64 // requests sent or being sent
	go func() { sent <- p.write(stop, credit, &total) }()
	err := p.read(credit, sent, &total)
	if err != nil {
		p.Conn.Abort()
	}
	return err
}

type writeEnd struct {
	requests int64
	err      error
}

func (p *Pipeline) write(stop *atomic.Bool, credit <-chan int, total *atomic.Int64) writeEnd {
	next := 0
	for n := range credit {
		for more := true; more; {
			select {
			case k, ok := <-credit:
				n, more = n+k, ok
			default:
				more = false
			}
		}
		if p.Limit > 0 {
			n = int(min(int64(n), p.Limit-total.Load()))
		}
		if n <= 0 || stop.Load() {
			break
		}
		total.Add(int64(n))
		var err error
		if next, err = p.Cycle.send(p.Conn, next, n); err != nil {
			return writeEnd{total.Load(), err}
		}
	}
	return writeEnd{total.Load(), nil}
}

func (p *Pipeline) read(credit chan int, sent <-chan writeEnd, total *atomic.Int64) error {
	var got int64
	var end *writeEnd
	for {
		if end == nil && got == total.Load() { // nothing due: the writer either sends more or has ended
			select {
			case e := <-sent:
				end = &e
			default:
			}
		}
		if end != nil && (end.err != nil || got == end.requests) {
			return end.err
		}
		if end == nil && got == total.Load() {
			// The writer holds credit and is about to send or to end; wait for either without spinning.
			e, ended := p.await(got, sent, total)
			if ended {
				end = &e
			}
			continue
		}
		n, err := p.readSome()
		if err != nil {
			close(credit)
			if end == nil {
				p.Conn.Abort()
				if e := <-sent; e.err != nil {
					return fmt.Errorf("%w (writer: %w)", err, e.err)
				}
			}
			return err
		}
		got += int64(n)
		if end == nil {
			credit <- n
		}
	}
}
