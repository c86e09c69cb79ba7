package work

import (
	"fmt"
	"os"
	"time"

	"gregor/compat/bench/raw"
	"gregor/compat/bench/stats"
)

const (
	ackRate    = 2000 // records a second
	ackRecord  = 1024
	patience   = 5 * time.Second       // a broker that cannot keep up is given so much longer
	startDelay = 20 * time.Millisecond // between the decision to start and the first request, for both ends to be ready
)

// ack is the time from when a record should be sent to when its acknowledgement is here.
func ack(e *Env) (Values, error) {
	return e.withTopic(e.topic(), 1, func(*raw.Conn) (Values, error) {
		c, err := raw.Dial(e.Broker.Addr)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		res, err := e.openLoop(e.ackLoop(c), nil)
		if err != nil {
			return nil, err
		}
		return quantiles("ack", res.Latency), nil
	})
}

// endToEnd is the time from when a record should be sent to when a consumer at the end of the log has it.
func endToEnd(e *Env) (Values, error) {
	return e.withTopic(e.topic(), 1, func(*raw.Conn) (Values, error) {
		c, err := raw.Dial(e.Broker.Addr)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		consumer, err := raw.Dial(e.Broker.Addr)
		if err != nil {
			return nil, err
		}
		defer consumer.Close()
		loop := e.ackLoop(c)
		tail := &raw.Tail{Conn: consumer, Topic: e.topic(), Loop: loop}
		var samples *stats.Samples
		_, err = e.openLoop(loop, func(start time.Time) error {
			var err error
			if samples, err = tail.Run(start); err != nil {
				c.Abort()
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return quantiles("end-to-end", samples), nil
	})
}

func (e *Env) ackLoop(c *raw.Conn) *raw.OpenLoop {
	batch := raw.AppendBatch(nil, raw.Batch{Records: 1, ValueSize: ackRecord, Timestamp: time.Now().UnixMilli(), Seed: 1})
	return &raw.OpenLoop{
		Conn: c, Cycle: raw.NewCycle(64, raw.ProduceRequest(e.topic(), []int32{0}, batch)), Interval: time.Second / ackRate,
		Warm: int(e.Warm.Seconds() * ackRate), Count: int(e.Window.Seconds() * ackRate),
		Check: func(frame []byte) error { return raw.CheckProduce(frame, 1) }, Patience: patience,
	}
}

// openLoop runs the loop, and beside it the consumer if there is one, and measures CPU while the measured requests are sent.
func (e *Env) openLoop(loop *raw.OpenLoop, consume func(start time.Time) error) (raw.Result, error) {
	start := time.Now().Add(startDelay)
	consumed := make(chan error, 1)
	go func() {
		if consume == nil {
			consumed <- nil
			return
		}
		consumed <- consume(start)
	}()
	type outcome struct {
		res raw.Result
		err error
	}
	produced := make(chan outcome, 1)
	go func() {
		res, err := loop.Run(start)
		produced <- outcome{res, err}
	}()
	err := e.watch(start.Add(loop.Due(loop.Warm)), loop.Due(loop.Count), int64(loop.Count))
	out := <-produced
	for _, one := range []error{<-consumed, out.err} {
		if err == nil {
			err = one
		}
	}
	if late := out.res.Late.Quantile(0.99); late > time.Millisecond {
		fmt.Fprintf(os.Stderr, "    %s: the generator was late itself: p99 %v\n", e.Name, late)
	}
	if out.res.Missing > 0 {
		fmt.Fprintf(os.Stderr, "    %s: cannot keep up: %d of %d requests not answered %v after the last\n", e.Name, out.res.Missing, loop.Count, loop.Patience)
	}
	return out.res, err
}

// watch takes the usage of a stretch of time.
func (e *Env) watch(from time.Time, length time.Duration, count int64) error {
	time.Sleep(time.Until(from))
	s, err := e.snapshot()
	if err != nil {
		return err
	}
	endPerf := e.perf()
	defer endPerf()
	time.Sleep(length)
	_, err = e.usage(s, count)
	return err
}

func quantiles(name string, s *stats.Samples) Values {
	return Values{
		name + "/p50":  milliseconds(s.Quantile(0.5)),
		name + "/p99":  milliseconds(s.Quantile(0.99)),
		name + "/p999": milliseconds(s.Quantile(0.999)),
	}
}
