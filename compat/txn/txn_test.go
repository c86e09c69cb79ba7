package txn

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"gregor/compat/harness"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	partitions = 2
	perStep    = 400              // records that each client is given in one step
	stepLimit  = 45 * time.Second // for a step: it catches a hang, it measures nothing
	maxExits   = 6                // of copiers of one client that end by themselves
)

// run is one client's copy with all that happens to it.
type run struct {
	t      *testing.T
	b      *harness.Broker
	client client
	job    job
	fed    int
	copier *copier
	exits  []string // copiers that ended by themselves
	done   [2]int   // transactions committed and aborted by earlier copiers

	mu   sync.Mutex
	seen map[string]int
	last [partitions]int // newest number seen of each partition
	err  error
}

// newRun starts a client's copy.
func newRun(t *testing.T, b *harness.Broker, c client) *run {
	t.Helper()
	r := newWatched(t, b, c)
	r.copier = start(t, c, r.job)
	return r
}

// newWatched makes a run whose copier the caller starts.
func newWatched(t *testing.T, b *harness.Broker, c client) *run {
	t.Helper()
	j := job{broker: b.Addr(), input: harness.Topic("in-" + c.name), output: harness.Topic("out-" + c.name)}
	j.group, j.id = j.input+"-g", j.input+"-t"
	b.Create(t, partitions, nil, j.input, j.output)
	r := &run{t: t, b: b, client: c, job: j, seen: make(map[string]int)}
	go r.watch(b.Client(t, kgo.ConsumeTopics(j.output), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(200*time.Millisecond)))
	return r
}

// watch reads the output as it grows.
func (r *run) watch(cl *kgo.Client) {
	for r.t.Context().Err() == nil {
		fetches := cl.PollFetches(r.t.Context())
		r.mu.Lock()
		fetches.EachRecord(func(rec *kgo.Record) { r.see(rec) })
		r.mu.Unlock()
	}
}

// awaitSeen waits until n records are in the output, each once.
func (r *run) awaitSeen(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(stepLimit); ; time.Sleep(5 * time.Millisecond) {
		r.mu.Lock()
		have, err := len(r.seen), r.err
		r.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if have >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d records came in %v", have, n, stepLimit)
		}
	}
}

// see notes one record of the output. r.mu is held.
func (r *run) see(rec *kgo.Record) {
	value := string(rec.Value)
	r.seen[value]++
	var n int
	if _, err := fmt.Sscan(value, &n); err != nil || n%partitions != int(rec.Partition) {
		r.err = fmt.Errorf("%q in partition %d was never sent there", value, rec.Partition)
	}
	if r.seen[value] > 1 {
		r.err = fmt.Errorf("record %s came %d times, again at %d-%d", value, r.seen[value], rec.Partition, rec.Offset)
	} else if n < r.last[rec.Partition] {
		r.err = fmt.Errorf("record %d came after %d", n, r.last[rec.Partition])
	}
	r.last[rec.Partition] = max(r.last[rec.Partition], n)
}

// feed gives the client its next records.
func (r *run) feed(cl *kgo.Client) error {
	var records []*kgo.Record
	for range perStep {
		r.fed++
		records = append(records, &kgo.Record{Topic: r.job.input, Partition: int32(r.fed % partitions), Value: fmt.Append(nil, r.fed)})
	}
	return cl.ProduceSync(r.t.Context(), records...).FirstErr()
}

// begin replaces the copier, whose transactional id it takes over.
func (r *run) begin() {
	committed, aborted := r.copier.counts()
	r.done[0] += committed
	r.done[1] += aborted
	r.copier = start(r.t, r.client, r.job)
}

// came waits until n records are in the output. A copier that ends by itself is noted and replaced.
func (r *run) came(n int) error {
	for deadline := time.Now().Add(stepLimit); ; {
		r.mu.Lock()
		have, err := len(r.seen), r.err
		r.mu.Unlock()
		if err != nil || have >= n {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d records came in %v", have, n, stepLimit)
		}
		if failure, ok := r.copier.ended(5 * time.Millisecond); ok {
			r.exits = append(r.exits, failure)
			if len(r.exits) > maxExits {
				return fmt.Errorf("copiers keep ending by themselves: %d of %d records came", have, n)
			}
			r.begin()
		}
	}
}

