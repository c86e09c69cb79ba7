package broker

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
	"gregor/log/vfs"
	"gregor/log/vfs/crashfs"
	"gregor/log/vfs/faultfs"
)

var crashSeeds = flag.Int("crash-seeds", 6, "seeds of TestTransactionsSurviveCrashes")

// TestTransactionsSurviveCrashes cuts the power in the middle of transactions of several producers, over and over on the same disk, and looks
// at what a reader of committed records sees after each: of a transaction everything, in all partitions and with its offset, or nothing; what was
// acknowledged as committed is there, what was acknowledged as aborted is not; in order; and nothing hangs.
func TestTransactionsSurviveCrashes(t *testing.T) {
	var commits, unknown int
	for seed := range *crashSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &crashWorld{t: t, r: rand.New(rand.NewPCG(uint64(seed), 3)), dir: t.TempDir(), fs: crashfs.New()}
			for range 4 {
				w.round()
			}
			for _, l := range w.ledger {
				if l.acked.Load() && l.commit {
					commits++
				} else if !l.acked.Load() {
					unknown++
				}
			}
		})
	}
	if !t.Failed() && (commits < 20 || unknown < 5) {
		t.Errorf("%d commits were acknowledged before a crash, %d ends were not: this tests nothing", commits, unknown)
	}
}

const crashPartitions = 3

// crashWorld is a disk that brokers run on one after another.
type crashWorld struct {
	t      *testing.T
	r      *rand.Rand
	dir    string // of the metadata, which has a file system of its own
	fs     *crashfs.FS
	mu     sync.Mutex
	ledger []*ledgerEntry // guarded by mu; of each id in order
	ids    int
}

// ledgerEntry is a transaction as its producer knows it.
type ledgerEntry struct {
	id     string
	number int64 // also the offset that it commits
	commit bool
	wrote  []int32
	acked  atomic.Bool // the end was answered before the crash
}

func (l *ledgerEntry) value(p int32) string { return fmt.Sprintf("%s/%d/%d", l.id, l.number, p) }

func (w *crashWorld) start(fs vfs.FS) (*testBroker, *client) {
	w.t.Helper()
	b := newBroker(w.t, Config{FS: fs}, w.dir, quickGroups("transaction.state.log.num.partitions", "3", "num.partitions", fmt.Sprint(crashPartitions))...)
	if err := b.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(b.abandon)
	c := b.dial()
	c.findTxnCoordinator("t")
	c.createTopic("out")
	return b, c
}

// round runs producers, cuts the power before one of the broker's calls of the disk, and looks at what is left.
func (w *crashWorld) round() {
	faults := faultfs.New(w.fs)
	b, _ := w.start(faults)
	var calls, crashed atomic.Int64
	limit := int64(w.r.IntN(250))
	var producers sync.WaitGroup
	for range 3 {
		w.ids++
		p := crashProducer{w: w, b: b, id: fmt.Sprint("id-", w.ids), r: rand.New(rand.NewPCG(w.r.Uint64(), 1)), crashed: &crashed}
		producers.Go(p.run)
	}
	var after *crashfs.FS
	before, r := w.fs, rand.New(rand.NewPCG(w.r.Uint64(), 2))
	faults.Observe(func(op faultfs.Op) {
		if op.Kind != faultfs.Write && op.Kind != faultfs.Sync && op.Kind != faultfs.SyncAll || calls.Add(1) != limit+1 {
			return
		}
		<-time.After(3 * time.Millisecond) // whoever need not wait for this call hears of it
		crashed.Store(1)                   // what is answered from now on may be lost
		after = before.CrashClone(r, crashfs.Random())
		crashed.Store(2)
	})
	producers.Wait()
	b.abandon()
	w.fs = after
	w.check()
}

// crashProducer runs transactions until the crash.
type crashProducer struct {
	w       *crashWorld
	b       *testBroker
	id      string
	r       *rand.Rand
	crashed *atomic.Int64 // 1 from just before the crash on, 2 after it
}

func (p *crashProducer) stop() bool { return p.crashed.Load() == 2 }

func (p *crashProducer) run() {
	c := p.b.dial()
	x := c.initTxn(p.id, p.r.IntN(2) == 0)
	sequence := make(map[int32]int32) // of the epoch
	for n := int64(1); !p.stop(); n++ {
		l := &ledgerEntry{id: p.id, number: n, commit: p.r.IntN(3) > 0}
		for i := range int32(crashPartitions) {
			if p.r.IntN(3) > 0 || i == 0 {
				l.wrote = append(l.wrote, i)
			}
		}
		p.w.mu.Lock()
		p.w.ledger = append(p.w.ledger, l)
		p.w.mu.Unlock()
		if !p.transaction(x, l, sequence) {
			return
		}
		if p.crashed.Load() == 0 {
			l.acked.Store(true)
		}
		if x.tv2 {
			clear(sequence)
		}
	}
}

