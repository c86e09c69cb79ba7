package hostile

import (
	"bytes"
	"testing"
	"time"

	"gregor/compat/harness"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sys/unix"
)

const (
	idleConnections = 2000
	idlePerConn     = 20_000   // bytes of memory an idle connection may cost
	memorySlack     = 96 << 20 // what a broker may grow by under an attack, beside what it was told to hold
)

// TestLyingLengths: connections that announce big frames and send little cost no memory for what they did not send.
func TestLyingLengths(t *testing.T) {
	b := harness.Start(t, harness.Config{})
	if harness.Foreign(t, "memory for what is announced and not sent: Apache Kafka allocates it and runs out") {
		return
	}
	w := startWitness(t, b)
	before := b.RSS(t)
	for range 100 {
		c := dial(t, b.Addr())
		c.send(t, sized(90<<20, bytes.Repeat([]byte{0, 0, 0, 9, 0, 0, 0, 1}, 128)))
	}
	w.check(t, witnessLimit)
	if grown := b.RSS(t) - before; grown > memorySlack {
		t.Errorf("100 frames announced with 90 MiB and sent with 1 KiB cost %d MiB", grown>>20)
	} else {
		t.Logf("100 frames announced with 90 MiB and sent with 1 KiB cost %d KiB", grown>>10)
	}
}

// TestFlood: many connections that really send big frames are held to a total; everybody is answered in the end.
func TestFlood(t *testing.T) {
	const limit, flood = int64(64 << 20), 64
	b := harness.Start(t, harness.Config{Set: []string{"queued.max.request.bytes=67108864", "socket.request.max.bytes=20000000"}})
	w := startWitness(t, b)
	before := b.RSS(t)
	big := frame(3, produceRequest(1, "nobody-has-this-topic", map[int32][]byte{0: make([]byte, 16<<20)}))
	var conns []raw
	for range flood {
		c := dial(t, b.Addr())
		conns = append(conns, c)
		go func() { _, _ = c.Write(big) }()
	}
	peak := int64(0)
	for i, c := range conns {
		if _, _, err := c.read(60 * time.Second); err != nil {
			t.Errorf("connection %d got no answer: %v", i, err)
		}
		peak = max(peak, b.RSS(t)-before)
	}
	w.check(t, 30*time.Second) // it may wait for its share of the total, but not for ever
	if harness.Foreign(t, "memory under a flood of requests with queued.max.request.bytes") {
		return
	}
	allowed := limit*4 + memorySlack // with what a garbage collector has not taken back yet
	if peak > allowed && !harness.Race() {
		t.Errorf("%d × 16 MiB of requests grew the broker by %d MiB, allowed %d", flood, peak>>20, allowed>>20)
	}
	t.Logf("%d × 16 MiB of requests grew the broker by %d MiB", flood, peak>>20)
}

// TestSlowReaders: fetches of much data by connections that do not read hold no memory and no lock; read later, the
// answers are whole.
func TestSlowReaders(t *testing.T) {
	b := harness.Start(t, harness.Config{})
	topic := harness.Topic("slow")
	b.Create(t, 1, nil, topic)
	cl := b.Client(t, kgo.ProducerBatchCompression(kgo.NoCompression()))
	for range 40 {
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: make([]byte, 900<<10)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	w := startWitness(t, b)
	before := b.RSS(t)
	const readers, pipelined = 20, 3
	var conns []raw
	for range readers {
		c := dial(t, b.Addr())
		for i := range pipelined {
			c.send(t, frame(int32(i), fetchAll(topic)))
		}
		conns = append(conns, c)
	}
	time.Sleep(500 * time.Millisecond) // the broker fills every socket buffer and blocks
	grown := b.RSS(t) - before
	w.check(t, witnessLimit)
	for _, c := range conns[:3] {
		for i := range int32(pipelined) {
			resp := c.answer(t, i, fetchAll(topic)).(*kmsg.FetchResponse)
			p := resp.Topics[0].Partitions[0]
			if p.ErrorCode != 0 || len(p.RecordBatches) < 30<<20 {
				t.Errorf("a slow reader's answer %d: error %d, %d bytes", i, p.ErrorCode, len(p.RecordBatches))
			}
		}
	}
	if harness.Foreign(t, "memory while 20 connections do not read their fetches") {
		return
	}
	if grown > memorySlack {
		t.Errorf("%d connections that do not read %d fetches of 35 MiB cost %d MiB", readers, pipelined, grown>>20)
	}
	t.Logf("%d connections that do not read %d fetches of 35 MiB cost %d KiB", readers, pipelined, grown>>10)
}

func fetchAll(topic string) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 11, -1, 1000, 1, 50<<20
	req.SessionEpoch = -1
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.PartitionMaxBytes = 50 << 20
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

// TestIdle: 2000 connections that did one request and then nothing cost little each, and all still answer.
func TestIdle(t *testing.T) {
	raiseFileLimit(t)
	b := harness.Start(t, harness.Config{})
	w := startWitness(t, b)
	versions := kmsg.NewPtrApiVersionsRequest()
	warm := dial(t, b.Addr())
	warm.ask(t, 1, versions)
	time.Sleep(200 * time.Millisecond)
	before, files := b.RSS(t), b.OpenFiles(t)
	conns := make([]raw, idleConnections)
	for i := range conns {
		conns[i] = dial(t, b.Addr())
		conns[i].ask(t, 1, versions)
	}
	grown := b.RSS(t) - before
	w.check(t, witnessLimit)
	for _, c := range conns {
		c.ask(t, 2, versions)
		c.Close()
	}
	if harness.Foreign(t, "memory and open files of 2000 idle connections") {
		return
	}
	t.Logf("an idle connection costs %d bytes", grown/idleConnections)
	if grown/idleConnections > idlePerConn && !harness.Race() {
		t.Errorf("an idle connection costs %d bytes, allowed %d", grown/idleConnections, idlePerConn)
	}
	for deadline := time.Now().Add(time.Minute); b.OpenFiles(t) > files+20; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d files were open before, %d are after all connections were closed", files, b.OpenFiles(t))
		}
	}
}

func raiseFileLimit(t *testing.T) {
	t.Helper()
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		t.Fatal(err)
	}
	const need = idleConnections + 500
	if lim.Cur < need {
		lim.Cur, lim.Max = need, max(lim.Max, need)
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
			t.Fatalf("%d open files are needed, the limit is %d: raise it with `ulimit -n`: %v", need, lim.Cur, err)
		}
	}
}
