package work

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"gregor/compat/bench/raw"
	"gregor/compat/bench/stats"
	"gregor/compat/bench/target"
)

const (
	keptTopics = 2000 // in ZooKeeper at the start
	newTopics  = 1000
	allLimit   = 3 * time.Minute
)

// onZooKeeper prepares a broker and a ZooKeeper of the run's own and removes them afterwards.
func (e *Env) onZooKeeper(f func(b *target.Broker) (Values, error)) (v Values, err error) {
	keeper, err := target.StartKeeper(e.Keeper, filepath.Join(e.Dir, e.Name+"-zookeeper"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, keeper.Remove()) }()
	kind := e.Kind
	e.Kind = kind.On(keeper)
	defer func() { e.Kind = kind }()
	return e.onBroker(f)
}

func topicNames(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%04d", prefix, i)
	}
	return names
}

// zookeeperStart times a start, after a clean stop, until clients are told that all topics are led.
func zookeeperStart(e *Env) (Values, error) {
	return e.onZooKeeper(func(b *target.Broker) (Values, error) {
		if err := b.Start(); err != nil {
			return nil, err
		}
		names := topicNames("kept", keptTopics)
		err := b.Do(func(c *raw.Conn) error {
			for len(names) > 0 {
				if err := c.CreateTopics(names[:100]...); err != nil {
					return err
				}
				names = names[100:]
			}
			return c.WaitLed(keptTopics, allLimit)
		})
		if err == nil {
			err = b.Stop()
		}
		if err != nil {
			return nil, err
		}
		took, err := timedStart(b, func(c *raw.Conn) error { return c.AllLed(keptTopics) })
		if err != nil {
			return nil, err
		}
		rss, err := target.RSS(b.PID())
		if err != nil {
			return nil, err
		}
		return Values{"zookeeper-start-2000/ms": milliseconds(took), "zookeeper-start-2000/rss": float64(rss) / 1e6}, b.Stop()
	})
}

// zookeeperCreate times topics made by one request, and by one after the other.
func zookeeperCreate(e *Env) (Values, error) {
	return e.onZooKeeper(func(b *target.Broker) (Values, error) {
		if err := b.Start(); err != nil {
			return nil, err
		}
		v := Values{}
		err := b.Do(func(c *raw.Conn) error {
			start := time.Now()
			if err := c.CreateTopics(topicNames("batch", newTopics)...); err != nil {
				return err
			}
			if err := c.WaitLed(newTopics, allLimit); err != nil {
				return err
			}
			v["zookeeper-create-1000/batch"] = milliseconds(time.Since(start))
			each, start := stats.NewSamples(newTopics), time.Now()
			for _, name := range topicNames("single", newTopics) {
				began := time.Now()
				if err := c.CreateTopics(name); err != nil {
					return err
				}
				each.Add(time.Since(began))
			}
			if err := c.WaitLed(2*newTopics, allLimit); err != nil {
				return err
			}
			v["zookeeper-create-1000/single"] = milliseconds(time.Since(start))
			v["zookeeper-create-1000/p99"] = milliseconds(each.Quantile(0.99))
			return nil
		})
		if err != nil {
			return nil, err
		}
		return v, b.Stop()
	})
}
