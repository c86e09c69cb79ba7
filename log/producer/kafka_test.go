package producer

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"gregor/log/batch"
)

// The files under testdata/kafka-* are a partition of a real Apache Kafka of that version: five idempotent producers, then three
// transactional ones that committed, aborted, committed once and (3.9.1 and 4.4.0) left one transaction open.

func kafkaFile(t *testing.T, version, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "kafka-"+version, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// replay builds the state from a segment, as recovery does. It returns the transactions that ended.
func replay(t *testing.T, s *State, segment []byte) (done []Completed) {
	t.Helper()
	var r batch.Reader
	for len(segment) > 0 {
		if err := batch.Verify(segment); err != nil {
			t.Fatal(err)
		}
		if err := r.Reset(segment, 0); err != nil {
			t.Fatal(err)
		}
		h := r.Header()
		segment = segment[h.Size():]
		if !h.Control() {
			b := Batch{ProducerID: h.ProducerID, Epoch: h.ProducerEpoch, BaseSequence: h.BaseSequence, LastDelta: h.LastDelta,
				Timestamp: h.MaxTimestamp, Transactional: h.Transactional()}
			if dup, err := s.Check(b, 0); dup != nil || err != nil {
				t.Fatalf("offset %d: duplicate %v, error %v", h.BaseOffset, dup, err)
			}
			s.Append(b, h.BaseOffset, 0)
			continue
		}
		var rec batch.Record
		if !r.Next(&rec) {
			t.Fatal(r.Err())
		}
		m := Marker{ProducerID: h.ProducerID, Epoch: h.ProducerEpoch, CoordinatorEpoch: int32(binary.BigEndian.Uint32(rec.Value[2:])),
			Commit: rec.Key[3] == 1, Timestamp: h.MaxTimestamp}
		if err := s.CheckMarker(m); err != nil {
			t.Fatal(err)
		}
		if c, ok := s.AppendMarker(m, h.BaseOffset, 0); ok {
			done = append(done, c)
		}
	}
	return done
}

func TestKafkaSnapshot(t *testing.T) {
	for _, version := range []string{"3.9.1", "4.4.0"} {
		t.Run(version, func(t *testing.T) {
			file := kafkaFile(t, version, "00000000000000000167.snapshot")
			entries, err := DecodeSnapshot(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) != 8 {
				t.Errorf("%d producers, want 8", len(entries))
			}
			if again := EncodeEntries(nil, entries); !bytes.Equal(again, file) {
				t.Errorf("encoded again it differs:\n%x\n%x", again, file)
			}
			restored := New(1000)
			restored.Restore(entries, 167, 0)
			if again := restored.EncodeSnapshot(nil); !bytes.Equal(again, file) {
				t.Errorf("restored and encoded it differs:\n%x\n%x", again, file)
			}
			replayed := New(1000)
			done := replay(t, replayed, kafkaFile(t, version, "00000000000000000000.log"))
			if again := replayed.EncodeSnapshot(nil); !bytes.Equal(again, file) {
				t.Errorf("replayed and encoded it differs:\n%x\n%x", again, file)
			}
			checkTransactions(t, replayed, done, kafkaFile(t, version, "00000000000000000000.txnindex"))
		})
	}
}

func checkTransactions(t *testing.T, s *State, done []Completed, index []byte) {
	t.Helper()
	var aborted []byte
	for _, c := range done {
		if c.Aborted {
			aborted = binary.BigEndian.AppendUint16(aborted, 0)
			for _, v := range []int64{c.ProducerID, c.FirstOffset, c.LastOffset, c.LastStableOffset} {
				aborted = binary.BigEndian.AppendUint64(aborted, uint64(v))
			}
		}
	}
	if !bytes.Equal(aborted, index) {
		t.Errorf("aborted transactions are\n%x\n.txnindex has\n%x", aborted, index)
	}
	first := done[0].FirstOffset
	if o, ok := s.FirstOpenOffset(); !ok || o != first {
		t.Errorf("first open offset before replication is %d, %t, want %d", o, ok, first)
	}
	s.SetHighWatermark(167)
	if o, ok := s.FirstOpenOffset(); !ok || o != 162 {
		t.Errorf("first open offset is %d, %t, want 162, where the open transaction starts", o, ok)
	}
}
