package clients

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// franz is github.com/twmb/franz-go. codecsSeen notes the codec of each topic's compressible record.
type franz struct{ codecsSeen map[string]string }

func (franz) name() string              { return "franz-go" }
func (franz) ability() ability          { return ability{magic: 2, codecs: toZstd, strictLz4: true} }
func (franz) set(all []record) []record { return all }

func (franz) produce(ctx context.Context, addr string, topics []*topic) error {
	for _, tp := range topics {
		if err := franzProduce(ctx, addr, tp); err != nil {
			tp.failure = err.Error()
		}
	}
	return nil
}

func franzProduce(ctx context.Context, addr string, tp *topic) error {
	codec := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[tp.codec]
	opts := []kgo.Opt{kgo.SeedBrokers(addr), kgo.ProducerBatchCompression(codec), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(5 * time.Millisecond), kgo.MetadataMinAge(50 * time.Millisecond)}
	if tp.magic() < 2 {
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	batch := make([]*kgo.Record, len(tp.set))
	for i, r := range tp.set {
		batch[i] = &kgo.Record{Topic: tp.name, Partition: r.partition, Timestamp: time.UnixMilli(r.timestamp), Key: r.key, Value: r.value}
		for _, h := range r.headers {
			batch[i].Headers = append(batch[i].Headers, kgo.RecordHeader{Key: h.key, Value: h.value})
		}
	}
	if err := cl.ProduceSync(ctx, batch...).FirstErr(); err != nil {
		return err
	}
	for _, r := range batch {
		tp.acks = append(tp.acks, r.Offset)
	}
	return nil
}

func (f franz) consume(ctx context.Context, addr string, topics []*topic) (view, error) {
	v := newView(topics)
	from := map[string]map[int32]kgo.Offset{}
	names := make([]string, len(topics))
	for i, tp := range topics {
		names[i] = tp.name
		from[tp.name] = map[int32]kgo.Offset{}
		for p := range int32(partitions) {
			from[tp.name][p] = kgo.NewOffset().AtStart()
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(from), kgo.FetchMaxWait(200*time.Millisecond))
	if err != nil {
		return v, err
	}
	defer cl.Close()
	left, err := f.listOffsets(ctx, cl, v, names)
	if err != nil {
		return v, err
	}
	for left > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return v, err
		}
		for r := range fetches.RecordsAll() {
			if err := v.add(r.Topic, int(r.Partition), f.line(r)); err != nil {
				return v, err
			}
			left--
		}
	}
	return v, nil
}

// listOffsets fills v.spans and returns how many records lie between begin and end of all partitions.
func (franz) listOffsets(ctx context.Context, cl *kgo.Client, v view, names []string) (int64, error) {
	adm := kadm.NewClient(cl)
	begin, err := adm.ListStartOffsets(ctx, names...)
	if err != nil {
		return 0, err
	}
	end, err := adm.ListEndOffsets(ctx, names...)
	if err != nil {
		return 0, err
	}
	at, err := adm.ListOffsetsAfterMilli(ctx, queryTime, names...)
	if err != nil {
		return 0, err
	}
	var left int64
	for _, name := range names {
		for p := range int32(partitions) {
			b, e, a := begin[name][p], end[name][p], at[name][p]
			if errors.Is(a.Err, kerr.UnsupportedForMessageFormat) { // no timestamps are stored
				a.Timestamp, a.Err = -1, nil
			}
			if a.Timestamp == -1 { // there is none; kadm gives the end instead
				a.Offset = -1
			}
			for _, o := range []kadm.ListedOffset{b, e, a} {
				if o.Err != nil {
					return 0, fmt.Errorf("list offsets of %s-%d: %w", name, p, o.Err)
				}
			}
			v.spans[name] = append(v.spans[name], span{b.Offset, e.Offset, a.Offset})
			left += e.Offset - b.Offset
		}
	}
	return left, nil
}

func (f franz) line(r *kgo.Record) string {
	got := record{partition: r.Partition, timestamp: -1, key: r.Key, value: r.Value}
	if !r.Timestamp.IsZero() { // message format 0 has none
		got.timestamp = r.Timestamp.UnixMilli()
	}
	for _, h := range r.Headers {
		got.headers = append(got.headers, header{h.Key, h.Value})
	}
	if string(r.Key) == "text" {
		f.codecsSeen[r.Topic] = codecs[r.Attrs.CompressionType()]
	}
	return got.line(r.Offset)
}
