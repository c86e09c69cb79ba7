package broker

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"gregor/log/batch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come. It is long, since a machine may be busy, and never waited for in vain but by a test that fails.
const patience = 2 * time.Minute

// testBroker is a broker on a directory of its own, with what a test needs to talk to it.
type testBroker struct {
	*Broker
	t *testing.T
}

// startBroker starts a broker in dir with further settings and stops it at the end of the test.
func startBroker(t *testing.T, dir string, settings ...string) *testBroker {
	t.Helper()
	b := newBroker(t, Config{}, dir, settings...)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stopClean)
	return b
}

// newBroker makes one without starting it. Settings are keys and values in turn.
func newBroker(t *testing.T, c Config, dir string, settings ...string) *testBroker {
	t.Helper()
	c.Settings = map[string]string{"log.dirs": dir, "listeners": "PLAINTEXT://127.0.0.1:0"}
	for i := 0; i < len(settings); i += 2 {
		c.Settings[settings[i]] = settings[i+1]
	}
	if testing.Verbose() && c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &testBroker{b, t}
}

func (b *testBroker) stopClean() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.Shutdown(ctx); err != nil {
		b.t.Errorf("shutdown: %v", err)
	}
}

// abandon ends the broker as a kill would: nothing is written that was not.
func (b *testBroker) abandon() {
	b.t.Helper()
	b.stop.Do(func() {
		close(b.stopping)
		b.ticks.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = b.server.Shutdown(ctx) // its context has ended, which is what it says
		b.txns.close()
		b.groups.close()
		b.dir.Abandon()
		if err := b.tree.Close(); err != nil {
			b.t.Error(err)
		}
		close(b.done)
	})
}

// client is one raw connection. It fails its test on any error.
type client struct {
	t    *testing.T
	conn net.Conn
	next int32
	id   string
}

func (b *testBroker) dial() *client {
	b.t.Helper()
	conn, err := net.Dial("tcp", b.Addr())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return &client{t: b.t, conn: conn, id: "test"}
}

// send writes a request at the version that it has.
func (c *client) send(r kmsg.Request) {
	c.t.Helper()
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID(c.id))
	c.next++
	frame := f.AppendRequest(nil, r, c.next)
	if r.Key() == 7 && r.GetVersion() == 0 { // ControlledShutdown, which kmsg writes the header of and nothing else
		frame = r.AppendTo(frame)
		binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	}
	if _, err := c.conn.Write(frame); err != nil {
		c.t.Fatal(err)
	}
}

// receive reads the answer to r, which must be the oldest without one.
func (c *client) receive(r kmsg.Request, correlation int32) kmsg.Response {
	c.t.Helper()
	var size [4]byte
	if _, err := io.ReadFull(c.conn, size[:]); err != nil {
		c.t.Fatalf("reading the answer to key %d v%d: %v", r.Key(), r.GetVersion(), err)
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c.conn, frame); err != nil {
		c.t.Fatal(err)
	}
	in := kbin.Reader{Src: frame}
	if got := in.Int32(); got != correlation {
		c.t.Fatalf("correlation id is %d, want %d", got, correlation)
	}
	if r.IsFlexible() && r.Key() != 18 {
		kmsg.SkipTags(&in)
	}
	resp := r.ResponseKind()
	if err := resp.ReadFrom(in.Src); err != nil {
		c.t.Fatalf("key %d v%d: answer does not parse: %v", r.Key(), r.GetVersion(), err)
	}
	if got := resp.AppendTo(nil); len(got) != len(in.Src) {
		c.t.Fatalf("key %d v%d: answer has %d bytes, kmsg reads %d of them", r.Key(), r.GetVersion(), len(in.Src), len(got))
	}
	return resp
}

// ask sends r at version and returns the answer.
func ask[R kmsg.Response](c *client, version int16, r kmsg.Request) R {
	c.t.Helper()
	r.SetVersion(version)
	c.send(r)
	return c.receive(r, c.next).(R)
}

