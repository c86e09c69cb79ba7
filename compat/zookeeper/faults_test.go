package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"gregor/compat/harness"
	"gregor/compat/peer"
)

// faulty is a broker whose ZooKeeper fails, under load.
type faulty struct {
	t      *testing.T
	keeper *peer.Keeper
	proxy  *proxy
	gregor *harness.Broker
	load   *load
	admin  *kadm.Client
	root   string
	tools  int
}

// fault is one way to fail.
type fault struct {
	name    string
	begin   func()
	lasts   time.Duration
	end     func()
	reached bool // by tools, while the broker does not reach it
	session bool // ends with it
}

// TestFaults: ZooKeeper ends, stands still, loses the broker's session, its connection is cut and slow, under load: no acknowledged record is lost, clients
// go on, and what others changed meanwhile is found.
func TestFaults(t *testing.T) {
	keeper := peer.StartZooKeeper(t)
	f := &faulty{t: t, keeper: keeper, proxy: startProxy(t, keeper.Addr), root: "/faults"}
	f.gregor = harness.Start(t, harness.Config{Set: onZooKeeper(f.proxy.addr+f.root, 1)})
	f.gregor.Create(t, 3, nil, "load")
	f.admin = kadm.NewClient(f.gregor.Client(t))
	f.load = startLoad(t, f.gregor.Addr(), "load", 3)
	f.await("load", f.load.flows)
	cut, mend := func() { f.proxy.setCut(true) }, func() { f.proxy.setCut(false) }
	stop, resume := func() { keeper.Pause(t) }, func() { keeper.Resume(t) }
	slow, fast := func() { f.proxy.setDelay(300 * time.Millisecond) }, func() { f.proxy.setDelay(0) }
	for _, fault := range []fault{
		{"connection cut for 2 s", cut, 2 * time.Second, mend, true, false},
		{"connection cut beyond the session", cut, 10 * time.Second, mend, true, true},
		{"connection slow", slow, 4 * time.Second, fast, true, false},
		{"ZooKeeper killed and started again", func() { keeper.Kill(t) }, time.Second, func() { keeper.Up(t) }, false, false},
		{"ZooKeeper stands still for 3 s", stop, 3 * time.Second, resume, false, false},
		{"ZooKeeper stands still beyond the session", stop, 12 * time.Second, resume, false, false},
		{"the broker stands still beyond its session", func() { f.signal(syscall.SIGSTOP) }, 9 * time.Second, func() { f.signal(syscall.SIGCONT) }, true, true},
	} {
		f.run(fault)
	}
	f.flap()
	f.load.check(f.gregor.Addr())
}

// flap has the connection end again and again while tools make topics: none may be missed.
func (f *faulty) flap() {
	f.t.Helper()
	f.load.gap()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			f.proxy.setCut(n%2 == 0)
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(n%7*13) * time.Millisecond):
			}
		}
	}()
	var topics []string
	for range 40 {
		topics = append(topics, f.tool())
	}
	close(stop)
	<-stopped
	f.proxy.setCut(false)
	began := time.Now()
	f.await("topics made while the connection ended again and again", func(ctx context.Context) error { return f.serves(ctx, topics) })
	silence, pause := f.load.gap()
	f.t.Logf("connection that ends again and again: %d topics of tools are served %v after its end; the producer waited at most %v, the consumer %v", len(topics),
		time.Since(began).Round(time.Millisecond), silence, pause)
}

func (f *faulty) signal(s syscall.Signal) {
	f.t.Helper()
	if err := syscall.Kill(f.gregor.PID(), s); err != nil {
		f.t.Fatal(err)
	}
}

func (f *faulty) run(x fault) {
	f.t.Helper()
	f.load.gap()
	expired := f.count("the session with ZooKeeper has ended")
	x.begin()
	var topics []string
	if x.reached {
		time.Sleep(x.lasts / 2)
		topics = append(topics, f.tool())
		time.Sleep(x.lasts / 2)
	} else {
		time.Sleep(x.lasts)
	}
	x.end()
	began := time.Now()
	topics = append(topics, f.tool())
	f.await(x.name, func(ctx context.Context) error { return f.serves(ctx, topics) })
	found := time.Since(began)
	f.await(x.name, func(ctx context.Context) error {
		_, err := f.admin.CreateTopic(ctx, 1, 1, nil, fmt.Sprintf("made-after-%d", f.tools))
		return err
	})
	made := time.Since(began)
	silence, pause := f.load.gap()
	f.t.Logf("%s: after its end topics of tools are served after %v, topics are made after %v; meanwhile the producer waited at most %v, the consumer %v",
		x.name, found.Round(time.Millisecond), made.Round(time.Millisecond), silence, pause)
	if ended := f.count("the session with ZooKeeper has ended") > expired; x.session && !ended {
		f.t.Errorf("%s: the session has not ended, so that nothing was tried", x.name)
	}
}

func (f *faulty) count(text string) int { return strings.Count(f.gregor.Log(), text) }

// tool makes a topic as Kafka's tools before 2.8 do, past the proxy.
func (f *faulty) tool() string {
	f.t.Helper()
	conn, _, err := zk.Connect([]string{f.keeper.Addr}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close()
	f.tools++
	name := fmt.Sprintf("of-a-tool-%d", f.tools)
	f.await("making a topic in ZooKeeper", func(context.Context) error {
		_, err := conn.Create(f.root+"/brokers/topics/"+name, []byte(`{"version":2,"partitions":{"0":[1]},"adding_replicas":{},"removing_replicas":{}}`), 0, zk.WorldACL(zk.PermAll))
		if errors.Is(err, zk.ErrNodeExists) {
			return nil
		}
		return err
	})
	return name
}

// serves says whether topics have a leader that takes records.
func (f *faulty) serves(ctx context.Context, topics []string) error {
	ends, err := f.admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return err
	}
	if err := ends.Error(); err != nil {
		return err
	}
	client := f.gregor.Client(f.t)
	defer client.Close()
	for _, topic := range topics {
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

// await tries until it works.
func (f *faulty) await(what string, try func(context.Context) error) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			f.t.Fatalf("%s: %v", what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
