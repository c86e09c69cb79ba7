package groups

import (
	"errors"
	"flag"
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/jars"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestJava: groups of every version of Java's client, side by side.
func TestJava(t *testing.T) {
	var clients []client
	for _, version := range jars.GroupVersions() {
		clients = append(clients, javaClient(t, version))
	}
	live(t, clients)
}

// TestOthers: groups of all other clients, side by side.
func TestOthers(t *testing.T) {
	live(t, append(append(goClients(), scriptClients(t)...), kcatClient(t)))
}

var only = flag.String("client", "", "regular expression: only clients whose name it matches")

// settings make the broker quick and let clients of old have short sessions.
func settings() harness.Config {
	return harness.Config{Set: []string{"group.initial.rebalance.delay.ms=200"}}
}

// live takes a group of each client through its life: a member comes, two more come, one is killed, the broker is killed, all leave. Each record must be
// processed, and the offsets must be right at each step.
func live(t *testing.T, clients []client) {
	b := harness.Start(t, settings())
	runs := newRuns(t, b, clients)
	step(t, runs, "one member", func(r *run) error {
		if err := r.start("a", identity{}); err != nil {
			return err
		}
		return r.everywhere("one member", "a")
	})
	step(t, runs, "three members", func(r *run) error {
		for _, name := range []string{"b", "c"} {
			if err := r.start(name, identity{}); err != nil {
				return err
			}
		}
		return r.everywhere("three members", "a", "b", "c")
	})
	step(t, runs, "one is killed", func(r *run) error {
		r.members["b"].kill()
		if err := r.everywhere("one was killed", "a", "c"); err != nil {
			return err
		}
		return r.committedAtLeast()
	})
	b.Kill(t)
	b.Up(t)
	step(t, runs, "the broker was killed", func(r *run) error {
		if err := r.committedAtLeast(); err != nil {
			return fmt.Errorf("after the broker's kill: %w", err)
		}
		if r.client.endsAlone {
			for _, name := range []string{"a", "c"} {
				r.members[name].kill()
				if err := r.start(name, identity{}); err != nil {
					return err
				}
			}
		}
		return r.everywhere("the broker was killed", "a", "c")
	})
	step(t, runs, "end", (*run).finish)
	for _, r := range runs {
		t.Run(r.client.name, r.report)
	}
}

// newRuns makes a run of each client and begins to feed it.
func newRuns(t *testing.T, b *harness.Broker, clients []client) []*run {
	t.Helper()
	wanted := regexp.MustCompile(*only)
	var runs []*run
	for _, c := range clients {
		if wanted.MatchString(c.name) {
			runs = append(runs, newRun(t, b, c))
		}
	}
	for _, r := range runs {
		go r.feed(b.Client(t, quickRetry(), kgo.RetryTimeout(2*time.Minute), kgo.ProducerLinger(0)))
	}
	return runs
}

// step does something with every run that has not failed yet.
func step(t *testing.T, runs []*run, what string, do func(*run) error) {
	t.Helper()
	start := time.Now()
	var all sync.WaitGroup
	for _, r := range runs {
		if r.err != nil {
			continue
		}
		all.Go(func() {
			if r.err = do(r); r.err != nil {
				r.err = fmt.Errorf("%s: %w", what, r.err)
			}
		})
	}
	all.Wait()
	t.Logf("%s: %v", what, time.Since(start).Round(100*time.Millisecond))
}

// drain stops the feeder, waits until all is processed and committed, and ends the members.
func (r *run) drain() error {
	close(r.feeding)
	<-r.fed
	if err := r.await("all processed", r.lost); err != nil {
		return err
	}
	if err := r.await("all committed", r.committedAll); err != nil {
		return err
	}
	if err := r.leave(); err != nil {
		return err
	}
	if said := r.committedAll(); said != "" {
		return errors.New("after all left " + said)
	}
	return nil
}

// finish is drain for members that leave when they end.
func (r *run) finish() error {
	if err := r.drain(); err != nil {
		return err
	}
	return r.await("the group is empty", func() string {
		d, err := r.adm.DescribeGroups(r.t.Context(), r.group)
		if err != nil {
			return err.Error()
		}
		if g := d[r.group]; g.State != "Empty" || len(g.Members) > 0 || g.Err != nil {
			return fmt.Sprintf("the group is %s with %d members: %v", g.State, len(g.Members), g.Err)
		}
		return ""
	})
}

// leave lets all members that live leave and end.
func (r *run) leave() error {
	for _, m := range r.members {
		if m.ended() {
			continue
		}
		if err := m.leave(time.Minute); err != nil {
			return err
		}
	}
	return nil
}

// report is the run's result.
func (r *run) report(t *testing.T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		t.Error(r.err)
	}
	for i, fault := range r.faults {
		if i < 10 {
			t.Error(fault)
		}
	}
	written, processed := 0, 0
	for p := range r.written {
		written += len(r.written[p])
		processed += len(r.processed[p])
	}
	if written < 30 {
		t.Errorf("only %d records were written", written)
	}
	t.Logf("%d records written, %d processed, %d more than once", written, processed, r.times-processed)
}
