package broker

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
	"gregor/wire"
)

// FuzzOldProduceFetch gives message sets to topics of each format and reads back what was stored by every old version: whatever a set is, it is
// refused as a whole, or all its records are read the same by all that can read them.
func FuzzOldProduceFetch(f *testing.F) {
	var d batch.Downgrader
	for magic := range byte(2) {
		for _, codec := range []batch.Codec{batch.None, batch.Gzip, batch.Snappy, batch.LZ4} {
			var w batch.Builder
			w.Reset(batch.Options{LeaderEpoch: -1})
			w.Append(oldTime, []byte("k"), []byte("v"))
			w.Append(oldTime+1, nil, []byte("long value long value"))
			w.Append(-1, []byte("k"), nil)
			b, err := w.Finish(nil)
			if err != nil {
				f.Fatal(err)
			}
			set, err := d.Set(nil, b, batch.SetOptions{Magic: int8(magic), Codec: codec})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(set, int16(magic)+1)
			f.Add(append(set, set[:20]...), int16(0))
		}
	}
	f.Add(message(1, 1, 0, oldTime, nil, message(1, 1, 0, oldTime, nil, nil)), int16(2))

	b := fuzzBroker(f, false)
	conn := &wire.ConnInfo{Listener: "PLAINTEXT", Local: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9092}, Remote: &net.TCPAddr{}}
	send := func(t *testing.T, version int16, r kmsg.Request) kmsg.Response {
		r.SetVersion(version)
		reply := b.Handle(t.Context(), &wire.Request{Key: r.Key(), Version: version, Body: r, Conn: conn, Wake: func() {}})
		if reply.Body == nil {
			t.Fatalf("key %d v%d: no answer", r.Key(), version)
		}
		var p wire.Payload
		reply.Body.Encode(&p, version)
		flat, err := p.Flatten()
		if err != nil {
			t.Fatal(err)
		}
		resp := r.ResponseKind()
		if err := resp.ReadFrom(flat); err != nil {
			t.Fatalf("key %d v%d: answer does not parse: %v", r.Key(), version, err)
		}
		return resp
	}
	formats := []string{"0.9.0", "0.10.0", "3.0"}
	for _, version := range formats { // what is written there is shown at once
		r := createRequest(newTopic(version, 1, 1, "message.format.version", version, "flush.messages", "1000000"))
		r.SetVersion(7)
		b.Handle(f.Context(), &wire.Request{Key: r.Key(), Version: 7, Body: r, Conn: conn, Wake: func() {}})
	}
	f.Fuzz(func(t *testing.T, set []byte, version int16) {
		version = version & 3 % 3
		set = resealed(set)
		for format, topic := range formats {
			part := b.topics.name(topic).partition(0)
			before := part.log.EndOffset()
			resp := send(t, version, produceRequest(topic, 0, 1, bytes.Clone(set))).(*kmsg.ProduceResponse)
			p := resp.Topics[0].Partitions[0]
			after := part.log.EndOffset()
			if (p.ErrorCode != 0 || p.BaseOffset < 0) != (after == before) || p.ErrorCode == -1 {
				t.Fatalf("error %d, base offset %d: the log went from %d to %d", p.ErrorCode, p.BaseOffset, before, after)
			}
			if after == before {
				continue
			}
			var want []oldRecord
			for fetch := int16(4); fetch >= 0; fetch-- {
				r := fetchRequest(topic, 0, before, 0)
				r.Topics[0].Partitions[0].PartitionMaxBytes = 1 << 24
				r.MaxBytes = 1 << 24
				in := send(t, fetch, r).(*kmsg.FetchResponse).Topics[0].Partitions[0]
				got := oldRecords(t, in.RecordBatches, byte(readableMagic(fetch)), before)
				if fetch == 4 {
					want = got
				}
				if len(want) != int(after-before) || len(got) > len(want) || len(got) == 0 {
					t.Fatalf("format %d, fetch v%d: error %d, %d records, want %d", format, fetch, in.ErrorCode, len(got), after-before)
				}
				sameOldRecords(t, topic, got, want[:len(got)], fetch < 2)
			}
		}
	})
}

// resealed is a set with right checksums where it has whole messages: damage that a checksum finds is not interesting.
func resealed(set []byte) []byte {
	set = bytes.Clone(set)
	for rest := set; len(rest) >= batch.MinEntrySize; {
		size := int64(int32(binary.BigEndian.Uint32(rest[8:]))) + batch.OverheadSize
		if size < batch.MinEntrySize || size > int64(len(rest)) {
			break
		}
		if rest[batch.MagicPos] < 2 {
			binary.BigEndian.PutUint32(rest[12:], crc32.ChecksumIEEE(rest[16:size]))
		}
		rest = rest[size:]
	}
	return set
}
