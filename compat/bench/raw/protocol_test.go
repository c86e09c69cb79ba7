package raw

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// produceAnswer is an answer to ProduceRequest as kmsg writes it, with the given error code in the last partition.
func produceAnswer(partitions int, code int16) []byte {
	resp := kmsg.NewPtrProduceResponse()
	resp.SetVersion(7)
	t := kmsg.NewProduceResponseTopic()
	t.Topic = "some-topic"
	for i := range partitions {
		p := kmsg.NewProduceResponseTopicPartition()
		p.Partition, p.BaseOffset = int32(i), 17
		if i == partitions-1 {
			p.ErrorCode = code
		}
		t.Partitions = append(t.Partitions, p)
	}
	resp.Topics = append(resp.Topics, t)
	return resp.AppendTo([]byte{0, 0, 0, 1})
}

func TestCheckProduce(t *testing.T) {
	for _, n := range []int{1, 8, 250} {
		frame := produceAnswer(n, 0)
		if err := CheckProduce(frame, n); err != nil {
			t.Errorf("%d partitions: %v", n, err)
		}
		if allocs := testing.AllocsPerRun(10, func() { _ = CheckProduce(frame, n) }); allocs != 0 {
			t.Errorf("%d partitions: %v allocations", n, allocs)
		}
		if err := CheckProduce(produceAnswer(n, 6), n); err == nil {
			t.Errorf("%d partitions: error code 6 passes", n)
		}
		if err := CheckProduce(frame, n+1); !errors.Is(err, ErrFrame) {
			t.Errorf("%d partitions for %d: %v", n, n+1, err)
		}
		for cut := range frame {
			if err := CheckProduce(frame[:cut], n); err == nil {
				t.Fatalf("%d partitions: the first %d of %d bytes pass", n, cut, len(frame))
			}
		}
	}
}

func TestProduceRequest(t *testing.T) {
	batch := AppendBatch(nil, Batch{Records: 2, ValueSize: 10})
	data := ProduceRequest("some-topic", []int32{3, 5}, batch)
	if size := int(binary.BigEndian.Uint32(data)); size != len(data)-4 {
		t.Fatalf("size field %d of %d bytes", size, len(data))
	}
	header := 4 + 2 + 2 + 4 + 2 + len("gregor-bench")
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(7)
	if err := req.ReadFrom(data[header:]); err != nil {
		t.Fatal(err)
	}
	if req.Acks != -1 || len(req.Topics) != 1 || len(req.Topics[0].Partitions) != 2 {
		t.Fatalf("%+v", req)
	}
	if p := req.Topics[0].Partitions[1]; p.Partition != 5 || string(p.Records) != string(batch) {
		t.Errorf("second partition %+v", p)
	}
}

// fetchAnswer is an answer to a FetchRequest as kmsg writes it.
func fetchAnswer(topic string, records []byte, code int16) []byte {
	resp := kmsg.NewPtrFetchResponse()
	resp.SetVersion(12)
	t := kmsg.NewFetchResponseTopic()
	t.Topic = topic
	p := kmsg.NewFetchResponseTopicPartition()
	p.HighWatermark, p.RecordBatches, p.ErrorCode = 99, records, code
	t.Partitions = append(t.Partitions, p)
	resp.Topics = append(resp.Topics, t)
	return resp.AppendTo([]byte{0, 0, 0, 1, 0})
}

func TestParseFetchHead(t *testing.T) {
	for _, size := range []int{0, 1, 200, 70000, 1 << 20} {
		records := make([]byte, size)
		frame := fetchAnswer("some-topic", records, 0)
		h, err := ParseFetchHead(frame)
		if err != nil {
			t.Errorf("%d bytes: %v", size, err)
			continue
		}
		if h.HighWatermark != 99 || h.Records != size || h.Size+size > len(frame) {
			t.Errorf("%d bytes: %+v of %d", size, h, len(frame))
		}
		if _, err := ParseFetchHead(frame[:h.Size]); err != nil {
			t.Errorf("%d bytes: the head alone: %v", size, err)
		}
		for cut := range h.Size {
			if _, err := ParseFetchHead(frame[:cut]); err == nil {
				t.Fatalf("%d bytes: the first %d of a head of %d pass", size, cut, h.Size)
			}
		}
	}
	if _, err := ParseFetchHead(fetchAnswer("t", nil, 1)); err == nil {
		t.Error("error code 1 passes")
	}
}

func FuzzParseFetchHead(f *testing.F) {
	f.Add(fetchAnswer("some-topic", make([]byte, 300), 0))
	f.Add(fetchAnswer("", nil, 1))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if h, err := ParseFetchHead(frame); err == nil && (h.Size > len(frame) || h.Records < 0) {
			t.Errorf("%+v of %d bytes", h, len(frame))
		}
	})
}

func TestFetchRequestOffset(t *testing.T) {
	r, err := NewFetchRequest("some-topic", 4, 1<<20, 1, 500)
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint64(r.bytes[r.at:], 12345)
	header := 4 + 2 + 2 + 4 + 2 + len("gregor-bench") + 1
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(12)
	if err := req.ReadFrom(r.bytes[header:]); err != nil {
		t.Fatal(err)
	}
	if p := req.Topics[0].Partitions[0]; p.FetchOffset != 12345 || p.Partition != 4 || p.PartitionMaxBytes != 1<<20 {
		t.Errorf("%+v", p)
	}
}

func TestEachBatch(t *testing.T) {
	one := AppendBatch(nil, Batch{Records: 1, ValueSize: 10})
	three := AppendBatch(nil, Batch{Records: 3, ValueSize: 10})
	binary.BigEndian.PutUint64(three, 41)
	var got [][2]int64
	collect := func(base int64, count int) { got = append(got, [2]int64{base, int64(count)}) }
	if err := EachBatch(append(append(one, three...), three[:70]...), collect); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != [2]int64{0, 1} || got[1] != [2]int64{41, 3} {
		t.Errorf("%v", got)
	}
	three[16] = 1
	if err := EachBatch(three, collect); !errors.Is(err, ErrFrame) {
		t.Errorf("magic 1: %v", err)
	}
}
