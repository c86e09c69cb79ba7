package txn

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

var (
	steps = flag.Int("steps", 200_000, "events of TestRandom, over all seeds")
	seed  = flag.Uint64("seed", 1, "first seed of TestRandom")
)

// TestRandom lets processes that share a transactional id do anything at any time, with writes that fail, markers that fail, and crashes between
// any two steps that keep any part of what was not durable. After every event a reader of committed records must see of each transaction nothing
// before it was decided, then all of it in all partitions or nothing, in order. A failure names its seed.
func TestRandom(t *testing.T) {
	const perSeed = 2_000
	var sum tally
	for i := range uint64(max(*steps/perSeed, 1)) {
		w := newWorld(*seed + i)
		for n := range perSeed {
			w.event()
			if w.check(); w.failure != "" {
				t.Fatalf("seed %d, event %d: %s\n%s", *seed+i, n, w.failure, strings.Join(w.trace, "\n"))
			}
		}
		if w.drain(); w.failure != "" {
			t.Fatalf("seed %d, at the end: %s\n%s", *seed+i, w.failure, strings.Join(w.trace, "\n"))
		}
		sum.add(&w.tally)
	}
	t.Logf("%+v", sum)
	for name, n := range map[string]int{"commits": sum.commits, "aborts": sum.aborts, "crashes": sum.crashes, "timeouts and fences": sum.fences,
		"refused late writes": sum.late, "kept": sum.kept, "new producer ids": sum.ids} {
		if n == 0 {
			t.Errorf("no %s: the clients do nothing worth testing", name)
		}
	}
}

// tally counts what happened, so that a run that tests nothing is noticed.
type tally struct{ commits, aborts, crashes, fences, late, ids, kept int }

func (y *tally) add(o *tally) {
	y.commits, y.aborts, y.crashes = y.commits+o.commits, y.aborts+o.aborts, y.crashes+o.crashes
	y.fences, y.late, y.ids, y.kept = y.fences+o.fences, y.late+o.late, y.ids+o.ids, y.kept+o.kept
}

// outcome of a transaction.
type outcome int

const (
	undecided outcome = iota
	committed
	aborted
)

// transaction is one of a client, as the test knows it. Its number is its place in the order of beginnings.
type transaction struct {
	number  int
	who     Producer
	told    outcome         // what the client was told
	decided outcome         // what was durable first
	wrote   map[int]bool    // partitions with a durable batch
	asked   map[outcome]int // ends that were sent
}

// item is an entry of a partition: a batch of a transaction, or a marker.
type item struct {
	of     *transaction // nil: a marker
	who    Producer
	commit bool
}

// partLog is a partition. What is below durable survives a crash.
type partLog struct {
	items   []item
	durable int
	acks    []ack // of appends that are not durable
}

type ack struct {
	end  int
	done func(lost bool)
}

// process is a client that uses the id, which may be wrong about itself.
type process struct {
	bump  bool
	who   Producer
	now   *transaction
	added map[int]bool
	open  int // answers and acks that it waits for
	state string
	goal  outcome
	dead  bool
}

// world is the id with its log, the partitions and the clients.
type world struct {
	tally
	r       *rand.Rand
	conf    Config
	x       *Txn
	now     Instant
	parts   []*partLog
	clients []*process
	waiting map[int]func(Reply)
	next    int
	nextID  int64
	all     []*transaction

	open  []Write // not durable, oldest first
	log   []Record
	marks []mark

	failure string
	trace   []string
}

// mark is a marker that was asked for and not written.
type mark struct {
	m  Markers
	at Partition
}

