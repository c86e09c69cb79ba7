package work

import (
	"fmt"
	"sync/atomic"
	"time"

	"gregor/compat/bench/raw"
	"gregor/compat/bench/target"
)

const (
	oldPartitions = 8
	oldBytes      = 256 << 20 // of values, in all partitions together
	oldValue      = 1024
	oldRecords    = 60 // in a batch
)

// fetchV2 fills 8 partitions with batches of magic 2 and reads them as consumers of 0.10 do, who know messages of magic 1 only: the broker
// converts all of it.
func fetchV2(e *Env) (Values, error) {
	v := Values{}
	for _, codec := range []string{"none", "gzip"} {
		batch := raw.AppendBatch(nil, raw.Batch{Records: oldRecords, ValueSize: oldValue, Timestamp: time.Now().UnixMilli(), Seed: 1, Letters: true})
		if codec == "gzip" {
			var err error
			if batch, err = raw.Gzipped(batch); err != nil {
				return nil, err
			}
		}
		topic := e.topic() + "-" + codec
		_, err := e.withTopic(topic, oldPartitions, func(control *raw.Conn) (Values, error) { return v, e.fetchOld(control, topic, codec, batch, v) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", codec, err)
		}
	}
	return v, nil
}

func (e *Env) fetchOld(control *raw.Conn, topic, codec string, batch []byte, v Values) error {
	const times = oldBytes / oldValue / oldRecords / oldPartitions
	if err := fill(e.Broker.Addr, raw.ProduceRequest(topic, sequence(oldPartitions), batch), oldPartitions, times); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	ends, err := control.EndOffsets(topic, oldPartitions)
	if err != nil {
		return err
	}
	for _, conns := range []int{1, 8} {
		before, err := target.RSS(e.Broker.PID())
		if err != nil {
			return err
		}
		u, err := e.oldReaders(topic, conns, ends)
		if err != nil {
			return err
		}
		after, err := target.RSS(e.Broker.PID())
		if err != nil {
			return err
		}
		name := fmt.Sprintf("fetch-v2-%s-%d", codec, conns)
		v[name+"/mb"] = perSecond(u.Count, u.Wall) / 1e6
		v[name+"/cpu"] = perGB(u.Broker, u.Count)
		v[name+"/rss"] = float64(max(after-before, 0)) / 1e6 / float64(conns)
	}
	return nil
}

func (e *Env) oldReaders(topic string, conns int, ends []int64) (Usage, error) {
	var bytes atomic.Int64
	var loads []func(*atomic.Bool) error
	for i := range conns {
		c, err := raw.Dial(e.Broker.Addr)
		if err != nil {
			return Usage{}, err
		}
		defer c.Close()
		r := raw.OldReader{Conn: c, Topic: topic, Partition: int32(i % oldPartitions), End: ends[i%oldPartitions], MaxBytes: fetchAtOnce, Bytes: &bytes}
		loads = append(loads, r.Run)
	}
	return e.steady(&bytes, loads...)
}
