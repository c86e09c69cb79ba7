package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/meta"
)

// cluster is an announcer, broker 1, among fake brokers that it reaches by pipes. It lives in a synctest bubble.
type cluster struct {
	*Announcer
	t     *testing.T
	log   bytes.Buffer
	fakes map[int32]*fake

	mu      sync.Mutex
	down    map[int32]bool
	dials   int
	answers []Answer
}

// play runs a test in a bubble, with fakes for brokers 2, 3 and 4.
func play(t *testing.T, topics []Topic, test func(t *testing.T, c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, fakes: map[int32]*fake{}, down: map[int32]bool{}}
		for id := int32(2); id <= 4; id++ {
			c.fakes[id] = newFake(t)
		}
		c.Announcer = New(Config{
			ControllerID: 1, ControllerEpoch: 5, Topics: topics, Dialer: Dialer{DialContext: c.dial}, Answered: c.answered,
			Logger: slog.New(slog.NewTextHandler(&c.log, nil)),
		})
		test(t, c)
		c.Close()
		synctest.Wait()
	})
}

func (c *cluster) dial(_ context.Context, _, address string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dials++
	var id int32
	if _, err := fmt.Sscanf(address, "b%d:", &id); err != nil {
		return nil, err
	}
	if c.down[id] {
		return nil, errors.New("it is down")
	}
	ours, theirs := net.Pipe()
	go c.fakes[id].serve(context.Background(), theirs)
	return ours, nil
}

func (c *cluster) setDown(id int32, down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down[id] = down
}

func (c *cluster) answered(a Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(c.answers, a)
}

// logged is what was logged, when nothing moves any more.
func (c *cluster) logged() string {
	synctest.Wait()
	return c.log.String()
}

// brokers are those that are live, with their epochs: 1 for the first start.
func brokers(epochs map[int32]int64) []Broker {
	var live []Broker
	for id, epoch := range epochs {
		live = append(live, Broker{ID: id, Epoch: epoch, Endpoints: []meta.Endpoint{
			{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: fmt.Sprint("b", id), Port: 92},
		}})
	}
	return live
}

func one(name string, id byte, epoch int32, replicas ...int32) Topic {
	return Topic{Name: name, ID: [16]byte{id}, Partitions: []Partition{
		{ControllerEpoch: 4, Leader: replicas[0], LeaderEpoch: epoch, ISR: replicas, Replicas: replicas},
	}}
}