func newWorld(seed uint64) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, 7)), waiting: map[int]func(Reply){}, nextID: 1}
	w.conf = Config{MaxTimeout: time.Hour, AbortEvery: time.Second, ExpireAfter: time.Hour, ExpireEvery: 10 * time.Minute, MarkerRetry: 200 * time.Millisecond,
		Patience: time.Duration(w.r.IntN(2)) * 100 * time.Millisecond}
	w.now.Wall = 1e9
	w.x = New("t", &w.conf)
	for range 1 + w.r.IntN(3) {
		w.parts = append(w.parts, &partLog{})
	}
	if w.r.IntN(3) == 0 { // the epochs come to their end
		m := meta{producer: Producer{0, int16(maxEpoch - w.r.IntN(6))}, lastEpoch: -1, previousID: 0, nextID: -1, nextEpoch: -1, timeout: 1000, state: Empty, started: -1, updated: w.now.Wall}
		w.log = append(w.log, Record{keyOf("t"), valueOf(&m)})
		w.x.meta = m
	}
	w.spawn()
	return w
}

func (w *world) fail(format string, a ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, a...)
	}
}

func (w *world) note(format string, a ...any) {
	if len(w.trace) > 80 {
		w.trace = w.trace[1:]
	}
	w.trace = append(w.trace, fmt.Sprintf("%v ", w.now.Timer)+fmt.Sprintf(format, a...))
}

func (w *world) spawn() {
	w.clients = append(w.clients, &process{bump: w.r.IntN(2) == 0, state: "new", who: none()})
}

// event does one thing.
func (w *world) event() {
	switch n := w.r.IntN(100); {
	case n < 40:
		w.act(w.clients[w.r.IntN(len(w.clients))])
	case n < 55:
		w.storeOne()
	case n < 70:
		w.markOne()
	case n < 82:
		w.sync(w.r.IntN(len(w.parts)))
	case n < 92:
		w.pass(time.Duration(w.r.IntN(300)) * time.Millisecond)
	case n < 94 && len(w.clients) < 4 && w.r.IntN(8) == 0:
		w.spawn()
	case n < 96 && len(w.clients) > 1:
		i := w.r.IntN(len(w.clients))
		w.clients[i].dead = true // kill -9
		w.clients = append(w.clients[:i], w.clients[i+1:]...)
	case n < 97 && w.r.IntN(3) == 0:
		w.crash()
	case n < 98:
		w.late()
	}
}

// wait makes a waiter for a client's request.
func (w *world) wait(c *process, answer func(Reply)) int {
	w.next++
	c.open++
	w.waiting[w.next] = func(r Reply) {
		c.open--
		if !c.dead {
			answer(r)
		}
	}
	return w.next
}

func (w *world) fresh() int64 {
	if !w.x.NeedsID() {
		return -1
	}
	w.nextID++
	return w.nextID
}

// act lets a client go on: one request at a time, as transactional producers do, but for batches.
func (w *world) act(c *process) {
	if c.open > 0 && c.state != "writing" {
		return
	}
	switch c.state {
	case "new":
		w.init(c)
	case "idle":
		w.begin(c)
	case "writing":
		w.write(c)
	case "ending":
		w.end(c)
	}
}

func (w *world) init(c *process) {
	r := Init{Timeout: int32(2000 + w.r.IntN(20_000)), Expected: none(), Fresh: w.fresh()}
	if c.who.ID >= 0 && w.r.IntN(2) == 0 {
		r.Expected = c.who
	}
	r.Keep = w.r.IntN(3) == 0
	w.note("init as %v, keep %v", r.Expected, r.Keep)
	w.apply(w.x.Init(w.now, w.wait(c, func(reply Reply) {
		switch reply.Err {
		case nil:
			if c.who.ID >= 0 && c.who.ID != reply.Producer.ID {
				w.ids++
			}
			c.who, c.state = reply.Producer, "idle"
			if reply.Ongoing != nil {
				w.takeOver(c, *reply.Ongoing)
			}
		case kerr.ProducerFenced:
			c.who = none()
		}
	}), r))
}

// takeOver lets a client end the transaction of another that was kept for it (KIP-939).
func (w *world) takeOver(c *process, of Producer) {
	c.now = w.newestOf(of)
	if c.now == nil || c.now.decided != undecided {
		w.fail("%v is kept, which is %v", of, c.now)
		return
	}
	w.kept++
	c.state, c.goal = "ending", outcome(1+w.r.IntN(2))
}

