package groups

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gregor/compat/harness"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	partitions = 6
	// pace is the time between two records of a feeder.
	pace = 20 * time.Millisecond
	// phaseLimit is how long one step of a run may take.
	phaseLimit = 90 * time.Second
)

// run is one group with its topic: a feeder writes records all along, members process them.
type run struct {
	t      *testing.T
	broker *harness.Broker
	client client
	topic  string
	group  string
	adm    *kadm.Client
	err    error // of the first step that failed

	members map[string]*member
	feeding chan struct{} // closed to stop
	fed     chan struct{} // closed when all that was sent is answered

	mu        sync.Mutex // guards what follows
	written   map[int32]map[int64]string
	processed map[int32]map[int64]time.Time // last time
	times     int                           // records processed, again or not
	committed map[int32]int64               // highest that was answered
	faults    []string
}

func newRun(t *testing.T, b *harness.Broker, c client) *run {
	t.Helper()
	name := harness.Topic(strings.ReplaceAll(c.name, " ", "-"))
	b.Create(t, partitions, nil, name)
	return &run{
		t: t, broker: b, client: c, topic: name, group: "group of " + name, adm: kadm.NewClient(b.Client(t, quickRetry())), members: map[string]*member{},
		feeding: make(chan struct{}), fed: make(chan struct{}),
		written: map[int32]map[int64]string{}, processed: map[int32]map[int64]time.Time{}, committed: map[int32]int64{},
	}
}

func quickRetry() kgo.Opt {
	return kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond })
}

// feed writes records, to each partition in turn, until feeding is closed.
func (r *run) feed(cl *kgo.Client) {
	defer close(r.fed)
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-r.feeding:
			ctx, cancel := context.WithTimeout(context.Background(), phaseLimit)
			defer cancel()
			if err := cl.Flush(ctx); err != nil {
				r.fault("feeder: %v", err)
			}
			return
		case <-ticker.C:
		}
		rec := &kgo.Record{Topic: r.topic, Partition: int32(i % partitions), Value: []byte(strconv.Itoa(i))}
		cl.Produce(context.Background(), rec, func(rec *kgo.Record, err error) {
			if err != nil {
				r.fault("feeder: %v", err)
				return
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			at(r.written, rec.Partition)[rec.Offset] = string(rec.Value)
		})
	}
}

func at[V any](m map[int32]map[int64]V, p int32) map[int64]V {
	if m[p] == nil {
		m[p] = map[int64]V{}
	}
	return m[p]
}

func (r *run) fault(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// start adds a member.
func (r *run) start(name string, id identity) error {
	id.broker, id.group, id.topic = r.broker.Addr(), r.group, r.topic
	m, err := startMember(r.t, r.client, name, id, r.note)
	if err == nil {
		r.members[name] = m
	}
	return err
}

// note takes a line of a member.
func (r *run) note(m *member, word string, p int32, offset int64, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if word == "committed" {
		r.committed[p] = max(r.committed[p], offset)
		return
	}
	r.times++
	at(r.processed, p)[offset] = time.Now()
	// The feeder may not have its answer yet.
	if want, ok := at(r.written, p)[offset]; ok && want != value {
		r.faults = append(r.faults, fmt.Sprintf("member %s got %q at offset %d of partition %d, where %q was written", m.name, value, offset, p, want))
	}
}

// await waits until cond says "", and reports what it said last when it does not.
func (r *run) await(what string, cond func() string) error {
	limit := time.Now().Add(phaseLimit)
	for {
		said := cond()
		if said == "" {
			return nil
		}
		if time.Now().After(limit) {
			var b strings.Builder
			for _, m := range r.members {
				fmt.Fprintf(&b, "\n  %v", m)
			}
			return fmt.Errorf("%s: after %v %s%s", what, phaseLimit, said, b.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// everywhere waits until, from now on, each partition had a record processed that is new, and each of these members processed one.
func (r *run) everywhere(what string, names ...string) error {
	now := time.Now()
	before := map[int32]int64{}
	r.mu.Lock()
	for p := range int32(partitions) {
		before[p] = int64(len(r.written[p]))
	}
	r.mu.Unlock()
	return r.await(what, func() string {
		for _, name := range names {
			if !r.members[name].processedSince(now) {
				return "member " + name + " processed nothing"
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for p := range int32(partitions) {
			fresh := false
			for offset := range r.processed[p] {
				fresh = fresh || offset >= before[p]
			}
			if !fresh {
				return fmt.Sprintf("no new record of partition %d was processed", p)
			}
		}
		return ""
	})
}

// lost names a record that was written and not processed.
func (r *run) lost() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, records := range r.written {
		for offset := range records {
			if _, ok := r.processed[p][offset]; !ok {
				return fmt.Sprintf("offset %d of partition %d was not processed", offset, p)
			}
		}
	}
	return ""
}

// offsets asks the broker for the group's offsets.
func (r *run) offsets() (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	resp, err := r.adm.FetchOffsets(ctx, r.group)
	if err != nil {
		return nil, err
	}
	got := map[int32]int64{}
	for p, o := range resp[r.topic] {
		if o.Err != nil {
			return nil, o.Err
		}
		got[p] = o.At
	}
	return got, nil
}

// committedAtLeast checks that what was answered is there, and nothing that nobody processed.
func (r *run) committedAtLeast() error {
	r.mu.Lock()
	answered := map[int32]int64{}
	for p, o := range r.committed {
		answered[p] = o
	}
	r.mu.Unlock()
	got, err := r.offsets()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, want := range answered {
		if got[p] < want {
			return fmt.Errorf("partition %d: commit of %d was answered, the offset is %d", p, want, got[p])
		}
	}
	return nil
}

// committedAll names a partition whose offset is not its end.
func (r *run) committedAll() string {
	got, err := r.offsets()
	if err != nil {
		return err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range int32(partitions) {
		if want := int64(len(r.written[p])); got[p] != want {
			return fmt.Sprintf("the offset of partition %d is %d, its end is %d", p, got[p], want)
		}
	}
	return ""
}