// record is one record of a test batch.
type record struct {
	key, value string
	ts         int64
}

// batchOf makes a batch of records as an idempotence-free client would.
func batchOf(t *testing.T, codec batch.Codec, records ...record) []byte {
	t.Helper()
	return producerBatch(t, codec, -1, -1, -1, records...)
}

// produceRequest is a request for one partition.
func produceRequest(topic string, partition int32, acks int16, records []byte) *kmsg.ProduceRequest {
	r := kmsg.NewPtrProduceRequest()
	r.Acks = acks
	r.TimeoutMillis = 5000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = partition, records
	rt.Partitions = append(rt.Partitions, rp)
	r.Topics = append(r.Topics, rt)
	return r
}

// produce sends one batch with acks -1 and returns the answer for its partition.
func (c *client) produce(topic string, partition int32, records []byte) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	resp := ask[*kmsg.ProduceResponse](c, 9, produceRequest(topic, partition, -1, records))
	return resp.Topics[0].Partitions[0]
}

// fetchRequest is a request for one partition that waits up to maxWait for a byte.
func fetchRequest(topic string, partition int32, offset int64, maxWait time.Duration) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.MaxWaitMillis = int32(maxWait.Milliseconds())
	r.MinBytes, r.MaxBytes, r.SessionEpoch = 1, 1<<20, -1
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = partition, offset, 1<<20
	rp.CurrentLeaderEpoch = -1
	rt.Partitions = append(rt.Partitions, rp)
	r.Topics = append(r.Topics, rt)
	return r
}

// fetch reads one partition.
func (c *client) fetch(topic string, partition int32, offset int64, maxWait time.Duration) kmsg.FetchResponseTopicPartition {
	c.t.Helper()
	resp := ask[*kmsg.FetchResponse](c, 12, fetchRequest(topic, partition, offset, maxWait))
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		c.t.Fatalf("answer is %+v", resp)
	}
	return resp.Topics[0].Partitions[0]
}

// createTopic makes a topic through Metadata's auto creation, which has num.partitions partitions.
func (c *client) createTopic(name string) {
	c.t.Helper()
	r := kmsg.NewPtrMetadataRequest()
	r.AllowAutoTopicCreation = true
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &name
	r.Topics = append(r.Topics, rt)
	resp := ask[*kmsg.MetadataResponse](c, 9, r)
	if resp.Topics[0].ErrorCode != 0 {
		c.t.Fatalf("creating %s: error %d", name, resp.Topics[0].ErrorCode)
	}
}

// producerBatch makes a batch of an idempotent producer; id -1 is none.
func producerBatch(t *testing.T, codec batch.Codec, id int64, epoch int16, sequence int32, records ...record) []byte {
	t.Helper()
	o := batch.Options{Codec: codec, LeaderEpoch: -1}
	if id >= 0 {
		o.Producer = &batch.Producer{ID: id, Epoch: epoch, Sequence: sequence}
	}
	var w batch.Builder
	w.Reset(o)
	for _, r := range records {
		w.Append(r.ts, []byte(r.key), []byte(r.value))
	}
	b, err := w.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// values lists the values of all records in a fetched set of batches, from an offset on.
func values(t *testing.T, set []byte, from int64) []string {
	t.Helper()
	var out []string
	for len(set) >= batch.HeaderSize {
		h, err := batch.ReadHeader(set)
		if err != nil {
			t.Fatal(err)
		}
		if h.Size() > len(set) {
			break // cut off, as Kafka allows at the end
		}
		var r batch.Reader
		if err := r.Reset(set[:h.Size()], 0); err != nil {
			t.Fatal(err)
		}
		var rec batch.Record
		for r.Next(&rec) {
			if rec.Offset >= from {
				out = append(out, string(rec.Value))
			}
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		set = set[h.Size():]
	}
	return out
}