// heard waits until nothing moves and compares what a broker was sent since the last time.
func (c *cluster) heard(id int32, want ...string) {
	c.t.Helper()
	synctest.Wait()
	f := c.fakes[id]
	f.mu.Lock()
	defer f.mu.Unlock()
	var got []string
	for _, req := range f.seen {
		got = append(got, show(req))
	}
	f.seen = nil
	if !slices.Equal(got, want) {
		c.t.Errorf("broker %d heard\n\t%s\nwant\n\t%s", id, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// show is a request in short: kind, broker epoch if not 1, partitions with leader epoch, and who lives.
func show(req kmsg.Request) string {
	var b strings.Builder
	epoch := func(kind string, e int64) {
		if b.WriteString(kind); e != 1 {
			fmt.Fprintf(&b, " @%d", e)
		}
	}
	switch r := req.(type) {
	case *kmsg.LeaderAndISRRequest:
		epoch("lead", r.BrokerEpoch)
		for _, t := range r.TopicStates {
			for _, p := range t.PartitionStates {
				fmt.Fprintf(&b, " %s%d/%d%s", t.Topic, p.Partition, p.LeaderEpoch, mark(p.IsNew, "*"))
			}
		}
		for _, l := range r.LiveLeaders {
			fmt.Fprintf(&b, " by %s:%d", l.Host, l.Port)
		}
	case *kmsg.UpdateMetadataRequest:
		epoch("tell", r.BrokerEpoch)
		for _, t := range r.TopicStates {
			for _, p := range t.PartitionStates {
				fmt.Fprintf(&b, " %s%d/%d%s", t.Topic, p.Partition, p.LeaderEpoch, mark(p.Leader == -2, "-"))
				if len(p.OfflineReplicas) > 0 {
					fmt.Fprintf(&b, " without %v", p.OfflineReplicas)
				}
			}
		}
		b.WriteString(" live")
		for _, l := range r.LiveBrokers {
			fmt.Fprintf(&b, " %d", l.ID)
		}
	case *StopReplicaRequest:
		epoch("stop", r.BrokerEpoch)
		for _, t := range r.Topics {
			for _, p := range t.PartitionStates {
				fmt.Fprintf(&b, " %s%d/%d%s", t.Topic, p.Partition, p.LeaderEpoch, mark(p.Delete, "!"))
			}
		}
	}
	return b.String()
}

func TestAnnounce(t *testing.T) {
	topics := []Topic{one("t", 1, 3, 2, 3), {Name: "unborn", ID: [16]byte{8}, Partitions: []Partition{{Leader: -1, LeaderEpoch: -1, Replicas: []int32{2}}}}}
	play(t, topics, func(t *testing.T, c *cluster) {
		c.SetBrokers(brokers(map[int32]int64{1: 1, 2: 1, 3: 1}))
		c.heard(2, "tell t0/3 live 1 2 3", "lead t0/3 by b2:92")
		c.heard(3, "tell t0/3 live 1 2 3", "lead t0/3 by b2:92")
		c.SetBrokers(brokers(map[int32]int64{3: 1, 2: 1, 1: 1})) // no news
		c.heard(2)

		c.Announce(one("new", 2, 0, 3, 1))
		c.heard(2, "tell new0/0 live 1 2 3")
		c.heard(3, "lead new0/0* by b3:92", "tell new0/0 live 1 2 3")

		c.Update(one("new", 2, 0, 3, 1))
		c.heard(2, "tell new0/0 live 1 2 3")
		c.heard(3, "tell new0/0 live 1 2 3")

		// another leader; then a replica that was none before
		c.Announce(one("new", 2, 1, 3, 1))
		c.heard(2, "tell new0/1 live 1 2 3")
		c.heard(3, "lead new0/1 by b3:92", "tell new0/1 live 1 2 3")
		c.Announce(one("new", 2, 2, 2, 3))
		c.heard(2, "lead new0/2* by b2:92", "tell new0/2 live 1 2 3")
		c.heard(3, "lead new0/2 by b2:92", "tell new0/2 live 1 2 3")

		// a broker comes, leaves, and comes back before anybody has noticed
		c.SetBrokers(brokers(map[int32]int64{1: 1, 2: 1, 3: 1, 4: 1}))
		c.heard(2, "tell live 1 2 3 4")
		c.heard(3, "tell live 1 2 3 4")
		c.heard(4, "tell new0/2 t0/3 live 1 2 3 4")
		c.SetBrokers(brokers(map[int32]int64{1: 1, 2: 1, 4: 1}))
		c.heard(2, "tell new0/2 without [3] t0/3 without [3] live 1 2 4")
		c.heard(3)
		c.heard(4, "tell new0/2 without [3] t0/3 without [3] live 1 2 4")
		c.SetBrokers(brokers(map[int32]int64{1: 1, 2: 77, 4: 1}))
		c.heard(2, "tell @77 new0/2 without [3] t0/3 without [3] live 1 2 4", "lead @77 new0/2 t0/3 by b2:92")
		c.heard(4, "tell new0/2 without [3] t0/3 without [3] live 1 2 4")

		// another address is news for all, and no reason to begin anew
		live := brokers(map[int32]int64{1: 1, 2: 77, 4: 1})
		for i := range live {
			live[i].Rack = "r"
		}
		c.SetBrokers(live)
		c.heard(2, "tell @77 live 1 2 4")
		c.heard(4, "tell live 1 2 4")

		// a replica whose log directory failed
		failed := one("t", 1, 4, 2, 4)
		failed.Partitions[0].Failed = []int32{4}
		c.Update(failed)
		c.heard(4, "tell t0/4 without [4] live 1 2 4")
	})
}

// TestMergeWhileAway: what happens while a broker cannot be reached becomes one request of each kind; it is tried every 100 ms and complained of once.
func TestMergeWhileAway(t *testing.T) {
	play(t, []Topic{one("t", 1, 3, 2)}, func(t *testing.T, c *cluster) {
		c.setDown(2, true)
		c.SetBrokers(brokers(map[int32]int64{1: 1, 2: 1}))
		for n := range int32(10) {
			c.Announce(one("t", 1, 4+n, 2), one("u", 2, n, 2, 3))
			time.Sleep(retryAfter)
		}
		c.SetBrokers(brokers(map[int32]int64{1: 1, 2: 1, 3: 1}))
		synctest.Wait()
		if c.mu.Lock(); c.dials < 10 || c.dials > 15 {
			t.Errorf("%d connections in a second, want about one every %v", c.dials, retryAfter)
		}
		c.mu.Unlock()
		c.heard(2)
		c.setDown(2, false)
		time.Sleep(retryAfter)
		c.heard(2, "tell t0/3 live 1 2 3", "lead t0/13 u0/9* by b2:92", "tell t0/13 u0/9 live 1 2 3")
		if text := c.logged(); strings.Count(text, "cannot reach") != 1 || strings.Count(text, "answers again") != 1 {
			t.Errorf("logged:\n%s", text)
		}
	})
}

// TestSentAgain: a connection that ends before the answer is replaced, and the request sent again, before anything else.
func TestSentAgain(t *testing.T) {
	play(t, nil, func(t *testing.T, c *cluster) {
		failures := 3
		c.fakes[2].answer = func(req kmsg.Request) (kmsg.Response, error) {
			if req.Key() == keyLeaderAndISR && failures > 0 {
				failures--
				return nil, errHangUp
			}
			return nil, nil
		}
		c.SetBrokers(brokers(map[int32]int64{1: 1, 2: 1}))
		c.heard(2, "tell live 1 2")
		c.Announce(one("t", 1, 0, 2))
		time.Sleep(time.Second)
		lead := "lead t0/0* by b2:92"
		c.heard(2, lead, lead, lead, lead, "tell t0/0 live 1 2")
	})
}

// TestIdleConnection: one that the broker ended while nothing was sent is no failure, and one that it did not end is used again.
func TestIdleConnection(t *testing.T) {
	play(t, nil, func(t *testing.T, c *cluster) {
		c.fakes[2].idle = time.Minute
		c.SetBrokers(brokers(map[int32]int64{1: 1, 2: 1}))
		for n, wait := range []time.Duration{0, 40 * time.Second, 40 * time.Second, 2 * time.Minute, 0} {
			time.Sleep(wait)
			c.Update(one("t", 1, int32(n), 2))
			synctest.Wait()
			time.Sleep(probeFor)
			synctest.Wait()
		}
		var want []string
		for n := range 5 {
			want = append(want, fmt.Sprintf("tell t0/%d live 1 2", n))
		}
		if f := c.fakes[2]; len(f.seen) == 6 { // the first may have gone alone
			want = append([]string{"tell live 1 2"}, want...)
		}
		c.heard(2, want...)
		if text := c.logged(); text != "" || c.dials != 2 {
			t.Errorf("%d connections, want 2; logged:\n%s", c.dials, text)
		}
	})
}

// TestMovedBroker: one that cannot be reached is looked for where it says that it is now.
func TestMovedBroker(t *testing.T) {
	play(t, nil, func(t *testing.T, c *cluster) {
		c.setDown(2, true)
		c.SetBrokers(brokers(map[int32]int64{2: 1}))
		time.Sleep(time.Second)
		moved := brokers(map[int32]int64{2: 1})
		moved[0].Endpoints[0].Host = "b3"
		c.SetBrokers(moved)
		time.Sleep(time.Second)
		c.heard(3, "tell live 2", "tell live 2")
	})
}

// TestSlowBroker: one that does not answer keeps nobody else waiting, and is asked again when its time is over.
func TestSlowBroker(t *testing.T) {
	play(t, nil, func(t *testing.T, c *cluster) {
		slow := true
		c.fakes[2].answer = func(kmsg.Request) (kmsg.Response, error) {
			if slow {
				slow = false
				time.Sleep(defaultTimeout + time.Second)
			}
			return nil, nil
		}
		c.SetBrokers(brokers(map[int32]int64{1: 1, 2: 1, 3: 1}))
		c.heard(2, "tell live 1 2 3")
		c.Announce(one("t", 1, 0, 3))
		synctest.Wait()
		c.Announce(one("u", 2, 0, 3))
		c.heard(3, "tell live 1 2 3", "lead t0/0* by b3:92", "tell t0/0 live 1 2 3", "lead u0/0* by b3:92", "tell u0/0 live 1 2 3")
		time.Sleep(defaultTimeout + 2*time.Second)
		c.heard(2, "tell live 1 2 3", "tell t0/0 u0/0 live 1 2 3")
	})
}

func TestDelete(t *testing.T) {
	play(t, []Topic{one("t", 1, 3, 2, 3, 4)}, func(t *testing.T, c *cluster) {
		c.SetBrokers(brokers(map[int32]int64{1: 1, 2: 1, 3: 1}))
		c.heard(2, "tell t0/3 without [4] live 1 2 3", "lead t0/3 by b2:92")
		c.heard(3, "tell t0/3 without [4] live 1 2 3", "lead t0/3 by b2:92")
		c.fakes[3].answer = func(req kmsg.Request) (kmsg.Response, error) {
			if req.Key() == keyStopReplica {
				return &kmsg.StopReplicaResponse{Partitions: []kmsg.StopReplicaResponsePartition{{Topic: "t", ErrorCode: 56}}}, nil
			}
			return nil, nil
		}
		replies := make(chan Stopped, 9)
		if asked := c.Delete("t", func(s Stopped) { replies <- s }); !slices.Equal(asked, []int32{2, 3}) {
			t.Errorf("asked %v", asked)
		}
		c.heard(2, "tell t0/0- without [4] live 1 2 3", "stop t0/-2!")
		c.heard(3, "tell t0/0- without [4] live 1 2 3", "stop t0/-2!")
		got := map[int32]Stopped{}
		for range 2 {
			s := <-replies
			got[s.Broker] = s
		}
		if s := got[3]; s.Err != nil || len(s.Partitions) != 1 || s.Partitions[0] != (PartitionError{"t", 0, 56}) {
			t.Errorf("broker 3: %+v", s)
		}
		// a broker that comes now hears that the topic goes, and is not made a replica again
		c.SetBrokers(brokers(map[int32]int64{1: 1, 2: 1, 3: 1, 4: 1}))
		c.heard(4, "tell t0/0- live 1 2 3 4")
		c.heard(2, "tell t0/0- live 1 2 3 4")
		c.Forget("t")
		c.Announce(one("t", 2, 0, 2))
		c.heard(2, "lead t0/0* by b2:92", "tell t0/0 live 1 2 3 4")
		if asked := c.Delete("unknown", nil); asked != nil {
			t.Errorf("an unknown topic: asked %v", asked)
		}
	})
}

func TestStop(t *testing.T) {
	play(t, []Topic{one("t", 1, 3, 2, 3)}, func(t *testing.T, c *cluster) {
		c.SetBrokers(brokers(map[int32]int64{1: 1, 2: 1, 3: 1}))
		c.heard(3, "tell t0/3 live 1 2 3", "lead t0/3 by b2:92")
		c.setDown(4, true)
		replies := make(chan Stopped, 9)
		hear := func(s Stopped) { replies <- s }
		if asked := c.Stop("t", []int32{0, 7}, []int32{3, 4}, false, hear); !slices.Equal(asked, []int32{3}) {
			t.Errorf("asked %v", asked)
		}
		if s := <-replies; s.Broker != 3 || s.Err != nil {
			t.Errorf("%+v", s)
		}
		c.heard(3, "stop t0/3 t7/-1")

		// replies come also when there are no answers
		c.SetBrokers(brokers(map[int32]int64{1: 1, 2: 1, 3: 1, 4: 1}))
		c.Stop("t", []int32{0}, []int32{4}, true, hear)
		c.SetBrokers(brokers(map[int32]int64{1: 1, 2: 1, 3: 1}))
		if s := <-replies; s.Broker != 4 || !errors.Is(s.Err, ErrLeft) {
			t.Errorf("after it left: %+v", s)
		}
		c.SetBrokers(brokers(map[int32]int64{1: 1, 2: 1, 3: 1, 4: 2}))
		c.Stop("t", []int32{0}, []int32{4}, true, hear)
		c.Close()
		if s := <-replies; s.Broker != 4 || !errors.Is(s.Err, ErrClosed) {
			t.Errorf("after Close: %+v", s)
		}
		c.SetBrokers(brokers(map[int32]int64{2: 5})) // nothing comes of it
		synctest.Wait()
		dials := c.dials
		time.Sleep(time.Second)
		synctest.Wait()
		if c.dials != dials {
			t.Error("a broker was looked for after Close")
		}
	})
}

// TestAnswers: errors are told, with topics named whatever the version, and nothing is sent again because of them.
func TestAnswers(t *testing.T) {
	for _, newest := range []int16{7, 4, 1} {
		t.Run(fmt.Sprint(newest), func(t *testing.T) {
			play(t, []Topic{one("t", 1, 3, 2)}, func(t *testing.T, c *cluster) {
				c.fakes[2].newest[keyLeaderAndISR] = newest
				c.fakes[2].answer = func(req kmsg.Request) (kmsg.Response, error) {
					if req.Key() != keyLeaderAndISR {
						return &kmsg.UpdateMetadataResponse{ErrorCode: codeStaleControllerEpoch}, nil
					}
					failed := []kmsg.LeaderAndISRResponseTopicPartition{{Topic: "t", ErrorCode: 56}, {Topic: "t", Partition: 1, ErrorCode: codeStaleControllerEpoch}}
					return &kmsg.LeaderAndISRResponse{Partitions: failed, Topics: []kmsg.LeaderAndISRResponseTopic{{TopicID: [16]byte{1}, Partitions: failed}}}, nil
				}
				c.SetBrokers(brokers(map[int32]int64{2: 1}))
				time.Sleep(time.Minute)
				synctest.Wait()
				want := []Answer{{2, 1, 6, 11, nil}, {2, 1, 4, 0, []PartitionError{{"t", 0, 56}, {"t", 1, 11}}}}
				if got := c.answers; fmt.Sprint(got) != fmt.Sprint(want) || !got[0].SeatLost() || got[1].SeatLost() {
					t.Errorf("%+v, want %+v", got, want)
				}
				if text := c.logged(); !strings.Contains(text, "broker refused a change") || !strings.Contains(text, "broker failed with partitions\" broker=2 request=LeaderAndISR partitions=1 ") {
					t.Errorf("logged:\n%s", text)
				}
			})
		})
	}
}

// TestCannotBeTold: a broker without the requests, and one without a listener for us, are tried until they leave, and keep nobody waiting.
func TestCannotBeTold(t *testing.T) {
	play(t, nil, func(t *testing.T, c *cluster) {
		c.fakes[2].newest = map[int16]int16{18: 4, 0: 11}
		live := brokers(map[int32]int64{2: 1, 3: 1, 4: 1})
		for i := range live {
			if live[i].ID == 3 {
				live[i].Endpoints[0].Protocol = "SSL"
			}
		}
		c.SetBrokers(live)
		time.Sleep(time.Second)
		c.heard(2)
		c.heard(3)
		c.heard(4, "tell live 2 3 4")
		text := c.logged()
		for _, want := range []string{"the broker does not know UpdateMetadata", "add a PLAINTEXT listener"} {
			if strings.Count(text, want) != 1 {
				t.Errorf("%q is not told once:\n%s", want, text)
			}
		}
	})
}
