package work

import (
	"fmt"
	"time"

	"gregor/compat/bench/raw"
)

const (
	agedRecords  = 8              // of 1 KiB in each partition that is to be deleted
	agedBy       = 48 * time.Hour // their age
	retainLimit  = 60 * time.Second
	retainedPoll = 20 * time.Millisecond
)

// retention1000 times acknowledgements at a fixed rate, first alone, then while retention deletes what 1,000 other partitions have: each rolls its
// segment, moves its log start and deletes the old one, and a second later the file.
func retention1000(e *Env) (Values, error) {
	old := e.topic() + "-old"
	return e.withTopic(e.topic(), 1, func(control *raw.Conn) (Values, error) {
		configs := map[string]string{"retention.ms": "-1", "file.delete.delay.ms": "1000"}
		if err := control.CreateTopic(old, many, configs); err != nil {
			return nil, err
		}
		if err := e.fillAged(old); err != nil {
			return nil, err
		}
		v := Values{}
		if err := e.ackDuring(v, "retention-1000/alone", nil); err != nil {
			return nil, err
		}
		err := e.ackDuring(v, "retention-1000", func(start time.Time) error {
			time.Sleep(time.Until(start.Add(e.Warm)))
			took, err := expire(control, old)
			v["retention-1000/took"] = milliseconds(took)
			return err
		})
		if err != nil {
			return nil, err
		}
		return v, control.DeleteTopic(old)
	})
}

// ackDuring is the time of acknowledgements while beside runs.
func (e *Env) ackDuring(v Values, name string, beside func(start time.Time) error) error {
	c, err := raw.Dial(e.Broker.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	res, err := e.openLoop(e.ackLoop(c), beside)
	if err != nil {
		return err
	}
	for key, x := range quantiles(name, res.Latency) {
		v[key] = x
	}
	return nil
}

// fillAged puts records of two days ago into each of the 1,000 partitions.
func (e *Env) fillAged(topic string) error {
	batch := raw.AppendBatch(nil, raw.Batch{Records: agedRecords, ValueSize: manyRecord, Timestamp: time.Now().Add(-agedBy).UnixMilli(), Seed: 1})
	all := sequence(many)
	for i := 0; i < many; i += manyAtOnce {
		if err := fill(e.Broker.Addr, raw.ProduceRequest(topic, all[i:i+manyAtOnce], batch), manyAtOnce, 1); err != nil {
			return fmt.Errorf("fill %s: %w", topic, err)
		}
	}
	return nil
}

// expire shortens the retention of a topic and waits until nothing is left of it.
func expire(c *raw.Conn, topic string) (took time.Duration, err error) {
	start := time.Now()
	if err := c.SetTopicConfig(topic, "retention.ms", "3600000"); err != nil {
		return 0, err
	}
	for {
		starts, err := c.StartOffsets(topic, many)
		if err != nil {
			return 0, err
		}
		left := 0
		for _, offset := range starts {
			if offset < agedRecords {
				left++
			}
		}
		if took = time.Since(start); left == 0 {
			return took, nil
		}
		if took > retainLimit {
			return took, fmt.Errorf("%d partitions of %s still have old records after %v", left, topic, took)
		}
		time.Sleep(retainedPoll)
	}
}
