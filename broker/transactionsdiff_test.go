package broker

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/twophase"
	"gregor/log/batch"
)

// TestTransactionsAsKafka compares answers with those of Apache Kafka (testdata/transactions, written by TestRecordTransactions). Producer ids are
// renamed. Answers that pass, as CONCURRENT_TRANSACTIONS, are not noted: how many of them there are depends on the time.
func TestTransactionsAsKafka(t *testing.T) {
	asKafka(t, "transactions", quickGroups("offsets.topic.num.partitions", "50"), playTransactions, txnDeviates)
}

// txnDeviates reports if an answer is known to differ from that version of Kafka, because versions of Kafka differ from each other. We do as the
// newest does.
func txnDeviates(file, step string) bool {
	switch {
	case strings.Contains(file, "2.8"):
		return strings.HasPrefix(step, "Produce") && strings.HasSuffix(step, ", fenced") || // the log start is told with that error
			strings.HasSuffix(step, ", generation without member") // ILLEGAL_GENERATION
	case strings.Contains(file, "3.9"): // a new producer keeps the start of the transaction before it, and lists by that
		return strings.HasSuffix(step, ", fenced") && strings.HasPrefix(step, "DescribeTransactions") || strings.HasSuffix(step, ", fenced, an hour old")
	}
	return false
}

// TestRecordTransactions writes the answers of another broker down.
func TestRecordTransactions(t *testing.T) { writeDown(t, "transactions", playTransactions) }

// txnPlay is one run of all requests against one broker.
type txnPlay struct {
	*play
	ids     map[int64]string // producer ids, renamed to p0, p1, …
	topicID [16]byte
	txn     string // the present id
	who     batch.Producer
}

// playTransactions sends all requests that a broker with these versions knows.
func playTransactions(t *testing.T, addr string, ranges map[int16][2]int16) []played {
	p := &txnPlay{play: newPlay(t, addr, ranges), ids: map[int64]string{}}
	p.renamed, p.learn = p.rename, p.remember
	p.prepare()
	for v := int16(0); v <= 6; v++ {
		p.unknown(v)
	}
	for v := int16(0); v <= 5; v++ {
		p.life(v)
	}
	p.lifeV2()
	return p.out
}

func (p *txnPlay) remember(resp kmsg.Response) {
	id := int64(-1)
	switch r := resp.(type) {
	case *kmsg.InitProducerIDResponse:
		id = r.ProducerID
	case *twophase.Response:
		id = r.ProducerID
	case *kmsg.EndTxnResponse:
		id = r.ProducerID
	}
	if id >= 0 && p.ids[id] == "" && (resp.Key() == 22 || resp.GetVersion() >= 5) {
		p.ids[id] = fmt.Sprint("p", len(p.ids))
	}
}

// rename takes out what differs between any two brokers.
func (p *txnPlay) rename(v any) any {
	switch x := v.(type) {
	case []any:
		kept := x[:0]
		for _, e := range x {
			// Lists have other ids too.
			if m, ok := e.(map[string]any); !ok || m["TransactionalID"] == nil || m["TransactionalID"] == p.txn {
				kept = append(kept, p.rename(e))
			}
		}
		if len(kept) == 0 {
			return nil // null and empty are the same to clients here
		}
		return kept
	case map[string]any:
		for key, e := range x {
			switch key {
			case "ThrottleMillis", "UnknownTags", "Version", "ErrorMessage":
				delete(x, key)
			case "TopicID":
				x[key] = fmt.Sprint(e) == fmt.Sprint(p.topicID)
			case "Host", "Port", "NodeID":
				if text := fmt.Sprint(e); text != "" && text != "-1" {
					x[key] = "ours"
				}
			case "ProducerID":
				if n := int64(e.(float64)); p.ids[n] != "" {
					x[key] = p.ids[n]
				}
			case "StartTimestamp":
				x[key] = e.(float64) > 0
			default:
				x[key] = p.rename(e)
			}
			if list, ok := x[key].([]any); ok {
				sort.Slice(list, func(i, j int) bool { return fmt.Sprint(list[i]) < fmt.Sprint(list[j]) }) // Kafka has them in no order
			}
		}
	}
	return v
}

