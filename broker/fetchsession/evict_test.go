package fetchsession

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func many(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("a/%d@0", i))
	}
	return out
}

// try asks for a session with n partitions and returns its id.
func try(t *testing.T, c *Cache, n int, follower bool, now time.Time) int32 {
	t.Helper()
	ctx, err := c.Begin(request(0, 0, many(n)...), follower, now)
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Len() != n || !ctx.Include(0, Answer{}) {
		t.Fatal("request is not served in full")
	}
	return end(ctx)
}

func TestFullCacheServesWithoutSession(t *testing.T) {
	c := New(2)
	a, b := open(t, c, start, "a/0@0"), open(t, c, start, "a/0@0")
	if id := try(t, c, 1, false, start); id != 0 {
		t.Fatalf("got session %d from a full cache", id)
	}
	end(begin(t, c, request(a, 1), start))
	end(begin(t, c, request(b, 1), start))
	if id := try(t, New(0), 5, false, start); id != 0 {
		t.Errorf("got session %d without slots", id)
	}
}

func TestEviction(t *testing.T) {
	idle := IdleEviction + time.Millisecond
	tests := []struct {
		name        string
		size        int
		follower    bool
		after       time.Duration
		newSize     int
		newFollower bool
		evicted     bool
	}{
		{name: "equal", size: 2, newSize: 2},
		{name: "smaller", size: 2, newSize: 1},
		{name: "larger", size: 2, newSize: 3, evicted: true},
		{name: "larger than a follower's", size: 2, follower: true, newSize: 3},
		{name: "follower", size: 2, newSize: 1, newFollower: true, evicted: true},
		{name: "larger follower", size: 2, follower: true, newSize: 3, newFollower: true, evicted: true},
		{name: "smaller when just not idle", size: 2, after: IdleEviction, newSize: 1},
		{name: "smaller when idle", size: 2, after: idle, newSize: 1, evicted: true},
		{name: "anyone when a follower is idle", size: 2, follower: true, after: idle, newSize: 1, evicted: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := New(1)
			old := try(t, c, tt.size, tt.follower, start)
			id := try(t, c, tt.newSize, tt.newFollower, start.Add(tt.after))
			if (id != 0) != tt.evicted {
				t.Fatalf("new session %d, want one: %v", id, tt.evicted)
			}
			if !tt.evicted {
				end(begin(t, c, request(old, 1), start))
				return
			}
			wantError(t, c, request(old, 1), ErrUnknownID)
			if s := c.Stats(); s.Evicted != 1 || s.Sessions != 1 || s.Partitions != tt.newSize {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func TestUseKeepsASessionFromBeingIdle(t *testing.T) {
	c := New(2)
	a, b := open(t, c, start, "a/0@0"), open(t, c, start, "a/0@0")
	late := start.Add(IdleEviction)
	end(begin(t, c, request(a, 1), late))
	if id := try(t, c, 1, false, late.Add(time.Second)); id == 0 {
		t.Fatal("idle session was kept")
	}
	wantError(t, c, request(b, 1), ErrUnknownID)
	end(begin(t, c, request(a, 2), late))
}

func TestGrowthMakesASessionWorthMore(t *testing.T) {
	c := New(2)
	a := open(t, c, start, "a/0@0")
	b := open(t, c, start, "a/0@0", "a/1@0")
	end(begin(t, c, request(a, 1, many(5)...), start))
	if id := try(t, c, 3, false, start); id == 0 {
		t.Fatal("the smallest session was kept")
	}
	wantError(t, c, request(b, 1), ErrUnknownID)
	end(begin(t, c, request(a, 2), start))
}

func TestFloodDoesNotDriveOutARealConsumer(t *testing.T) {
	c := New(100)
	consumer := open(t, c, start, many(500)...)
	now := start
	for i := range 5000 {
		now = now.Add(50 * time.Millisecond)
		try(t, c, 1, false, now)
		if i%10 == 0 {
			end(begin(t, c, request(consumer, int32(i/10+1)), now))
		}
	}
	if s := c.Stats(); s.Sessions > 100 || s.Partitions > 600 {
		t.Errorf("cache grew: %+v", s)
	}
}

func TestPartitionsAreBounded(t *testing.T) {
	c := New(2)
	c.maxPartitions = 10
	a := open(t, c, start, many(6)...)
	if id := try(t, c, 11, false, start); id != 0 {
		t.Fatalf("session %d has more partitions than all may have", id)
	}
	if id := try(t, c, 5, false, start); id != 0 {
		t.Fatalf("session %d does not fit", id)
	}
	b := open(t, c, start, many(4)...)
	ctx := begin(t, c, request(b, 1, many(5)...), start)
	if ctx.Len() != 5 || !ctx.Include(4, Answer{}) || ctx.SessionID() != 0 {
		t.Errorf("session that grew too large: %d partitions, id %d", ctx.Len(), ctx.SessionID())
	}
	ctx.End()
	wantError(t, c, request(b, 2), ErrUnknownID)
	end(begin(t, c, request(a, 1), start))
	if s := c.Stats(); s.Partitions != 6 {
		t.Errorf("stats %+v", s)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	c := New(10)
	id := open(t, c, start, many(1000)...)
	req := request(id, 0, "a/500@7", "a/501@7")
	epoch := int32(0)
	got := testing.AllocsPerRun(100, func() {
		epoch++
		req.SessionEpoch = epoch
		ctx, err := c.Begin(req, false, start)
		if err != nil {
			t.Fatal(err)
		}
		for i := range ctx.Len() {
			p := ctx.Partition(i)
			ctx.Include(i, Answer{Records: p.Partition == 500})
		}
		ctx.End()
	})
	if got > 0 {
		t.Errorf("%v allocations in an incremental request of 1000 partitions", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	c := New(8)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(1, uint64(g)))
			var id, epoch int32
			for i := range 300 {
				now := start.Add(time.Duration(i) * time.Second)
				ctx, err := c.Begin(request(id, epoch, many(1+r.IntN(4))...), g == 0, now)
				if err != nil {
					id, epoch = 0, 0
					continue
				}
				id, epoch = ctx.SessionID(), epoch+1
				if id == 0 {
					epoch = 0
				}
				for i := range ctx.Len() {
					ctx.Include(i, Answer{Records: r.IntN(2) == 0})
				}
				if r.IntN(20) == 0 {
					ctx.Cancel()
					epoch = -1 // closes the session, if it is still there
					continue
				}
				ctx.End()
			}
		}()
	}
	wg.Wait()
	s := c.Stats()
	n := 0
	for _, s := range c.sessions {
		n += len(s.parts.order)
	}
	if s.Sessions > 8 || s.Partitions != n || c.byUse.Len() != s.Sessions || len(c.byValue) != s.Sessions {
		t.Errorf("stats %+v, counted %d partitions, %d by use, %d by value", s, n, c.byUse.Len(), len(c.byValue))
	}
}

// FuzzOrder runs requests made of bytes against a plain model of one session: a slice in order and what was told of each partition.
func FuzzOrder(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3})
	f.Add([]byte{0x10, 0x21, 0x32, 0x83, 0x94, 0xff, 0x05})
	f.Fuzz(func(t *testing.T, ops []byte) {
		c := New(1)
		id := open(t, c, start, many(4)...)
		model := []int32{0, 1, 2, 3}
		epoch := int32(0)
		for _, op := range ops[:min(len(ops), 500)] {
			p := int32(op & 7)
			epoch++
			r := request(id, epoch)
			if op&0x10 != 0 {
				r = request(id, epoch, fmt.Sprintf("a/%d@0", p))
			}
			if op&0x20 != 0 {
				forget(r, "a", (p+1)&7)
			}
			model = modelStep(model, r)
			ctx := begin(t, c, r, start)
			compare(t, ctx, model)
			if len(model) == 0 {
				return
			}
			var quiet, loud []int32
			for i, at := range model {
				records := op>>6 == byte(at&3)
				ctx.Include(i, Answer{Records: records})
				if records {
					loud = append(loud, at)
				} else {
					quiet = append(quiet, at)
				}
			}
			ctx.End()
			model = append(quiet, loud...)
		}
	})
}

func modelStep(model []int32, r *kmsg.FetchRequest) []int32 {
	for _, topic := range r.Topics {
		p, there := topic.Partitions[0].Partition, false
		for _, m := range model {
			there = there || m == p
		}
		if !there {
			model = append(model, p)
		}
	}
	for _, topic := range r.ForgottenTopics {
		var kept []int32
		for _, m := range model {
			if m != topic.Partitions[0] {
				kept = append(kept, m)
			}
		}
		model = kept
	}
	return model
}

func compare(t *testing.T, ctx *Context, model []int32) {
	t.Helper()
	var got []int32
	for i := range ctx.Len() {
		got = append(got, ctx.Partition(i).Partition)
	}
	if fmt.Sprint(got) != fmt.Sprint(model) {
		t.Fatalf("reads %v, want %v", got, model)
	}
}

func BenchmarkIncremental1000(b *testing.B) {
	c := New(10)
	ctx, err := c.Begin(request(0, 0, many(1000)...), false, start)
	if err != nil {
		b.Fatal(err)
	}
	id := end(ctx)
	req := request(id, 0)
	b.ReportAllocs()
	for b.Loop() {
		req.SessionEpoch = nextEpoch(req.SessionEpoch)
		ctx, err := c.Begin(req, false, start)
		if err != nil {
			b.Fatal(err)
		}
		for i := range ctx.Len() {
			ctx.Include(i, Answer{Records: i == 3})
		}
		ctx.End()
	}
}
