package work

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"gregor/compat/bench/raw"
	"gregor/compat/bench/target"
)

const (
	idleConns  = 2000
	idleSettle = 5 * time.Second  // from start to looking at the memory
	idleWatch  = 10 * time.Second // how long its CPU is watched
	fillEach   = 64               // records of 1 KiB in each of the 1,000 partitions before the restarts
)

// onBroker prepares a broker of the run's own and removes it afterwards.
func (e *Env) onBroker(f func(b *target.Broker) (Values, error)) (Values, error) {
	b, err := e.Kind.New(context.Background(), filepath.Join(e.Dir, e.Name), false)
	if err != nil {
		return nil, err
	}
	e.Broker = b
	v, err := f(b)
	if removed := b.Remove(); err == nil {
		err = removed
	}
	return v, err
}

// startEmpty times the start on an empty directory and then looks at the idle broker.
func startEmpty(e *Env) (Values, error) {
	return e.onBroker(func(b *target.Broker) (Values, error) {
		took, err := timedStart(b, (*raw.Conn).Ready)
		if err != nil {
			return nil, err
		}
		v := Values{"start-empty/ms": milliseconds(took)}
		if err := e.idle(b, v); err != nil {
			return nil, err
		}
		if err := idleConnections(b, v); err != nil {
			return nil, err
		}
		return v, b.Stop()
	})
}

func timedStart(b *target.Broker, check func(*raw.Conn) error) (time.Duration, error) {
	start, err := b.Exec()
	if err != nil {
		return 0, err
	}
	return b.Ready(start, check)
}

func (e *Env) idle(b *target.Broker, v Values) error {
	time.Sleep(idleSettle)
	rss, err := target.RSS(b.PID())
	if err != nil {
		return err
	}
	from, err := e.snapshot()
	if err != nil {
		return err
	}
	watch := idleWatch
	if e.Quick {
		watch /= 2
	}
	time.Sleep(watch)
	u, err := e.usage(from, 0)
	if err != nil {
		return err
	}
	v["idle/rss"] = float64(rss) / 1e6
	v["idle/cpu"] = 100 * u.Broker.Seconds() / u.Wall.Seconds()
	return nil
}

// idleConnections opens connections that have each asked ApiVersions and then say nothing more.
func idleConnections(b *target.Broker, v Values) error {
	before, err := target.RSS(b.PID())
	if err != nil {
		return err
	}
	for range idleConns {
		c, err := raw.Dial(b.Addr)
		if err != nil {
			return fmt.Errorf("idle connections (see ulimit -n): %w", err)
		}
		defer c.Close()
		if err := c.Versions(); err != nil {
			return err
		}
	}
	time.Sleep(time.Second)
	after, err := target.RSS(b.PID())
	v["idle/connection"] = max(float64(after-before), 0) / 1e3 / idleConns
	return err
}

// start1000 times restarts on 1,000 partitions that hold records, after a clean stop and after kill -9, until every
// partition answers ListOffsets.
func start1000(e *Env) (Values, error) {
	return e.onBroker(func(b *target.Broker) (Values, error) {
		if err := b.Start(); err != nil {
			return nil, err
		}
		allAnswer := func(c *raw.Conn) error {
			_, err := c.EndOffsets(e.topic(), many)
			return err
		}
		if err := b.Do(func(c *raw.Conn) error { return c.CreateTopic(e.topic(), many, nil) }); err != nil {
			return nil, err
		}
		if err := e.fillMany(fillEach); err != nil {
			return nil, err
		}
		if err := b.Stop(); err != nil {
			return nil, err
		}
		clean, err := timedStart(b, allAnswer)
		if err != nil {
			return nil, fmt.Errorf("after a clean stop: %w", err)
		}
		if err := e.fillMany(fillEach); err != nil {
			return nil, err
		}
		b.Kill()
		killed, err := timedStart(b, allAnswer)
		if err != nil {
			return nil, fmt.Errorf("after kill -9: %w", err)
		}
		return Values{"start-1000/clean": milliseconds(clean), "start-1000/killed": milliseconds(killed)}, b.Stop()
	})
}
