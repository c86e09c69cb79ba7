package work

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/compat/bench/raw"
	"gregor/compat/bench/target"
)

const (
	compactKeys    = 10_000_000
	compactUpdates = 3 // records of each key
	compactValue   = 100
	compactSegment = 64 << 20
	compactLimit   = 15 * time.Minute
)

// compact10m writes 10 million keys three times into one partition that is not compacted yet, then asks for compaction, and watches the broker until
// cleaner-offset-checkpoint, which Kafka and gregor write alike, says that all but the active segment is clean. The memory for the offsets of keys is the
// default, 128 MiB, too little for all keys at once.
func compact10m(e *Env) (Values, error) {
	return e.onBroker(func(b *target.Broker) (Values, error) {
		if err := b.Start(); err != nil {
			return nil, err
		}
		keys := compactKeys
		if e.Quick {
			keys /= 20
		}
		size, err := e.fillKeys(keys)
		if err != nil {
			return nil, err
		}
		v, err := e.watchCompaction(size)
		if err != nil {
			return nil, err
		}
		return v, b.Stop()
	})
}

// fillKeys returns the bytes of the segments.
func (e *Env) fillKeys(keys int) (int64, error) {
	configs := map[string]string{"segment.bytes": strconv.Itoa(compactSegment), "min.cleanable.dirty.ratio": "0.01"}
	if err := e.Broker.Do(func(c *raw.Conn) error { return c.CreateTopic(e.topic(), 1, configs) }); err != nil {
		return 0, err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(e.Broker.Addr), kgo.DefaultProduceTopic(e.topic()), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(100_000), kgo.ProducerLinger(5*time.Millisecond))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	var failed atomic.Pointer[error]
	value := make([]byte, compactValue)
	for n := range keys * compactUpdates {
		if failed.Load() != nil {
			break
		}
		key := fmt.Appendf(nil, "key-%012d", int64(n)*7919%int64(keys))
		client.Produce(context.Background(), &kgo.Record{Key: key, Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	if err := client.Flush(context.Background()); err != nil {
		return 0, err
	}
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	size, _, err := e.segments()
	return size, err
}

// segments are the size of a partition's segments and the base offset of the newest.
func (e *Env) segments() (size, newest int64, err error) {
	dir := filepath.Dir(e.Broker.Segment(e.topic(), 0))
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, name := range logs {
		info, err := os.Stat(name)
		if err != nil {
			return 0, 0, err
		}
		base, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(name), ".log"), 10, 64)
		if err != nil {
			return 0, 0, err
		}
		size += info.Size()
		newest = max(newest, base)
	}
	return size, newest, err
}

func (e *Env) watchCompaction(size int64) (Values, error) {
	_, newest, err := e.segments()
	if err != nil {
		return nil, err
	}
	before, err := target.RSS(e.Broker.PID())
	if err != nil {
		return nil, err
	}
	from, err := e.snapshot()
	if err != nil {
		return nil, err
	}
	endPerf := e.perf()
	defer endPerf()
	for _, c := range []struct {
		kind        kmsg.ConfigResourceType
		name, k, to string
	}{{kmsg.ConfigResourceTypeBroker, "", "log.cleaner.backoff.ms", "100"}, {kmsg.ConfigResourceTypeTopic, e.topic(), "cleanup.policy", "compact"}} {
		if err := e.Broker.Do(func(conn *raw.Conn) error { return alterConfig(conn, c.kind, c.name, c.k, c.to) }); err != nil {
			return nil, err
		}
	}
	most := before
	for deadline := time.Now().Add(compactLimit); ; time.Sleep(20 * time.Millisecond) {
		rss, err := target.RSS(e.Broker.PID())
		if err != nil {
			return nil, err
		}
		most = max(most, rss)
		if e.cleanBelow() >= newest {
			break
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("after %v the log is clean below %d of %d", compactLimit, e.cleanBelow(), newest)
		}
	}
	u, err := e.usage(from, size)
	if err != nil {
		return nil, err
	}
	left, _, err := e.segments()
	if err != nil {
		return nil, err
	}
	return Values{
		"compact-10m/mb":   perSecond(size, u.Wall) / 1e6,
		"compact-10m/cpu":  perGB(u.Broker, size),
		"compact-10m/rss":  float64(most-before) / 1e6,
		"compact-10m/left": float64(left) / float64(size),
	}, nil
}

// cleanBelow is what the checkpoint says of the topic; -1 if nothing.
func (e *Env) cleanBelow() int64 {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(e.Broker.Segment(e.topic(), 0))), "cleaner-offset-checkpoint"))
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == e.topic() {
			offset, err := strconv.ParseInt(f[2], 10, 64)
			if err == nil {
				return offset
			}
		}
	}
	return -1
}

func alterConfig(c *raw.Conn, kind kmsg.ConfigResourceType, name, key, value string) error {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version = 1
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kind, name
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = key, &value
	resource.Configs = append(resource.Configs, config)
	req.Resources = append(req.Resources, resource)
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	for _, r := range resp.(*kmsg.IncrementalAlterConfigsResponse).Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return fmt.Errorf("setting %s=%s: %w", key, value, err)
		}
	}
	return nil
}
