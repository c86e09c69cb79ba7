package raw

import (
	"errors"
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
	credit := make(chan int, p.InFlight)
	credit <- p.InFlight
	ended := make(chan writeEnd, 1)
	go func() { ended <- p.write(credit) }()
	var got int64
	for {
		n, err := p.readSome()
		if err != nil {
			p.Conn.Abort()
			close(credit)
			return errors.Join(err, (<-ended).err)
		}
		got += n
		if stop.Load() || p.Limit > 0 && got >= p.Limit {
			break
		}
		credit <- int(n) // never blocks: no more credits than requests in flight exist
	}
	close(credit)
	end := <-ended
	for end.err == nil && got < end.requests {
		n, err := p.readSome()
		if err != nil {
			return err
		}
		got += n
	}
	return end.err
}

// readSome reads one answer and those that came with it.
func (p *Pipeline) readSome() (int64, error) {
	var n int64
	for n == 0 || p.Conn.Buffered() {
		frame, err := p.Conn.ReadFrame()
		if err != nil {
			return n, err
		}
		if err := p.Check(frame); err != nil {
			return n, err
		}
		n++
	}
	p.Answers.Add(n)
	return n, nil
}

type writeEnd struct {
	requests int64
	err      error
}

// write sends as many requests as it gets credit for until credit is closed; requests that were credited together
// leave together. A failed write also wakes the reader.
func (p *Pipeline) write(credit <-chan int) writeEnd {
	var end writeEnd
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
			n = int(min(int64(n), p.Limit-end.requests))
		}
		if next, end.err = p.Cycle.send(p.Conn, next, n); end.err != nil {
			p.Conn.Abort()
			return end
		}
		end.requests += int64(n)
	}
	return end
}
