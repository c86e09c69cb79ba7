package fetchsession

import (
	"math"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestSessionlessKeepsNothing(t *testing.T) {
	c := New(10)
	old := request(0, 0, "a/0@1")
	old.Version = 6 // has no session fields; epoch 0 here must not mean anything
	for _, r := range []*kmsg.FetchRequest{request(0, -1, "a/0@1"), old} {
		ctx := begin(t, c, r, start)
		if !ctx.Include(0, Answer{}) || ctx.SessionID() != 0 {
			t.Errorf("v%d: partition left out or session %d made", r.Version, ctx.SessionID())
		}
		ctx.End()
	}
	if s := c.Stats(); s != (Stats{}) {
		t.Errorf("stats %+v", s)
	}
}

func TestDecodedOldRequestHasNoSession(t *testing.T) {
	r := request(0, 0, "a/0@0")
	r.Version = 4
	back := kmsg.NewPtrFetchRequest()
	back.Version = 4
	if err := back.ReadFrom(r.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	if id := end(begin(t, New(1), back, start)); id != 0 {
		t.Errorf("session %d", id)
	}
}

func TestIncrementalNamesOnlyChanges(t *testing.T) {
	c := New(10)
	id := open(t, c, start, "a/0@10", "a/1@20", "b/0@30")

	ctx := begin(t, c, request(id, 1), start)
	if got, want := read(ctx), []string{"a/0@10", "a/1@20", "b/0@30"}; !slices.Equal(got, want) {
		t.Fatalf("first incremental reads %v, want %v", got, want)
	}
	if ctx.SessionID() != id {
		t.Fatalf("session id %d, want %d", ctx.SessionID(), id)
	}
	end(ctx)

	r := forget(request(id, 2, "a/1@21", "c/5@0"), "b", 0, 7)
	ctx = begin(t, c, forget(r, "z", 0), start)
	if got, want := read(ctx), []string{"a/0@10", "a/1@21", "c/5@0"}; !slices.Equal(got, want) {
		t.Fatalf("after changes reads %v, want %v", got, want)
	}
	end(ctx)
	if s := c.Stats(); s.Sessions != 1 || s.Partitions != 3 {
		t.Errorf("stats %+v", s)
	}

	ctx = begin(t, c, request(id, 3), start)
	if got, want := read(ctx), []string{"a/0@10", "a/1@21", "c/5@0"}; !slices.Equal(got, want) {
		t.Fatalf("changes did not stay: %v, want %v", got, want)
	}
	end(ctx)
}

func TestEveryFieldOfAPartitionIsUpdated(t *testing.T) {
	c := New(10)
	id := open(t, c, start, "a/0@1")
	r := request(id, 1, "a/0@2")
	p := &r.Topics[0].Partitions[0]
	p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.LogStartOffset, p.PartitionMaxBytes, p.HighWatermark = 3, 4, 5, 6, 7
	end(begin(t, c, r, start))
	got := *begin(t, c, request(id, 2), start).Partition(0)
	want := Partition{Topic: "a", FetchOffset: 2, CurrentLeaderEpoch: 3, LastFetchedEpoch: 4, LogStartOffset: 5, MaxBytes: 6, HighWatermark: 7}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestForgottenPartitionComesBackAsNew(t *testing.T) {
	c := New(10)
	id := open(t, c, start, "a/0@1", "b/0@2")
	end(begin(t, c, forget(request(id, 1), "a", 0), start))
	ctx := begin(t, c, request(id, 2, "a/0@9"), start)
	if got, want := read(ctx), []string{"b/0@2", "a/0@9"}; !slices.Equal(got, want) {
		t.Fatalf("reads %v, want %v", got, want)
	}
	if ctx.Include(0, Answer{}) {
		t.Error("unchanged partition is sent")
	}
	if !ctx.Include(1, Answer{}) {
		t.Error("partition that came back is not sent")
	}
}

func TestIncludeSendsNews(t *testing.T) {
	base := Answer{HighWatermark: 10, LastStableOffset: 9, LogStartOffset: 1}
	with := func(f func(*Answer)) Answer { a := base; f(&a); return a }
	steps := []struct {
		name   string
		answer Answer
		want   bool
	}{
		{"nothing new", base, false},
		{"high watermark", with(func(a *Answer) { a.HighWatermark = 11 }), true},
		{"and back", base, true},
		{"last stable offset", with(func(a *Answer) { a.LastStableOffset = 10 }), true},
		{"and back", base, true},
		{"log start", with(func(a *Answer) { a.LogStartOffset = 2 }), true},
		{"and back", base, true},
		{"quiet again", base, false},
		{"records", with(func(a *Answer) { a.Records = true }), true},
		{"quiet after records", base, false},
		{"preferred replica or diverging epoch", with(func(a *Answer) { a.Redirect = true }), true},
		{"the same once more", with(func(a *Answer) { a.Redirect = true }), true},
		{"quiet after redirect", base, false},
		{"error", Answer{HighWatermark: -1, LastStableOffset: -1, LogStartOffset: -1, Error: true}, true},
		{"same error", Answer{HighWatermark: -1, LastStableOffset: -1, LogStartOffset: -1, Error: true}, true},
		{"healthy again", base, true},
		{"error that keeps the offsets", with(func(a *Answer) { a.Error = true }), true},
		{"healthy with the same offsets", base, true},
		{"quiet at the end", base, false},
	}
	c := New(10)
	ctx := begin(t, c, request(0, 0, "a/0@1"), start)
	if !ctx.Include(0, base) {
		t.Fatal("full fetch leaves a partition out")
	}
	id := ctx.SessionID()
	ctx.End()
	for i, s := range steps {
		ctx := begin(t, c, request(id, int32(i+1)), start)
		if got := ctx.Include(0, s.answer); got != s.want {
			t.Errorf("step %d, %s: include %v, want %v", i, s.name, got, s.want)
		}
		ctx.End()
	}
}

func TestPartitionsWithRecordsMoveToTheEnd(t *testing.T) {
	c := New(10)
	id := open(t, c, start, "a/0@0", "b/0@0", "c/0@0", "d/0@0")
	ctx := begin(t, c, request(id, 1), start)
	ctx.Include(0, Answer{Records: true})
	ctx.Include(2, Answer{Records: true})
	ctx.End()
	ctx = begin(t, c, request(id, 2), start)
	if got, want := read(ctx), []string{"b/0@0", "d/0@0", "a/0@0", "c/0@0"}; !slices.Equal(got, want) {
		t.Errorf("reads %v, want %v", got, want)
	}
	end(ctx)
	ctx = begin(t, c, request(id, 3), start)
	if got, want := read(ctx), []string{"b/0@0", "d/0@0", "a/0@0", "c/0@0"}; !slices.Equal(got, want) {
		t.Errorf("answer without records changed the order: %v, want %v", got, want)
	}
}

func TestEpochs(t *testing.T) {
	c := New(10)
	id := open(t, c, start, "a/0@0")
	wantError(t, c, request(id, 2), ErrEpoch)
	wantError(t, c, request(id, -2), ErrEpoch)
	wantError(t, c, request(id+1, 1), ErrUnknownID)
	wantError(t, c, request(0, 1), ErrUnknownID)
	end(begin(t, c, request(id, 1), start)) // a refused request changes nothing
	wantError(t, c, request(id, 1), ErrEpoch)
	end(begin(t, c, request(id, 2), start))

	c.sessions[id].epoch = math.MaxInt32
	end(begin(t, c, request(id, math.MaxInt32), start))
	end(begin(t, c, request(id, 1), start))
}

func TestCodes(t *testing.T) {
	for want, err := range map[int16]*Error{70: ErrUnknownID, 71: ErrEpoch, 106: ErrTopicIDs} {
		if err.Code != want || err.Error() == "" {
			t.Errorf("%v has code %d, want %d", err, err.Code, want)
		}
	}
}

func TestNamesAndIDsDoNotMix(t *testing.T) {
	c := New(10)
	names := open(t, c, start, "a/0@0")
	wantError(t, c, byID(names, 1), ErrTopicIDs)
	end(begin(t, c, request(names, 1), start))

	ids := end(begin(t, c, byID(0, 0, "a/0@0", "b/1@5"), start))
	wantError(t, c, request(ids, 1), ErrTopicIDs)
	ctx := begin(t, c, forget(byID(ids, 1, "b/1@6"), "a", 0), start)
	if got, want := read(ctx), []string{"b/1@6"}; !slices.Equal(got, want) {
		t.Errorf("reads %v, want %v", got, want)
	}
}

func TestClosing(t *testing.T) {
	c := New(10)
	first := open(t, c, start, "a/0@0")
	ctx := begin(t, c, request(first, 0, "b/0@0"), start) // new session, old one closed
	second := end(ctx)
	wantError(t, c, request(first, 1), ErrUnknownID)
	end(begin(t, c, request(second, 1), start))

	if id := end(begin(t, c, request(second, -1, "b/0@1"), start)); id != 0 {
		t.Errorf("final fetch answers session %d", id)
	}
	wantError(t, c, request(second, 2), ErrUnknownID)

	last := open(t, c, start, "a/0@0", "a/1@0")
	ctx = begin(t, c, forget(request(last, 1), "a", 0, 1), start)
	if ctx.Len() != 0 || ctx.SessionID() != 0 {
		t.Errorf("emptied session: %d partitions, id %d", ctx.Len(), ctx.SessionID())
	}
	ctx.End()
	wantError(t, c, request(last, 2), ErrUnknownID)
	if s := c.Stats(); s != (Stats{}) {
		t.Errorf("stats %+v", s)
	}
}

func TestThrottleKeepsTheSession(t *testing.T) {
	c := New(10)
	if id := begin(t, c, request(0, 0, "a/0@0"), start).Throttle(); id != 0 || c.Stats().Sessions != 0 {
		t.Errorf("throttled full fetch answers session %d", id)
	}
	if id := begin(t, c, request(0, -1, "a/0@0"), start).Throttle(); id != 0 {
		t.Errorf("throttled sessionless fetch answers session %d", id)
	}
	id := open(t, c, start, "a/0@0")
	if got := begin(t, c, request(id, 1), start).Throttle(); got != id {
		t.Errorf("throttled incremental fetch answers session %d, want %d", got, id)
	}
	ctx := begin(t, c, request(id, 2), start)
	if ctx.Include(0, Answer{}) {
		t.Error("throttled answer counted as an answer for the partition")
	}
}

func TestCancel(t *testing.T) {
	c := New(10)
	begin(t, c, request(0, -1, "a/0@0"), start).Cancel()
	begin(t, c, request(0, 0, "a/0@0"), start).Cancel()
	if s := c.Stats(); s != (Stats{}) {
		t.Errorf("a session nobody knows of stays: %+v", s)
	}
	id := open(t, c, start, "a/0@0")
	begin(t, c, request(id, 1), start).Cancel()
	end(begin(t, c, request(id, 2), start))
}

func TestSessionInUse(t *testing.T) {
	c := New(10)
	id := open(t, c, start, "a/0@0")
	ctx := begin(t, c, request(id, 1), start)
	wantError(t, c, request(id, 2), ErrEpoch)

	// A reconnected client closes the session while the server still serves the old connection.
	next := open(t, c, start, "a/0@0")
	end(begin(t, c, request(id, -1), start))
	if ctx.Len() != 1 || ctx.SessionID() != id {
		t.Error("closing the session disturbed its request")
	}
	end(ctx)
	wantError(t, c, request(id, 2), ErrUnknownID)
	end(begin(t, c, request(next, 1), start))
}

func TestPartitionAskedForTwice(t *testing.T) {
	c := New(10)
	ctx := begin(t, c, request(0, 0, "a/0@1", "a/0@2"), start)
	if got, want := read(ctx), []string{"a/0@2"}; !slices.Equal(got, want) {
		t.Errorf("reads %v, want %v", got, want)
	}
	end(ctx)
	if s := c.Stats(); s.Partitions != 1 {
		t.Errorf("stats %+v", s)
	}
}