// step feeds all clients, lets each do something, and waits until all that was fed has come.
func step(t *testing.T, runs []*run, cl *kgo.Client, name string, do func(r *run) error) {
	t.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	for _, r := range runs {
		before := r.fed
		if err := r.feed(cl); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			err := r.came(before + perStep/4)
			if err == nil && do != nil {
				err = do(r)
			}
			if err == nil {
				err = r.came(r.fed)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", r.client.name, name, err)
			}
		})
	}
	wg.Wait()
	t.Logf("%s: %v", name, time.Since(began).Round(10*time.Millisecond))
	if t.Failed() {
		for _, r := range runs {
			t.Logf("%s: copiers ended: %q", r.client.name, r.exits)
		}
		t.FailNow()
	}
}

// TestCopiers: every client, every accident.
func TestCopiers(t *testing.T) {
	b := harness.Start(t, harness.Config{Set: []string{"group.initial.rebalance.delay.ms=0", "group.min.session.timeout.ms=1000"}})
	feeder := b.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	var runs []*run
	for _, c := range clients(t) {
		runs = append(runs, newRun(t, b, c))
	}
	step(t, runs, feeder, "undisturbed", nil)
	step(t, runs, feeder, "clients are killed", func(r *run) error {
		r.copier.kill()
		r.begin()
		return nil
	})
	step(t, runs, feeder, "the broker is killed", brokerKiller(t, b))
	step(t, runs, feeder, "clients are stopped, replaced, and go on", func(r *run) error { return r.replaceStopped() })
	kill := brokerKiller(t, b)
	step(t, runs, feeder, "clients and broker are killed", func(r *run) error {
		r.copier.kill()
		err := kill(r)
		r.begin()
		return err
	})
	step(t, runs, feeder, "undisturbed again", nil)
	if os.Getenv(longVariable) != "" {
		for i := range 30 {
			step(t, runs, feeder, fmt.Sprintf("kill %d", i), brokerKiller(t, b))
		}
	}
	for _, r := range runs {
		r.report()
	}
}

// brokerKiller makes the first run that comes kill the broker and start it again; the others wait for that.
func brokerKiller(t *testing.T, b *harness.Broker) func(*run) error {
	var once sync.Once
	killed := make(chan struct{})
	return func(*run) error {
		once.Do(func() {
			b.Kill(t)
			b.Up(t)
			close(killed)
		})
		<-killed
		return nil
	}
}

// replaceStopped stops the copier in the middle, lets another take over, and lets the first go on: it must end, and what it does not know to be
// over must not be done twice.
func (r *run) replaceStopped() error {
	zombie := r.copier
	zombie.pause(r.t)
	r.begin()
	select {
	case <-r.copier.ready:
	case <-time.After(stepLimit):
		return fmt.Errorf("another copier did not get the transactional id in %v", stepLimit)
	}
	zombie.resume(r.t)
	if failure, ok := zombie.ended(10 * time.Second); ok {
		r.t.Logf("%s: the one that was stopped ended: %.200s", r.client.name, failure)
	} else {
		// It may have lost its partitions and have nothing to do.
		r.t.Logf("%s: the one that was stopped goes on", r.client.name)
		zombie.kill()
	}
	return nil
}

// report says what became of a run. Every copier had transactions to abort.
func (r *run) report() {
	committed, aborted := r.copier.counts()
	committed, aborted = committed+r.done[0], aborted+r.done[1]
	r.t.Logf("%-12s %d records, %d transactions committed, %d aborted, copiers that gave up: %q", r.client.name, r.fed, committed, aborted, r.exits)
	if committed == 0 || aborted == 0 {
		r.t.Errorf("%s: %d transactions committed, %d aborted", r.client.name, committed, aborted)
	}
}