// passing are codes of answers that pass.
func passing(code int16) bool {
	switch code {
	case kerr.ConcurrentTransactions.Code, kerr.CoordinatorLoadInProgress.Code, kerr.CoordinatorNotAvailable.Code, kerr.NotCoordinator.Code:
		return true
	}
	return false
}

// codeOf is the error of an answer, of its first partition if it has none of its own.
func codeOf(resp kmsg.Response) int16 {
	switch r := resp.(type) {
	case *kmsg.InitProducerIDResponse:
		return r.ErrorCode
	case *twophase.Response:
		return r.ErrorCode
	case *kmsg.AddOffsetsToTxnResponse:
		return r.ErrorCode
	case *kmsg.EndTxnResponse:
		return r.ErrorCode
	case *kmsg.AddPartitionsToTxnResponse:
		if r.Version >= 4 {
			return r.Transactions[0].Topics[0].Partitions[0].ErrorCode
		}
		return r.Topics[0].Partitions[0].ErrorCode
	case *kmsg.TxnOffsetCommitResponse:
		return r.Topics[0].Partitions[0].ErrorCode
	case *kmsg.ProduceResponse:
		return r.Topics[0].Partitions[0].ErrorCode
	}
	return 0
}

// settled sends a request, at the version or the nearest that the broker knows, until its answer does not pass, and notes that.
func (p *txnPlay) settled(name string, version int16, r kmsg.Request) kmsg.Response {
	p.t.Helper()
	span := p.ranges[r.Key()]
	r.SetVersion(min(max(version, span[0]), span[1]))
	var resp kmsg.Response
	waitFor(p.t, func() bool {
		p.c.send(r)
		resp = p.c.receive(r, p.c.next)
		return !passing(codeOf(resp))
	})
	p.note(name, resp)
	return resp
}

// prepare makes the topic and waits until the coordinators are ready.
func (p *txnPlay) prepare() {
	r := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "play", 3, 1
	r.Topics, r.TimeoutMillis = append(r.Topics, topic), 10_000
	waitFor(p.t, func() bool {
		code := ask[*kmsg.CreateTopicsResponse](p.c, 5, r).Topics[0].ErrorCode
		return code == 0 || code == kerr.TopicAlreadyExists.Code
	})
	for kind := range int8(2) {
		waitFor(p.t, func() bool {
			f := kmsg.NewPtrFindCoordinatorRequest()
			f.CoordinatorType, f.CoordinatorKey = kind, "play"
			return ask[*kmsg.FindCoordinatorResponse](p.c, 2, f).ErrorCode == 0
		})
	}
	for v := int16(1); v <= 6; v++ {
		f := kmsg.NewPtrFindCoordinatorRequest()
		f.CoordinatorType, f.CoordinatorKey, f.CoordinatorKeys = 1, "play", []string{"play", "play-other"}
		p.step("of a transaction", v, f)
	}
	ids := []string{"play-none", "play-refused", "play-v2"}
	for v := range 6 {
		ids = append(ids, fmt.Sprint("play-life-", v))
	}
	for _, id := range ids { // each may be in a partition that is not loaded yet
		p.txn = id
		waitFor(p.t, func() bool {
			return !passing(ask[*kmsg.EndTxnResponse](p.c, 1, p.endRequest(batch.Producer{}, true)).ErrorCode)
		})
	}
	none := kmsg.NewPtrInitProducerIDRequest()
	waitFor(p.t, func() bool { return ask[*kmsg.InitProducerIDResponse](p.c, 1, none).ErrorCode == 0 })
	name := "play"
	m := kmsg.NewPtrMetadataRequest()
	m.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
	if p.ranges[3][1] >= 10 {
		waitFor(p.t, func() bool {
			got := ask[*kmsg.MetadataResponse](p.c, 10, m).Topics[0]
			p.topicID = got.TopicID
			return got.ErrorCode == 0 && len(got.Partitions) == 3
		})
	}
}

