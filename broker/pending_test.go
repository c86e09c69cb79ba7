package broker

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log"
	"gregor/log/batch"
	"gregor/log/vfs/crashfs"
)

// TestPendingProduceOnAClosedLog: a produce that waits for a sync which never comes, because its topic is deleted or the broker stops, is
// answered when the log closes.
func TestPendingProduceOnAClosedLog(t *testing.T) {
	l, err := log.Open(log.Options{FS: crashfs.New(), Dir: "/topic-0", LogStart: -1})
	if err != nil {
		t.Fatal(err)
	}
	records := batchOf(t, batch.None, record{"k", "v", nowMillis()})
	h, err := batch.ReadHeader(records)
	if err != nil {
		t.Fatal(err)
	}
	appended, err := l.Append(records, h, 0)
	if err != nil {
		t.Fatal(err)
	}
	woken := make(chan struct{}, 1)
	resp := kmsg.NewPtrProduceResponse()
	resp.Topics = []kmsg.ProduceResponseTopic{{Partitions: make([]kmsg.ProduceResponseTopicPartition, 1)}}
	one := &resp.Topics[0].Partitions[0]
	p := &pendingSync{resp: resp, wake: func() { woken <- struct{}{} }, deadline: time.Now().Add(time.Hour)}
	p.waits = []syncWait{{log: l, last: appended.LastOffset, res: (*produceResult)(one)}}
	if _, ready := p.Poll(time.Now()); ready {
		t.Fatal("answered before the batch is durable")
	}
	l.Abandon()
	<-woken
	if _, ready := p.Poll(time.Now()); !ready || one.ErrorCode != kerr.NotLeaderForPartition.Code {
		t.Errorf("ready %v, error %d", ready, one.ErrorCode)
	}
}
