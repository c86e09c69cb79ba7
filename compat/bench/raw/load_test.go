package raw

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve answers every frame that comes on any connection with what answer returns; nil is no answer.
func serve(t *testing.T, answer func(request []byte) []byte) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serveOne(c, answer) // tests use one connection at a time
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func serveOne(c net.Conn, answer func([]byte) []byte) {
	defer c.Close()
	var size [4]byte
	for {
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		request := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(c, request); err != nil {
			return
		}
		if a := answer(request); a != nil {
			if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(a))), a...)); err != nil {
				return
			}
		}
	}
}

func dial(t *testing.T, addr string) *Conn {
	t.Helper()
	c, err := Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func checkOne(frame []byte) error { return CheckProduce(frame, 1) }

func oneRecord() []byte {
	return ProduceRequest("t", []int32{0}, AppendBatch(nil, Batch{Records: 1, ValueSize: 100}))
}

func TestPipelineLimit(t *testing.T) {
	var requests atomic.Int64
	answer := produceAnswer(1, 0)
	addr := serve(t, func([]byte) []byte { requests.Add(1); return answer })
	for _, limit := range []int64{1, 4, 5, 1003} {
		requests.Store(0)
		var answers atomic.Int64
		p := Pipeline{Conn: dial(t, addr), Cycle: NewCycle(3, oneRecord(), oneRecord()), InFlight: 5, Check: checkOne, Answers: &answers, Limit: limit}
		if err := p.Run(new(atomic.Bool)); err != nil {
			t.Fatal(err)
		}
		if requests.Load() != limit || answers.Load() != limit {
			t.Errorf("limit %d: %d requests, %d answers", limit, requests.Load(), answers.Load())
		}
		p.Conn.Abort() // the server handles one connection at a time
	}
}

func TestPipelineStop(t *testing.T) {
	var stop atomic.Bool
	var requests, answers atomic.Int64
	answer := produceAnswer(1, 0)
	addr := serve(t, func([]byte) []byte {
		if requests.Add(1) == 500 {
			stop.Store(true)
		}
		return answer
	})
	p := Pipeline{Conn: dial(t, addr), Cycle: NewCycle(1, oneRecord()), InFlight: 5, Check: checkOne, Answers: &answers}
	if err := p.Run(&stop); err != nil {
		t.Fatal(err)
	}
	if requests.Load() < 500 || answers.Load() != requests.Load() {
		t.Errorf("%d requests, %d answers", requests.Load(), answers.Load())
	}
}

func TestPipelineError(t *testing.T) {
	answer := produceAnswer(1, 6)
	p := Pipeline{
		Conn: dial(t, serve(t, func([]byte) []byte { return answer })), Cycle: NewCycle(1, oneRecord()),
		InFlight: 5, Check: checkOne, Answers: new(atomic.Int64),
	}
	if err := p.Run(new(atomic.Bool)); err == nil || !strings.Contains(err.Error(), "error code 6") {
		t.Errorf("got %v", err)
	}
}

func TestOpenLoop(t *testing.T) {
	answer := produceAnswer(1, 0)
	o := OpenLoop{
		Conn: dial(t, serve(t, func([]byte) []byte { return answer })), Cycle: NewCycle(4, oneRecord()),
		Interval: 200 * time.Microsecond, Warm: 50, Count: 200, Check: checkOne, Patience: 20 * time.Second,
	}
	res, err := o.Run(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if res.Latency.Len() != 200 || res.Late.Len() != 200 || res.Missing != 0 {
		t.Errorf("%d latencies, %d latenesses, %d missing", res.Latency.Len(), res.Late.Len(), res.Missing)
	}
	if res.Latency.Quantile(0) <= 0 || res.Late.Quantile(0) < 0 {
		t.Errorf("least latency %v, least lateness %v", res.Latency.Quantile(0), res.Late.Quantile(0))
	}
}

// A broker that stops answering after some requests: all others count with at least the time waited for them.
func TestOpenLoopGivesUp(t *testing.T) {
	var requests atomic.Int64
	answer := produceAnswer(1, 0)
	addr := serve(t, func([]byte) []byte {
		if requests.Add(1) > 60 {
			return nil
		}
		return answer
	})
	const patience = 100 * time.Millisecond
	o := OpenLoop{
		Conn: dial(t, addr), Cycle: NewCycle(4, oneRecord()),
		Interval: 200 * time.Microsecond, Warm: 50, Count: 200, Check: checkOne, Patience: patience,
	}
	res, err := o.Run(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if res.Missing != 190 || res.Latency.Len() != 200 {
		t.Errorf("%d missing, %d latencies", res.Missing, res.Latency.Len())
	}
	if got := res.Latency.Quantile(0.06); got < patience {
		t.Errorf("the first of the missing counts %v, less than the patience of %v", got, patience)
	}
}

func TestReader(t *testing.T) {
	var stop atomic.Bool
	var bytes atomic.Int64
	batch, err := AppendBatchOfSize(nil, 4096, 4, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // the server may still see a request that was sent ahead when the reader has stopped
	var offsets []uint64
	addr := serve(t, func(request []byte) []byte {
		at := strings.LastIndex(string(request), "\xff\xff\xff\xff\xff\xff\xff\xff") // log start offset -1
		offset := binary.BigEndian.Uint64(request[at-12:])
		mu.Lock()
		defer mu.Unlock()
		if offsets = append(offsets, offset); len(offsets) == 9 {
			stop.Store(true)
		}
		records := strings.Repeat(string(batch), min(2, int(20-offset)/4))
		return fetchAnswer("t", []byte(records), 0)
	})
	r := Reader{
		Conn: dial(t, addr), Topic: "t", Partitions: []int32{0, 1}, End: 20, BatchSize: 4096, BatchCount: 4, MaxBytes: 8192, Ahead: 2, Bytes: &bytes,
	}
	if err := r.Run(&stop); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for i, want := range []uint64{0, 8, 16, 0, 8, 16, 0, 8, 16} {
		if offsets[i] != want {
			t.Errorf("request %d asks for offset %d, want %d", i, offsets[i], want)
		}
	}
	if bytes.Load() == 0 || bytes.Load()%4096 != 0 {
		t.Errorf("%d bytes counted", bytes.Load())
	}
}

func TestBareServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "segment")
	if err := os.WriteFile(file, make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := NewBareServer([]string{file}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	var bytes atomic.Int64
	var stop atomic.Bool
	ended := make(chan error, 1)
	go func() { ended <- Drain(c, 64<<10, &stop, &bytes) }()
	deadline := time.After(20 * time.Second)
	for bytes.Load() < 1_000_000 {
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-deadline:
			t.Fatalf("%d bytes after 20 s", bytes.Load())
		case <-time.After(time.Millisecond):
		}
	}
	stop.Store(true)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	c.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
