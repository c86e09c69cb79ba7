package quota

import (
	"fmt"
	"math"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const window = time.Second

func start() time.Time { return time.Unix(1_700_000_000, 0) }

func TestFindMostSpecific(t *testing.T) {
	order := []struct {
		at    Entity
		share string
	}{
		{Entity{Client: Default}, "client id c"},
		{Entity{Client: "c"}, "client id c"},
		{Entity{User: Default}, "user u"},
		{Entity{User: Default, Client: Default}, "user u, client id c"},
		{Entity{User: Default, Client: "c"}, "user u, client id c"},
		{Entity{User: "u"}, "user u"},
		{Entity{User: "u", Client: Default}, "user u, client id c"},
		{Entity{User: "u", Client: "c"}, "user u, client id c"},
	}
	tab := new(table)
	if _, ok := tab.find(Produce, "u", "c"); ok {
		t.Error("a quota was found where none is")
	}
	for i, o := range order { // each is more specific than those before
		tab = tab.with(o.at, Values{Produce.String(): float64(i + 1)})
		l, ok := tab.find(Produce, "u", "c")
		if !ok || l.rate != float64(i+1) || l.share.String() != o.share {
			t.Errorf("with %s: rate %v shared by %s, want %d by %s", o.at, l.rate, l.share, i+1, o.share)
		}
		if _, ok := tab.find(Consume, "u", "c"); ok || tab.some[Consume] || !tab.some[Produce] {
			t.Errorf("with %s: another kind was found", o.at)
		}
	}
	for i := len(order) - 1; i >= 0; i-- {
		tab = tab.with(order[i].at, nil)
	}
	if len(tab.of) != 0 || tab.some[Produce] {
		t.Errorf("left over: %v", tab.of)
	}
}

// TestSharesAreApart: clients that a default was found for have it each for itself; a user's quota is shared by his clients.
func TestSharesAreApart(t *testing.T) {
	m, now := New(11, window), start()
	m.Set(Entity{Client: Default}, Values{Produce.String(): 100})
	if d := m.Use(Produce, "u", "a", 5000, now); d == 0 {
		t.Error("client a is far over and not held up")
	}
	if d := m.Use(Produce, "u", "b", 500, now); d != 0 {
		t.Errorf("client b is held up for %v by client a", d)
	}
	m.Set(Entity{User: "u"}, Values{Produce.String(): 100})
	m.Use(Produce, "u", "a", 5000, now)
	if d := m.Use(Produce, "u", "b", 1, now); d == 0 {
		t.Error("the user's other client used it all, and b is not held up")
	}
	if d := m.Use(Consume, "u", "b", 1e9, now); d != 0 {
		t.Errorf("held up for %v by a quota of another kind", d)
	}
}

// TestRateConverges: a client that obeys gets its rate, however it sends.
func TestRateConverges(t *testing.T) {
	for _, size := range []float64{10, 1000, 20_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			m, now := New(11, window), start()
			m.Set(Entity{Client: "c"}, Values{Produce.String(): 10_000})
			var sent, warm float64
			for now.Before(start().Add(320 * time.Second)) {
				if warm == 0 && now.Sub(start()) >= 20*time.Second {
					warm = sent
				}
				sent += size
				now = now.Add(time.Millisecond + m.Use(Produce, "u", "c", size, now))
			}
			if rate := (sent - warm) / 300; math.Abs(rate-10_000) > 1500 {
				t.Errorf("rate is %.0f, want 10000", rate)
			}
		})
	}
}

// TestBurst: who was quiet may use what the windows hold at once, as in Kafka, and no more.
func TestBurst(t *testing.T) {
	m, now := New(11, window), start()
	m.Set(Entity{Client: "c"}, Values{Consume.String(): 100})
	if w := m.Window(Consume, "u", "c"); w != 1000 {
		t.Errorf("the windows hold %v, want 1000", w)
	}
	if w := m.Window(Consume, "u", "other"); !math.IsInf(w, 1) {
		t.Errorf("without a quota the windows hold %v", w)
	}
	if d := m.Use(Consume, "u", "c", 1000, now); d != 0 {
		t.Errorf("held up for %v", d)
	}
	if d := m.Use(Consume, "u", "c", 100, now); d != 1100*time.Millisecond {
		t.Errorf("a tenth too much is held up for %v, want 1.1s", d)
	}
	m.Undo(Consume, "u", "c", 100, now)
	if d := m.Use(Consume, "u", "c", 0, now); d != 0 {
		t.Errorf("held up for %v after what was too much was taken back", d)
	}
	if d := m.Use(Consume, "u", "c", 1000, now.Add(12*window)); d != 0 {
		t.Errorf("held up for %v long after", d)
	}
}

func TestRequestDelayIsBounded(t *testing.T) {
	m := New(11, window)
	m.Set(Entity{User: Default}, Values{Request.String(): 1})
	if d := m.Use(Request, "u", "c", 1e6, start()); d != window {
		t.Errorf("held up for %v, want %v", d, window)
	}
}

