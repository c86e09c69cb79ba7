package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"gregor/compat/bench/report"
	"gregor/compat/bench/target"
	"gregor/compat/bench/work"
)

// sitting is one run of the program.
type sitting struct {
	options *options
	kinds   []*target.Kind
	results report.Results
	failed  []string
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	debug.SetGCPercent(400) // the load generator shares the processors with the broker
	kinds, err := o.kinds(ctx)
	if err != nil {
		return err
	}
	s := &sitting{options: o, kinds: kinds, results: report.Results{}}
	about, err := machine(o)
	if err != nil {
		return err
	}
	fmt.Println(about)
	if !o.quick {
		fmt.Fprintln(os.Stderr, "filling the page cache, so that all memory is backed")
		remove, err := target.BackMemory(o.dir)
		if err != nil {
			return err
		}
		defer func() { _ = remove() }()
	}
	began := time.Now()
	for _, stage := range []work.Stage{work.Stream, work.Partitions, work.Start} {
		if err := s.stage(ctx, stage); err != nil {
			return err
		}
	}
	about += fmt.Sprintf("\n%d round(s), medians, %v in all.", o.rounds, time.Since(began).Round(time.Second))
	return s.print(about)
}

// machine says what the figures were measured on.
func machine(o *options) (string, error) {
	speed, sync, err := target.DiskSpeed(o.dir)
	if err != nil {
		return "", err
	}
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%s: %d processors, Linux %s; disk under the data: %.0f MB/s written and synced, %v for a synced append of 4 KiB.",
		time.Now().Format(time.DateTime), runtime.NumCPU(), strings.TrimSpace(string(release)), speed, sync.Round(time.Microsecond)), nil
}

func (s *sitting) print(about string) error {
	rows := report.Table(s.results, s.options.targets)
	fmt.Printf("\n%s\n%s", report.Text(rows), about)
	fmt.Println()
	for _, f := range s.failed {
		fmt.Println("FAILED", f)
	}
	if s.options.out != "" {
		text := "# Benchmark\n\n" + report.Markdown(rows) + "\n" + about + "\n"
		for _, f := range s.failed {
			text += "\nFailed: " + strings.ReplaceAll(f, "\n", " ") + "\n"
		}
		if err := os.WriteFile(s.options.out, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if len(s.failed) > 0 {
		return fmt.Errorf("%d runs failed", len(s.failed))
	}
	return nil
}

// stage runs the workloads of a stage: each of them round by round, in each round one broker after another.
func (s *sitting) stage(ctx context.Context, stage work.Stage) error {
	workloads := work.All()
	workloads = slices.DeleteFunc(workloads, func(w work.Workload) bool {
		return w.Stage != stage || !s.options.pattern.MatchString(w.Name)
	})
	if len(workloads) == 0 {
		return nil
	}
	brokers := make([]*target.Broker, len(s.kinds))
	defer func() {
		for _, b := range brokers {
			if b != nil {
				_ = b.Remove()
			}
		}
	}()
	if stage != work.Start {
		for i, k := range s.kinds {
			if !slices.ContainsFunc(workloads, func(w work.Workload) bool { return runsOn(w, k.Name) }) {
				continue
			}
			var err error
			if brokers[i], err = s.start(ctx, k); err != nil {
				return err
			}
		}
	}
	for _, w := range workloads {
		for round := range s.options.rounds {
			for i, k := range s.kinds {
				if err := ctx.Err(); err != nil {
					return err
				}
				if !runsOn(w, k.Name) {
					continue
				}
				if err := s.one(w, round, k, brokers[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// runsOn reports if a workload is for a broker: one about old clients is for the Kafka that serves them, and the others are for the newest.
func runsOn(w work.Workload, broker string) bool {
	return broker == report.Gregor || w.Old == (broker == report.KafkaOld)
}

// start brings up a broker that lives through a stage, paused.
func (s *sitting) start(ctx context.Context, k *target.Kind) (*target.Broker, error) {
	b, err := k.New(ctx, filepath.Join(s.options.dir, k.Name), true)
	if err != nil {
		return nil, err
	}
	if err := b.Start(); err != nil {
		return nil, err
	}
	return b, b.Pause()
}

// one is one run of one workload on one broker. A run that fails is reported and leaves the others alone.
func (s *sitting) one(w work.Workload, round int, k *target.Kind, b *target.Broker) error {
	if err := target.Settle(s.options.dir); err != nil {
		return err
	}
	e := &work.Env{
		Broker: b, Kind: k, Dir: s.options.dir, Warm: 2 * time.Second, Window: 5 * time.Second,
		Quick: s.options.quick, Perf: s.options.perf, Name: fmt.Sprintf("%s-%s-%d", w.Name, k.Name, round+1), Keeper: s.options.keeper,
	}
	if e.Quick {
		e.Warm, e.Window = time.Second, 2*time.Second
	}
	if b != nil {
		if err := b.Resume(); err != nil {
			return err
		}
		defer func() { _ = b.Pause() }()
	}
	values, err := w.Run(e)
	if err != nil {
		s.failed = append(s.failed, fmt.Sprintf("%s round %d on %s: %v", w.Name, round+1, k.Name, err))
		fmt.Fprintln(os.Stderr, "FAILED", s.failed[len(s.failed)-1])
		return nil
	}
	for key, v := range values {
		s.results.Add(key, k.Name, v)
	}
	fmt.Fprintln(os.Stderr, progress(w.Name, round, k.Name, values, e.Used()))
	return nil
}

// progress is one line on a run; "other" is what the machine did besides, in processors: above a few hundredths plus
// what the kernel needs to write to the disk, something else was running.
func progress(name string, round int, broker string, values work.Values, u work.Usage) string {
	var keys []string
	for k := range values {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	line := fmt.Sprintf("%-22s %d %-10s", name, round+1, broker)
	for _, k := range keys {
		figure := strings.TrimLeft(strings.TrimPrefix(k, name), "/-")
		line += fmt.Sprintf(" %s=%.4g", figure, values[k])
	}
	if u.Wall > 0 {
		share := func(d time.Duration) float64 { return d.Seconds() / u.Wall.Seconds() }
		line += fmt.Sprintf("  [processors: broker %.2f client %.2f other %.2f]", share(u.Broker), share(u.Client), share(u.Other))
	}
	return line
}
