package telemetry

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// terms are the same for every client.
func terms(generation uint64, interval time.Duration, metrics ...string) Terms {
	return Terms{generation, func(ID) Wanted { return Wanted{metrics, interval} }}
}

func idOf(n int) (id ID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)+1)
	return id
}

// TestTurns: what is accepted and refused in the life of one client.
func TestTurns(t *testing.T) {
	c, id, who := New(), idOf(1), Client{ClientID: "c"}
	now := time.Unix(1000, 0)
	ten := terms(1, 10*time.Second, "a.")
	var s Subscription
	subscribe := func(t Terms) (err error) {
		next, err := c.Subscribe(id, who, t, now)
		if err == nil {
			s = next
		}
		return err
	}
	push := func(t Terms, subscription int32, terminating bool) error {
		return c.Check(id, who, subscription, terminating, t, now)
	}
	for i, step := range []struct {
		after time.Duration
		do    func() error
		want  error
	}{
		{0, func() error { return subscribe(ten) }, nil},
		{time.Second, func() error { return subscribe(ten) }, ErrTooEarly},
		{time.Second, func() error { return push(ten, s.ID, false) }, nil}, // the first may come within the interval
		{time.Second, func() error { return push(ten, s.ID, false) }, ErrTooEarly},
		{9 * time.Second, func() error { return push(ten, s.ID, false) }, nil},
		{10 * time.Second, func() error { return push(ten, s.ID+1, false) }, ErrSubscription},
		{0, func() error { return subscribe(ten) }, nil}, // as it was told to
		{0, func() error { return subscribe(ten) }, ErrTooEarly},
		{time.Second, func() error { return push(ten, s.ID, false) }, nil},
		{time.Second, func() error { return push(terms(2, 10*time.Second, "a."), s.ID, false) }, ErrTooEarly}, // another subscription changed
		{time.Second, func() error { return push(terms(3, time.Minute, "b."), s.ID, false) }, ErrSubscription},
		{0, func() error { return subscribe(terms(3, time.Minute, "b.")) }, nil},
		{time.Second, func() error { return push(terms(3, time.Minute, "b."), s.ID, false) }, nil},
		{time.Second, func() error { return push(terms(3, time.Minute, "b."), s.ID, true) }, nil}, // the last is never too early
		{time.Hour, func() error { return push(terms(3, time.Minute, "b."), s.ID, false) }, ErrTerminated},
	} {
		now = now.Add(step.after)
		if err := step.do(); !errors.Is(err, step.want) || (err == nil) != (step.want == nil) {
			t.Errorf("step %d: %v, want %v", i, err, step.want)
		}
	}
	if got := c.Stats(); got.Clients != 1 || got.Refused != 7 {
		t.Errorf("%+v", got)
	}
}

func TestReservedIDs(t *testing.T) {
	for _, id := range []ID{{}, {15: 1}} {
		if err := New().Check(id, Client{}, 1, false, terms(1, time.Second), time.Unix(1, 0)); !errors.Is(err, ErrID) {
			t.Errorf("%x: %v", id, err)
		}
	}
}

// TestSubscriptionIDs: the same terms have one number, others another.
func TestSubscriptionIDs(t *testing.T) {
	a := subscriptionID(idOf(1), Wanted{[]string{"a", "b"}, time.Second})
	for name, other := range map[string]int32{
		"metrics":  subscriptionID(idOf(1), Wanted{[]string{"ab"}, time.Second}),
		"interval": subscriptionID(idOf(1), Wanted{[]string{"a", "b"}, time.Minute}),
		"client":   subscriptionID(idOf(2), Wanted{[]string{"a", "b"}, time.Second}),
	} {
		if a == other {
			t.Errorf("other %s, same number", name)
		}
	}
	if a != subscriptionID(idOf(1), Wanted{[]string{"a", "b"}, time.Second}) || a <= 0 {
		t.Error("the number is not stable")
	}
}

// TestBounds: neither clients nor values grow beyond their bounds; the longest silent go first, and who is gone goes by itself.
func TestBounds(t *testing.T) {
	c, now := New(), time.Unix(1000, 0)
	minute := terms(1, time.Minute, "*")
	for n := range MaxClients + 100 {
		now = now.Add(time.Millisecond)
		if _, err := c.Subscribe(idOf(n), Client{}, minute, now); err != nil {
			t.Fatal(err)
		}
		c.Keep(idOf(n), make([]Sample, 10), 1)
	}
	st := c.Stats()
	if st.Clients != MaxClients || st.Values > MaxValues || st.Values < MaxValues-1000 {
		t.Errorf("%+v", st)
	}
	if c.all[idOf(99)] != nil || c.all[idOf(100)] == nil {
		t.Error("others than the longest silent were forgotten")
	}
	c.Keep(idOf(0), make([]Sample, 10), 0) // forgotten: nothing is kept for it
	sum := 0
	for _, k := range c.all {
		sum += len(k.samples)
	}
	if got := c.Stats().Values; got != sum {
		t.Errorf("%d values are counted, %d are there", got, sum)
	}
	shown := 0
	c.Each(now.Add(2*time.Minute), func(ID, Client, []Sample) { shown++ })
	if shown == 0 {
		t.Error("nobody is shown after two intervals")
	}
	c.Each(now.Add(4*time.Minute), func(ID, Client, []Sample) { t.Fatal("shown after four intervals") })
	if st := c.Stats(); st.Clients != 0 || st.Values != 0 {
		t.Errorf("in the end %+v", st)
	}
}
