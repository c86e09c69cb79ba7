package work

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"gregor/compat/bench/raw"
	"gregor/compat/bench/target"
)

// Values are the figures of one run, by the key of their report.Metric.
type Values map[string]float64

// Stage says what a workload runs on.
type Stage int

// The stages, in the order in which they run.
const (
	Stream     Stage = iota // brokers that live through all workloads of the stage
	Partitions              // the same, on fresh brokers, with 1,000 partitions
	Start                   // the workload starts brokers itself
)

// Workload is one of the measurements.
type Workload struct {
	Name  string
	Stage Stage
	Run   func(*Env) (Values, error)
	Old   bool // about requests that the newest Kafka does not serve
}

// All returns the workloads in the order in which they run.
func All() []Workload {
	return []Workload{
		{Name: "produce-1k", Stage: Stream, Run: produce1k},
		{Name: "produce-100b", Stage: Stream, Run: produce100b},
		{Name: "raw-produce-8x64k", Stage: Stream, Run: rawProduce8x64k},
		{Name: "raw-produce-1x1k", Stage: Stream, Run: rawProduce1x1k},
		{Name: "ack", Stage: Stream, Run: ack},
		{Name: "end-to-end", Stage: Stream, Run: endToEnd},
		{Name: "raw-fetch", Stage: Stream, Run: rawFetch},
		{Name: "fetch-v2", Stage: Stream, Run: fetchV2, Old: true},
		{Name: "groups-1000", Stage: Stream, Run: groups1000},
		{Name: "transactions", Stage: Stream, Run: transactions},
		{Name: "partitions-1000", Stage: Partitions, Run: partitions1000},
		{Name: "compact-10m", Stage: Start, Run: compact10m, Old: true},
		{Name: "retention-1000", Stage: Partitions, Run: retention1000},
		{Name: "start-empty", Stage: Start, Run: startEmpty},
		{Name: "start-1000", Stage: Start, Run: start1000},
		{Name: "zookeeper-start-2000", Stage: Start, Run: zookeeperStart, Old: true},
		{Name: "zookeeper-create-1000", Stage: Start, Run: zookeeperCreate, Old: true},
	}
}

// Env is what a run gets: the broker (or, in stage Start, the kind of broker and a directory) and the times.
type Env struct {
	Broker *target.Broker
	Kind   *target.Kind
	Dir    string
	Warm   time.Duration // load before measuring
	Window time.Duration // measured load
	Quick  bool
	Perf   string // folder for perf profiles of the broker; empty: none
	Name   string // of the run, for files
	Keeper string // folder with the jars of a Kafka that has a ZooKeeper

	used Usage
}

// Usage is what a measured window cost.
type Usage struct {
	Wall   time.Duration
	Broker time.Duration // CPU of the broker's process
	Client time.Duration // CPU of this process
	Other  time.Duration // CPU of everything else on the machine, the kernel's own threads included
	Count  int64
}

func (u *Usage) add(v Usage) {
	u.Wall += v.Wall
	u.Broker += v.Broker
	u.Client += v.Client
	u.Other += v.Other
	u.Count += v.Count
}

// Used is the usage of the last window, for progress lines.
func (e *Env) Used() Usage { return e.used }

type snapshot struct {
	at                   time.Time
	broker, client, busy time.Duration
}

func (e *Env) snapshot() (s snapshot, err error) {
	if s.broker, err = target.CPU(e.Broker.PID()); err != nil {
		return s, err
	}
	if s.client, err = target.CPU(os.Getpid()); err != nil {
		return s, err
	}
	s.busy, err = target.BusyCPU()
	s.at = time.Now()
	return s, err
}

func (e *Env) usage(from snapshot, count int64) (Usage, error) {
	to, err := e.snapshot()
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Wall: to.at.Sub(from.at), Broker: to.broker - from.broker, Client: to.client - from.client, Count: count}
	u.Other = max(to.busy-from.busy-u.Broker-u.Client, 0)
	e.used = u
	return u, nil
}

// steady runs the loads at once, lets them warm up, measures how far count gets during the window, and ends them.
func (e *Env) steady(count *atomic.Int64, loads ...func(stop *atomic.Bool) error) (Usage, error) {
	var stop atomic.Bool
	ended := make(chan error, len(loads))
	for _, load := range loads {
		go func() { ended <- load(&stop) }()
	}
	u, running, err := e.window(count, ended, len(loads))
	stop.Store(true)
	for range running {
		if e := <-ended; err == nil {
			err = e
		}
	}
	return u, err
}

func (e *Env) window(count *atomic.Int64, ended <-chan error, running int) (Usage, int, error) {
	early := func(err error) (Usage, int, error) {
		return Usage{}, running - 1, fmt.Errorf("the load ended early: %w", err)
	}
	select {
	case err := <-ended:
		return early(err)
	case <-time.After(e.Warm):
	}
	from, err := e.snapshot()
	if err != nil {
		return Usage{}, running, err
	}
	before := count.Load()
	endPerf := e.perf()
	select {
	case err := <-ended:
		endPerf()
		return early(err)
	case <-time.After(e.Window):
	}
	n := count.Load() - before
	u, err := e.usage(from, n)
	endPerf()
	return u, running, err
}

// perf starts perf on the broker when asked to and returns what ends it.
func (e *Env) perf() (end func()) {
	if e.Perf == "" {
		return func() {}
	}
	file := filepath.Join(e.Perf, e.Name+".perf")
	cmd := exec.Command("perf", "record", "-q", "-g", "-F", "499", "-o", file, "-p", fmt.Sprint(e.Broker.PID()))
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "no profile %s: %v\n", file, err)
		return func() {}
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait() // perf ends with an error when it is interrupted
	}
}

// withTopic runs f with a fresh topic and deletes it afterwards.
func (e *Env) withTopic(name string, partitions int, f func(control *raw.Conn) (Values, error)) (Values, error) {
	c, err := raw.Dial(e.Broker.Addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.CreateTopic(name, partitions, nil); err != nil {
		return nil, err
	}
	v, err := f(c)
	if err != nil {
		return nil, err
	}
	return v, c.DeleteTopic(name)
}

// topic names are different in every run, since deletion may take its time.
func (e *Env) topic() string { return "bench-" + e.Name }

func sequence(n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

func perGB(cpu time.Duration, bytes int64) float64 { return cpu.Seconds() / (float64(bytes) / 1e9) }

func perSecond(n int64, wall time.Duration) float64 { return float64(n) / wall.Seconds() }

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
