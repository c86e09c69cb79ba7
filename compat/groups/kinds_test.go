package groups

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/jars"
)

// everyClient is all of them.
func everyClient(t *testing.T) []client {
	t.Helper()
	all := append(append(goClients(), scriptClients(t)...), kcatClient(t))
	for _, version := range jars.GroupVersions() {
		all = append(all, javaClient(t, version))
	}
	return all
}

// TestStatic: a static member that is killed and comes back in time takes its place without a rebalance (KIP-345); a second one with its name takes
// it away.
func TestStatic(t *testing.T) {
	static := slices.DeleteFunc(everyClient(t), func(c client) bool { return !c.static })
	runs := newRuns(t, harness.Start(t, settings()), static)
	step(t, runs, "three members", func(r *run) error {
		// The first is the leader. It is not the one that is replaced: clients that lead again ask for a rebalance.
		if err := r.start("a", identity{instance: "i-a"}); err != nil {
			return err
		}
		if err := r.everywhere("one member", "a"); err != nil {
			return err
		}
		for _, name := range []string{"b", "c"} {
			if err := r.start(name, identity{instance: "i-" + name}); err != nil {
				return err
			}
		}
		return r.everywhere("three members", "a", "b", "c")
	})
	step(t, runs, "one is replaced", func(r *run) error {
		r.settle()
		before := r.rebalances("a", "c")
		r.members["b"].kill()
		if err := r.start("b", identity{instance: "i-b"}); err != nil {
			return err
		}
		if err := r.everywhere("b is back", "a", "b", "c"); err != nil {
			return err
		}
		return r.unmoved(before)
	})
	step(t, runs, "one is fenced", func(r *run) error {
		r.settle()
		before, old := r.rebalances("a", "c"), r.members["b"]
		if err := r.start("b", identity{instance: "i-b"}); err != nil {
			return err
		}
		if err := r.await("fencing", func() string {
			if !old.failed("fenced") && !old.failed("same group.instance.id") {
				return fmt.Sprintf("the old member was not told: %v", old)
			}
			return ""
		}); err != nil {
			return err
		}
		old.kill()
		if err := r.everywhere("b is new", "a", "b", "c"); err != nil {
			return err
		}
		return r.unmoved(before)
	})
	step(t, runs, "end", (*run).drain)
	for _, r := range runs {
		t.Run(r.client.name, r.report)
	}
}

// settle waits until nobody said for a second that it was assigned something: members hear of a rebalance one after the other.
func (r *run) settle() {
	for count := -1; ; time.Sleep(time.Second) {
		now := 0
		for _, m := range r.members {
			now += m.assignments()
		}
		if now == count {
			return
		}
		count = now
	}
}

// rebalances says how often members were assigned something.
func (r *run) rebalances(names ...string) map[string]int {
	counts := map[string]int{}
	for _, name := range names {
		counts[name] = r.members[name].assignments()
	}
	return counts
}

func (r *run) unmoved(before map[string]int) error {
	for name, n := range before {
		if now := r.members[name].assignments(); now != n {
			return fmt.Errorf("there was a rebalance: %v", r.members[name])
		}
	}
	return nil
}

// TestCooperative: who keeps a partition never gives it up (KIP-429).
func TestCooperative(t *testing.T) {
	cooperative := slices.DeleteFunc(everyClient(t), func(c client) bool { return c.cooperative == "" })
	runs := newRuns(t, harness.Start(t, settings()), cooperative)
	add := func(name string, want int, all ...string) {
		step(t, runs, name+" comes", func(r *run) error {
			r.settle()
			before := r.given()
			if err := r.start(name, identity{assignor: r.client.cooperative}); err != nil {
				return err
			}
			if err := r.everywhere(name, all...); err != nil {
				return err
			}
			return r.gave(before, want)
		})
	}
	add("a", 0, "a")
	add("b", 3, "a", "b")
	add("c", 2, "a", "b", "c")
	step(t, runs, "b is killed", func(r *run) error {
		before := r.given()
		r.members["b"].kill()
		if err := r.everywhere("b was killed", "a", "c"); err != nil {
			return err
		}
		return r.gave(before, 0)
	})
	step(t, runs, "end", (*run).finish)
	for _, r := range runs {
		t.Run(r.client.name, r.report)
	}
}

// given counts the partitions that members gave up.
func (r *run) given() int {
	n := 0
	for _, m := range r.members {
		for _, list := range m.revocations() {
			n += len(strings.FieldsFunc(list, func(c rune) bool { return c == ',' }))
		}
	}
	return n
}

// gave fails unless so many partitions were given up, or some more: how few a balance takes is the client's assignor's matter. A broker that
// lets a member down makes it give up all.
func (r *run) gave(before, want int) error {
	if got := r.given() - before; got < want || got >= partitions {
		text := ""
		for _, m := range r.members {
			text += fmt.Sprintf("\n  %v", m)
		}
		return fmt.Errorf("%d partitions of %d were given up, want %d:%s", got, partitions, want, text)
	}
	return nil
}

// TestNewProtocol: a consumer of Kafka 4 that is set to the protocol of KIP-848, which is not built, is told so and does not hang.
func TestNewProtocol(t *testing.T) {
	runs := newRuns(t, harness.Start(t, settings()), []client{javaClient(t, "4.4.0")})
	step(t, runs, "one member", func(r *run) error {
		if err := r.start("a", identity{assignor: "KIP-848"}); err != nil {
			return err
		}
		return r.await("refusal", func() string {
			if !r.members["a"].failed("unsupportedversionexception") {
				return "it is not told that the broker cannot"
			}
			return ""
		})
	})
	for _, r := range runs {
		close(r.feeding)
		<-r.fed
		if r.err != nil {
			t.Error(r.err)
		}
	}
}
