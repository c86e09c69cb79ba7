package broker

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestGroupsAsKafka compares answers with those of Apache Kafka (testdata/groups, written by TestRecordGroups against brokers with
// group.initial.rebalance.delay.ms=0). Member ids and addresses are renamed.
func TestGroupsAsKafka(t *testing.T) { asKafka(t, "groups", quickGroups(), playGroups, deviates) }

// deviates reports if an answer is known to differ from that version of Kafka, because versions of Kafka differ from each other. We do as the
// newest does.
func deviates(file, step string) bool {
	newest := strings.Contains(file, "4.4")
	old := strings.Contains(file, "2.8")
	switch {
	case newest:
		return false
	case strings.HasPrefix(step, "OffsetCommit v9: unknown group"): // ILLEGAL_GENERATION before 4
		return true
	case strings.HasPrefix(step, "DescribeGroups") && strings.HasSuffix(step, ", rebalance"): // assignments are shown in it since 4
		return true
	case strings.HasSuffix(step, ", empty") && !strings.Contains(step, "static"): // a group went with the last offset that was deleted, before 4
		return strings.HasPrefix(step, "DescribeGroups") || strings.HasPrefix(step, "ListGroups") || strings.HasPrefix(step, "DeleteGroups")
	case old && strings.HasSuffix(step, ", other id"): // an instance id that does not exist was taken for none
		return true
	case old && strings.Contains(step, "play-static-") && !strings.HasSuffix(step, " id"): // so that one left the group by it
		return true
	case old && strings.HasSuffix(step, ", by state"): // states were compared with their case
		return true
	}
	return false
}

// TestRecordGroups writes the answers of another broker down.
func TestRecordGroups(t *testing.T) { writeDown(t, "groups", playGroups) }

// groupPlay is one run of all requests against one broker.
type groupPlay struct {
	*play
	ids     []string // member ids, renamed to m0, m1, …
	topicID [16]byte
	group   string         // the present one
	unique  *regexp.Regexp // a member id
}

// playGroups sends all requests that a broker with these versions knows.
func playGroups(t *testing.T, addr string, ranges map[int16][2]int16) []played {
	p := &groupPlay{play: newPlay(t, addr, ranges), unique: regexp.MustCompile(`^\w+-[0-9a-f-]{36}$`)}
	p.play.renamed, p.play.learn = p.renamed, p.learn
	p.prepare()
	p.coordinators()
	p.unknown()
	for v := int16(0); v <= 9; v++ {
		p.life(v)
	}
	for v := int16(5); v <= 9; v++ {
		p.static(v)
	}
	p.offsetsOnly()
	return p.out
}

// prepare makes the topic and waits until the coordinator is ready.
func (p *groupPlay) prepare() {
	r := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "play", 2, 1
	r.Topics, r.TimeoutMillis = append(r.Topics, topic), 10_000
	waitFor(p.t, func() bool {
		code := ask[*kmsg.CreateTopicsResponse](p.c, 5, r).Topics[0].ErrorCode
		return code == 0 || code == kerr.TopicAlreadyExists.Code
	})
	waitFor(p.t, func() bool {
		f := kmsg.NewPtrFindCoordinatorRequest()
		f.CoordinatorKey = "g"
		return ask[*kmsg.FindCoordinatorResponse](p.c, 2, f).ErrorCode == 0
	})
	waitFor(p.t, func() bool {
		l := kmsg.NewPtrOffsetFetchRequest()
		l.Group = "ready"
		return ask[*kmsg.OffsetFetchResponse](p.c, 5, l).ErrorCode == 0
	})
	name := "play"
	m := kmsg.NewPtrMetadataRequest()
	m.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
	if p.ranges[3][1] >= 10 {
		waitFor(p.t, func() bool {
			got := ask[*kmsg.MetadataResponse](p.c, 10, m).Topics[0]
			p.topicID = got.TopicID
			return got.ErrorCode == 0 && len(got.Partitions) == 2
		})
	}
}

// learn takes a member id down before it is renamed.
func (p *groupPlay) learn(resp kmsg.Response) {
	if j, ok := resp.(*kmsg.JoinGroupResponse); ok && j.MemberID != "" && !strings.HasPrefix(j.MemberID, "bogus") {
		p.remember(j.MemberID)
	}
}

func (p *groupPlay) remember(id string) {
	for _, known := range p.ids {
		if known == id {
			return
		}
	}
	p.ids = append(p.ids, id)
}

// renamed takes out what differs between any two brokers.
func (p *groupPlay) renamed(v any) any {
	switch x := v.(type) {
	case []any:
		kept := x[:0]
		for _, e := range x {
			// Lists have other groups too.
			if m, ok := e.(map[string]any); !ok || m["Group"] == nil || m["Group"] == p.group || p.group == "" {
				kept = append(kept, p.renamed(e))
			}
		}
		return kept
	case string:
		for i, id := range p.ids {
			x = strings.ReplaceAll(x, id, fmt.Sprint("m", i))
		}
		return p.unique.ReplaceAllString(x, "unknown") // a member that was not answered yet
	case map[string]any:
		for key, e := range x {
			switch key {
			case "ThrottleMillis", "UnknownTags", "Version":
				delete(x, key)
			case "TopicID":
				x[key] = fmt.Sprint(e) == fmt.Sprint(p.topicID)
			case "Host", "Port", "NodeID":
				if text := fmt.Sprint(e); text != "" && text != "-1" {
					x[key] = "ours"
				}
			case "ErrorMessage":
				delete(x, key) // the words are our own
			case "AuthorizedOperations":
				if e != nil && e.(float64) > 0 {
					x[key] = int(e.(float64)) & 328 // those that every version of Kafka has
				}
			default:
				x[key] = p.renamed(e)
			}
			if list, ok := x[key].([]any); ok && (key == "Members" || key == "Groups" || key == "Topics" || key == "Partitions") {
				sort.Slice(list, func(i, j int) bool { return fmt.Sprint(list[i]) < fmt.Sprint(list[j]) }) // Kafka has them in no order
			}
		}
	}
	return v
}

func (p *groupPlay) coordinators() {
	for v := int16(0); v <= 6; v++ {
		for kind := int8(0); kind <= 3 && (v > 0 || kind == 0); kind++ {
			if kind == 1 {
				continue // there is no transaction coordinator yet
			}
			r := kmsg.NewPtrFindCoordinatorRequest()
			r.CoordinatorKey, r.CoordinatorKeys, r.CoordinatorType = "g", []string{"g", "h"}, kind
			if kind == 0 || v < 6 && kind == 2 {
				p.step(fmt.Sprintf("of type %d", kind), v, r)
			}
		}
	}
}

// unknown asks for what is not there.
func (p *groupPlay) unknown() {
	for v := int16(0); v <= 10; v++ {
		for _, id := range []string{"play-none", ""} {
			what := fmt.Sprintf("unknown group %q", id)
			j := joinRequest(id, "bogus")
			p.step(what, v, j)
			early := joinRequest(id, "")
			early.SessionTimeoutMillis = 1
			if id != "" {
				p.step("session timeout", v, early)
			}
			p.step(what, v, syncRequest(&kmsg.JoinGroupResponse{MemberID: "bogus", Generation: 1}, id, ""))
			h := kmsg.NewPtrHeartbeatRequest()
			h.Group, h.MemberID = id, "bogus"
			p.step(what, v, h)
			p.step(what, v, leaveRequest(id, "bogus"))
			c := commitRequest(id, "play", 0, 1)
			c.Topics[0].TopicID, c.Generation, c.MemberID = p.topicID, 1, "bogus"
			if v >= 1 {
				p.step(what, v, c)
			}
			p.step(what, v, p.offsetFetch(id))
			d := kmsg.NewPtrDescribeGroupsRequest()
			d.Groups = []string{"play-none"}
			p.step(what, v, d)
			x := kmsg.NewPtrDeleteGroupsRequest()
			x.Groups = []string{"play-none"}
			p.step(what, v, x)
			o := kmsg.NewPtrOffsetDeleteRequest()
			o.Group, o.Topics = "play-none", []kmsg.OffsetDeleteRequestTopic{{Topic: "play", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{}}}}
			p.step(what, v, o)
		}
	}
}

func (p *groupPlay) offsetFetch(id string) *kmsg.OffsetFetchRequest {
	r := fetchOffsetsRequest(id, "play", 0, 1, 7)
	r.Groups[0].Topics[0].TopicID = p.topicID
	return r
}