func TestMutate(t *testing.T) {
	m, now := New(11, window), start()
	if d, ok := m.Mutate("u", "c", 1000, true, now); d != 0 || !ok {
		t.Errorf("without a quota: %v, %v", d, ok)
	}
	m.Set(Entity{User: "u"}, Values{Mutation.String(): 2})
	for _, tc := range []struct {
		n      int
		strict bool
		after  time.Duration
		delay  time.Duration
		ok     bool
	}{
		{20, true, 0, 0, true},
		{10, true, 0, 4 * time.Second, true}, // two were there: it goes eight below
		{1, true, 0, 4 * time.Second, false},
		{2, false, 0, 5 * time.Second, true},
		{1, true, 5 * time.Second, 500 * time.Millisecond, true},
		{1, true, time.Hour, 0, true},
	} {
		now = now.Add(tc.after)
		if d, ok := m.Mutate("u", "c", tc.n, tc.strict, now); d != tc.delay || ok != tc.ok {
			t.Errorf("%d, strict %v: %v, %v, want %v, %v", tc.n, tc.strict, d, ok, tc.delay, tc.ok)
		}
	}
}

func TestConnect(t *testing.T) {
	m, now := New(11, window), start()
	if d := m.Connect("10.0.0.1", now); d != 0 {
		t.Errorf("without a quota: %v", d)
	}
	m.Set(Entity{IP: Default}, Values{Connection.String(): 1})
	m.Set(Entity{IP: "10.0.0.9"}, Values{Connection.String(): 1000})
	held := 0
	for range 20 {
		if m.Connect("10.0.0.1", now) > 0 {
			held++
		}
		if d := m.Connect("10.0.0.9", now); d != 0 {
			t.Errorf("an address with a larger quota is held up for %v", d)
		}
	}
	if held != 10 {
		t.Errorf("%d of 20 connections were held up, want 10", held)
	}
}

// TestQuietSharesAreForgotten: memory is bounded by who is active.
func TestQuietSharesAreForgotten(t *testing.T) {
	m, now := New(11, window), start()
	m.Set(Entity{Client: Default}, Values{Produce.String(): 1})
	for i := range 20 * pruneFirst {
		now = now.Add(20 * time.Millisecond)
		m.Use(Produce, "u", fmt.Sprint(i), 1, now)
	}
	if n := len(m.used); n > 3*pruneFirst {
		t.Errorf("%d shares are remembered", n)
	}
}

func TestEntityPaths(t *testing.T) {
	for e, want := range map[Entity]string{
		{User: "a b+c*~/ü"}:               "/config/users/a%20b%2Bc%2A%7E%2F%C3%BC",
		{User: Default, Client: "x"}:      "/config/users/<default>/clients/x",
		{Client: Default}:                 "/config/clients/<default>",
		{IP: "10.0.0.1"}:                  "/config/ips/10.0.0.1",
		{User: "u-1_2.3", Client: "c:1,"}: "/config/users/u-1_2.3/clients/c%3A1%2C",
	} {
		if got := e.Path(); got != want {
			t.Errorf("%+v is at %s, want %s", e, got, want)
		}
		name, err := Desanitize(Sanitize(e.User))
		if err != nil || name != e.User {
			t.Errorf("%q comes back as %q, %v", e.User, name, err)
		}
	}
	if _, err := Desanitize("%zz"); err == nil {
		t.Error("a bad escape is accepted")
	}
}

func TestProblem(t *testing.T) {
	for _, tc := range []struct {
		kind Kind
		v    float64
		ok   bool
	}{
		{Produce, 1, true}, {Produce, 0, false}, {Produce, -1, false}, {Produce, 1.5, false}, {Produce, math.NaN(), false}, {Produce, 1e19, false},
		{Request, 0.5, true}, {Request, 0, false}, {Mutation, 1.5, true}, {Connection, 0, false}, {Connection, -1, false}, {Connection, 1e10, false},
		{Request, math.Inf(1), false},
	} {
		if problem := tc.kind.Problem(tc.v); (problem == "") != tc.ok {
			t.Errorf("%s %v: %q", tc.kind, tc.v, problem)
		}
	}
	for k := range kinds {
		if got, ok := KindOf(k.String()); !ok || got != k {
			t.Errorf("%s is %v, %v", k, got, ok)
		}
		if (Entity{IP: "x"}).CheckKind(k) == nil != (k == Connection) {
			t.Errorf("%s for an address: %v", k, Entity{IP: "x"}.CheckKind(k))
		}
	}
}

// TestAcceptRate: connections come at the rate that is set, from its change on.
func TestAcceptRate(t *testing.T) {
	m := New(11, window)
	now := start()
	for range 1000 {
		if d := m.Accept("A", now); d != 0 {
			t.Fatalf("waits %v without a limit", d)
		}
	}
	for rates, want := range map[*map[string]float64]int{{"": 10}: 1000, {"A": 20}: 2000, {"": 10, "A": 20}: 1000, {"B": 1}: 100_000} {
		m.SetAcceptRates(*rates)
		taken := 0
		now = now.Add(100 * time.Second)
		for end := now.Add(100 * time.Second); now.Before(end); taken++ {
			now = now.Add(time.Millisecond + m.Accept("A", now))
		}
		if taken < want*9/10 || taken > want*5/4 {
			t.Errorf("%d connections in 100 s at %v a second", taken, *rates)
		}
	}
	m.SetAcceptRates(nil)
	if d := m.Accept("A", now); d != 0 {
		t.Errorf("waits %v after the limit was taken away", d)
	}
}