func (w *world) begin(c *process) {
	c.now = &transaction{number: len(w.all), who: c.who, wrote: map[int]bool{}, asked: map[outcome]int{}}
	w.all = append(w.all, c.now)
	c.added, c.state, c.goal = map[int]bool{}, "writing", committed
	if w.r.IntN(3) == 0 {
		c.goal = aborted
	}
}

// write adds a partition, or writes a batch, or has written enough.
func (w *world) write(c *process) {
	p := w.r.IntN(len(w.parts))
	switch {
	case w.r.IntN(4) == 0 && c.open == 0 && (len(c.added) > 0 || c.bump && c.goal == aborted):
		c.state = "ending"
	case !c.added[p] && c.open == 0:
		version := int16(0)
		if c.bump {
			version = 2
		}
		w.note("%v adds %d", c.who, p)
		w.apply(w.x.Add(w.now, w.wait(c, func(reply Reply) {
			switch reply.Err {
			case nil:
				c.added[p] = true
			case kerr.ConcurrentTransactions:
			default:
				w.lost(c)
			}
		}), c.who, []Partition{at(p)}, version))
	case c.added[p], w.r.IntN(20) == 0: // the second is wrong of the client
		w.append(c, c.now, p)
	}
}

func at(p int) Partition { return Partition{"p", int32(p)} }

// lost is a client that was told that its transaction cannot go on.
func (w *world) lost(c *process) {
	c.state, c.now = "new", nil
	if w.r.IntN(2) == 0 {
		c.who = none()
	}
}

// append writes a batch as the driver does: while Admit allows it, in one step with that.
func (w *world) append(c *process, of *transaction, p int) {
	l := w.parts[p]
	if err := w.x.Admit(of.who, at(p)); err != nil || l.epochOf(of.who.ID) > of.who.Epoch {
		if err != kerr.ConcurrentTransactions && c.now == of {
			w.lost(c)
		}
		return
	}
	l.items = append(l.items, item{of: of, who: of.who})
	w.note("%v writes to %d in transaction %d", of.who, p, of.number)
	c.open++
	l.acks = append(l.acks, ack{len(l.items), func(lost bool) {
		c.open--
		if !lost {
			of.wrote[p] = true
		} else if !c.dead && c.now == of {
			c.goal = aborted // nobody knows
		}
	}})
}

// epochOf is the newest epoch of a producer in a partition.
func (l *partLog) epochOf(id int64) int16 {
	for i := len(l.items) - 1; i >= 0; i-- {
		if l.items[i].who.ID == id {
			return l.items[i].who.Epoch
		}
	}
	return -1
}

func (w *world) end(c *process) {
	x, goal := c.now, c.goal
	x.asked[goal]++
	w.note("%v ends transaction %d: %v", c.who, x.number, goal)
	r := End{Producer: c.who, Commit: goal == committed, Bump: c.bump, Fresh: w.fresh()}
	w.apply(w.x.End(w.now, w.wait(c, func(reply Reply) {
		switch reply.Err {
		case nil:
			x.told = goal
			if c.bump {
				if c.who.ID != reply.Producer.ID {
					w.ids++
				}
				c.who = reply.Producer
			}
			c.state, c.now = "idle", nil
		case kerr.ConcurrentTransactions, kerr.NotCoordinator: // again
		default:
			w.lost(c)
		}
	}), r))
}

// late is a batch of a transaction that was over long ago: of a client that was paused, or is dead, or from the network. With version 0 only
// another epoch is refused: what comes late within one is the hole that version 2 closes.
func (w *world) late() {
	if len(w.all) == 0 {
		return
	}
	of := w.all[w.r.IntN(len(w.all))]
	for _, c := range w.clients {
		if c.now == of || of.who == c.who && !c.bump {
			return
		}
	}
	p := w.r.IntN(len(w.parts))
	// One that is dead may have left a transaction of version 0 open, of the same producer.
	if now := w.current(); w.x.Admit(of.who, at(p)) == nil && (now == nil || now.who != of.who) {
		w.fail("a late batch of transaction %d is admitted", of.number)
	}
	w.tally.late++
}