func (p *txnPlay) initRequest(as batch.Producer) *kmsg.InitProducerIDRequest {
	r := kmsg.NewPtrInitProducerIDRequest()
	id := p.txn
	r.TransactionalID, r.TransactionTimeoutMillis, r.ProducerID, r.ProducerEpoch = &id, 60_000, as.ID, as.Epoch
	return r
}

func noProducer() batch.Producer { return batch.Producer{ID: -1, Epoch: -1} }

// add asks for partitions of topics: name/partition.
func (p *txnPlay) addRequest(as batch.Producer, names ...string) *kmsg.AddPartitionsToTxnRequest {
	r := kmsg.NewPtrAddPartitionsToTxnRequest()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch = p.txn, as.ID, as.Epoch
	one := kmsg.NewAddPartitionsToTxnRequestTransaction()
	one.TransactionalID, one.ProducerID, one.ProducerEpoch = p.txn, as.ID, as.Epoch
	for _, name := range names {
		topic, n, _ := strings.Cut(name, "/")
		parts := []int32{int32(n[0] - '0')}
		if last := len(r.Topics) - 1; last >= 0 && r.Topics[last].Topic == topic {
			r.Topics[last].Partitions = append(r.Topics[last].Partitions, parts...)
			one.Topics[last].Partitions = r.Topics[last].Partitions
			continue
		}
		r.Topics = append(r.Topics, kmsg.AddPartitionsToTxnRequestTopic{Topic: topic, Partitions: parts})
		one.Topics = append(one.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: topic, Partitions: parts})
	}
	r.Transactions = append(r.Transactions, one)
	return r
}

func (p *txnPlay) addOffsetsRequest(as batch.Producer, group string) *kmsg.AddOffsetsToTxnRequest {
	r := kmsg.NewPtrAddOffsetsToTxnRequest()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Group = p.txn, as.ID, as.Epoch, group
	return r
}

func (p *txnPlay) endRequest(as batch.Producer, commit bool) *kmsg.EndTxnRequest {
	r := kmsg.NewPtrEndTxnRequest()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Commit = p.txn, as.ID, as.Epoch, commit
	return r
}

func (p *txnPlay) offsetsRequest(as batch.Producer, group string) *kmsg.TxnOffsetCommitRequest {
	r := kmsg.NewPtrTxnOffsetCommitRequest()
	r.TransactionalID, r.Group, r.ProducerID, r.ProducerEpoch, r.Generation = p.txn, group, as.ID, as.Epoch, -1
	note := "note"
	for _, name := range []string{"play", "nowhere"} {
		t := kmsg.TxnOffsetCommitRequestTopic{Topic: name, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{
			{Partition: 0, Offset: 7, LeaderEpoch: -1, Metadata: &note}, {Partition: 9, Offset: 7, LeaderEpoch: -1}}}
		if t.TopicID = p.topicID; name != "play" {
			t.TopicID = [16]byte{1}
		}
		r.Topics = append(r.Topics, t)
	}
	return r
}

// batchRequest is a Produce of one transactional record.
func (p *txnPlay) batchRequest(as batch.Producer, partition int32) *kmsg.ProduceRequest {
	var w batch.Builder
	w.Reset(batch.Options{LeaderEpoch: -1, Producer: &as, Transactional: true})
	w.Append(time.Now().UnixMilli(), []byte("k"), []byte("v"))
	b, err := w.Finish(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r := produceRequest("play", partition, -1, b)
	r.Topics[0].TopicID = p.topicID
	id := p.txn
	r.TransactionID = &id
	return r
}