// transaction runs one; false when the producer is to stop in the middle of it.
func (p *crashProducer) transaction(x *txnClient, l *ledgerEntry, sequence map[int32]int32) bool {
	check := func(what string, code int16) {
		if code != 0 {
			p.w.t.Errorf("%s: error %d", what, code)
		}
	}
	version, commitVersion := int16(12), int16(5)
	if !x.tv2 {
		version, commitVersion = 11, 4
		check("add offsets", x.addOffsets(p.id))
	}
	for _, part := range l.wrote {
		if !x.tv2 {
			check("add", x.add("out", part))
		}
		x.who.Sequence = sequence[part]
		check("write", retried(p.w.t, func() int16 { return x.write(version, "out", part, l.value(part)) }))
		sequence[part]++
		if p.stop() {
			return false
		}
	}
	check("offset", x.commitOffset(commitVersion, p.id, "out", l.number))
	if p.stop() {
		return false
	}
	check("end", x.end(l.commit))
	return true
}

// check starts a broker on what is left, lets it finish, and compares.
func (w *crashWorld) check() {
	w.t.Helper()
	b, c := w.start(w.fs)
	defer b.abandon()
	waitFor(w.t, func() bool { return loaded(b) })
	for i := range w.ids {
		c.initTxn(fmt.Sprint("id-", i+1), false) // ends what is open
	}
	var seen [crashPartitions][]string
	for p := range int32(crashPartitions) {
		log := b.topics.name("out").partition(p).log
		waitFor(w.t, func() bool { return log.LastStable() == log.EndOffset() })
		seen[p] = c.committedValues("out", p)
	}
	offsets := map[string]int64{}
	for _, l := range w.ledger {
		w.checkOne(l, &seen)
		if slices.Contains(seen[0], l.value(0)) {
			offsets[l.id] = l.number
		}
	}
	for id, n := range offsets {
		waitFor(w.t, func() bool { return c.fetchOne(id, "out").Offset == n })
	}
	w.checkOrder(&seen)
	// The disk that the broker used meanwhile is the next one's.
	w.fs = w.fs.CrashClone(w.r, crashfs.KeepAll())
}

func (w *crashWorld) checkOne(l *ledgerEntry, seen *[crashPartitions][]string) {
	w.t.Helper()
	there := 0
	for _, p := range l.wrote {
		if slices.Contains(seen[p], l.value(p)) {
			there++
		}
	}
	switch {
	case there != 0 && there != len(l.wrote):
		w.t.Errorf("%s transaction %d is seen in %d partitions of %d", l.id, l.number, there, len(l.wrote))
	case there > 0 && !l.commit:
		w.t.Errorf("%s transaction %d is seen and nobody committed it", l.id, l.number)
	case there == 0 && l.commit && l.acked.Load():
		w.t.Errorf("%s transaction %d was committed and is lost", l.id, l.number)
	}
}

// checkOrder looks for repetitions and for transactions of one id in another order.
func (w *crashWorld) checkOrder(seen *[crashPartitions][]string) {
	w.t.Helper()
	for p, values := range seen {
		last := map[string]int64{}
		for _, v := range values {
			id, rest, _ := strings.Cut(v, "/")
			var n int64
			fmt.Sscan(strings.TrimSuffix(rest, fmt.Sprint("/", p)), &n)
			if n <= last[id] {
				w.t.Errorf("partition %d has %s after transaction %d", p, v, last[id])
			}
			last[id] = n
		}
	}
}

// committedValues are all values of a partition as a read_committed consumer gets them.
func (c *client) committedValues(topic string, partition int32) []string {
	c.t.Helper()
	var out []string
	for offset := int64(0); ; {
		r := fetchRequest(topic, partition, offset, 0)
		r.IsolationLevel = 1
		got := ask[*kmsg.FetchResponse](c, 12, r).Topics[0].Partitions[0]
		next := offset
		aborting := map[int64]bool{}
		for set := got.RecordBatches; len(set) >= batch.HeaderSize; {
			h, err := batch.ReadHeader(set)
			if err != nil {
				c.t.Fatal(err)
			}
			if h.Size() > len(set) {
				break
			}
			for _, a := range got.AbortedTransactions {
				if h.BaseOffset+int64(h.LastDelta) >= a.FirstOffset && h.ProducerID == a.ProducerID {
					aborting[a.ProducerID] = true
				}
			}
			switch {
			case h.Control():
				// An aborted transaction ends with its marker; a later one of the producer is in the list by itself.
				got.AbortedTransactions = slices.DeleteFunc(got.AbortedTransactions, func(a kmsg.FetchResponseTopicPartitionAbortedTransaction) bool {
					return a.ProducerID == h.ProducerID && a.FirstOffset < h.BaseOffset && aborting[a.ProducerID]
				})
				delete(aborting, h.ProducerID)
			case h.BaseOffset >= offset && !aborting[h.ProducerID]:
				out = append(out, values(c.t, set[:h.Size()], offset)...)
			}
			next = h.BaseOffset + int64(h.LastDelta) + 1
			set = set[h.Size():]
		}
		if next == offset {
			return out
		}
		offset = next
	}
}
