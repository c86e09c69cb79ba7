package broker

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/fetchsession"
	"gregor/log"
	"gregor/wire"
)

// flatten is the body of f at a version with its sections replaced by what they stand for.
func flatten(t *testing.T, f *fetchBody, version int16) []byte {
	t.Helper()
	var p wire.Payload
	f.Encode(&p, version)
	flat, err := p.Flatten()
	if err != nil {
		t.Fatal(err)
	}
	return flat
}

// TestFetchBody compares every version with what kmsg reads and writes.
func TestFetchBody(t *testing.T) {
	file := memFile("zero0123456789tail")
	part := func(topic string, num int32) *fetchPart {
		return &fetchPart{
			Partition: fetchsession.Partition{Topic: topic, TopicID: [16]byte{1, byte(len(topic))}, Partition: num},
			hw:        100, lso: 90, start: 7,
		}
	}
	data, failed, diverged := part("first", 0), part("first", 3), part("second", 1)
	data.slice = log.Slice{File: file, Pos: 4, Size: 10}
	failed.errorCode, failed.hw, failed.lso, failed.start = 56, -1, -1, -1
	diverged.diverging, diverged.endEpoch, diverged.endOffset = true, 5, 77
	data.aborted = []log.AbortedTxn{{ProducerID: 5, FirstOffset: 6, LastOffset: 9}, {ProducerID: 1 << 40, FirstOffset: 1 << 33, LastOffset: 1 << 34}}
	body := &fetchBody{errorCode: 0, sessionID: 9, committed: true, parts: []*fetchPart{data, failed, diverged}}

	for version := int16(0); version <= 18; version++ {
		raw := flatten(t, body, version)
		got := kmsg.NewPtrFetchResponse()
		got.SetVersion(version)
		if err := got.ReadFrom(raw); err != nil {
			t.Fatalf("v%d: kmsg cannot read it: %v", version, err)
		}
		if again := got.AppendTo(nil); !bytes.Equal(again, raw) {
			t.Errorf("v%d: kmsg writes it differently:\n% x\n% x", version, raw, again)
		}
		checkFetchAnswer(t, version, got)
	}
}

func checkFetchAnswer(t *testing.T, version int16, got *kmsg.FetchResponse) {
	t.Helper()
	if len(got.Topics) != 2 || len(got.Topics[0].Partitions) != 2 || len(got.Topics[1].Partitions) != 1 {
		t.Fatalf("v%d: topics are %+v", version, got.Topics)
	}
	first, second := got.Topics[0].Partitions[0], got.Topics[0].Partitions[1]
	if string(first.RecordBatches) != "0123456789" || first.HighWatermark != 100 || version >= 4 && first.LastStableOffset != 90 {
		t.Errorf("v%d: first partition is %+v", version, first)
	}
	if aborted := first.AbortedTransactions; version >= 4 && (len(aborted) != 2 || aborted[0].ProducerID != 5 || aborted[1].FirstOffset != 1<<33) {
		t.Errorf("v%d: aborted transactions are %+v", version, aborted)
	}
	if second.AbortedTransactions == nil && version >= 4 {
		t.Errorf("v%d: a read_committed reader got null for no aborted transactions", version)
	}
	if want := int16(56); version > 5 && second.ErrorCode != want || version <= 5 && second.ErrorCode != 6 {
		t.Errorf("v%d: error is %d", version, second.ErrorCode)
	}
	if second.RecordBatches == nil || len(second.RecordBatches) != 0 {
		t.Errorf("v%d: records of a failed partition are %v, want empty and not null", version, second.RecordBatches)
	}
	if version >= 7 && got.SessionID != 9 {
		t.Errorf("v%d: session is %d", version, got.SessionID)
	}
	if d := got.Topics[1].Partitions[0].DivergingEpoch; version >= 12 && (d.Epoch != 5 || d.EndOffset != 77) {
		t.Errorf("v%d: diverging epoch is %+v", version, d)
	}
	if id := got.Topics[1].TopicID; version >= 13 && id != [16]byte{1, 6} {
		t.Errorf("v%d: topic id is %v", version, id)
	}
}
