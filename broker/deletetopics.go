package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// DeleteTopics (key 20), versions 0 to 6.
//
//   - The answer comes when no client can see the topics any more; a topic of the same name can be made at once.
//   - v6 names topics by name or by id; until v5 there are names only. v5 has messages.
//   - delete.topic.enable=false refuses all with TOPIC_DELETION_DISABLED, until v2 with INVALID_REQUEST.

func (b *Broker) handleDeleteTopics(ctx context.Context, req *wire.Request, r *kmsg.DeleteTopicsRequest) kmsg.Response {
	wanted := r.Topics
	if r.Version < 6 {
		wanted = make([]kmsg.DeleteTopicsRequestTopic, len(r.TopicNames))
		for i := range wanted {
			wanted[i].Topic = &r.TopicNames[i]
		}
	}
	quota := &mutations{broker: b, clientID: req.ClientID, strict: r.Version >= 5}
	d := deletion{broker: b, quota: quota, resp: kmsg.NewPtrDeleteTopicsResponse(), position: map[[16]byte]int{}, refused: map[deleteKey]bool{}}
	if !b.conf.DeleteTopics {
		d.refuseAll(wanted, r.Version)
		return d.resp
	}
	names := repeated(wanted, func(t *kmsg.DeleteTopicsRequestTopic) string { return nameOf(t) })
	ids := repeated(wanted, func(t *kmsg.DeleteTopicsRequestTopic) [16]byte { return t.TopicID })
	for i := range wanted {
		t := &wanted[i]
		switch {
		case t.Topic != nil && t.TopicID != [16]byte{}:
			d.answer(t, refuse(kerr.InvalidRequest, "You may not specify both topic name and topic id."))
		case t.Topic == nil && t.TopicID == [16]byte{}:
			d.answer(t, refuse(kerr.InvalidRequest, "Neither topic name nor id were specified."))
		case t.Topic != nil && names[*t.Topic]:
			d.once(t, refuse(kerr.InvalidRequest, "Duplicate topic name."))
		case t.Topic == nil && ids[t.TopicID]:
			d.once(t, refuse(kerr.InvalidRequest, "Duplicate topic id."))
		default:
			d.add(t)
		}
	}
	d.run(ctx)
	d.resp.ThrottleMillis = quota.millis()
	return d.resp
}

func nameOf(t *kmsg.DeleteTopicsRequestTopic) string {
	if t.Topic == nil {
		return ""
	}
	return *t.Topic
}

// deletion is one request that is being answered.
type deletion struct {
	broker   *Broker
	quota    *mutations
	resp     *kmsg.DeleteTopicsResponse
	topics   []*topic
	position map[[16]byte]int // of each topic's answer
	refused  map[deleteKey]bool
}

// deleteKey is what a request names a topic by.
type deleteKey struct {
	name string
	id   [16]byte
}

// add finds a topic and puts it on the list, with an answer that is good so far.
func (d *deletion) add(in *kmsg.DeleteTopicsRequestTopic) {
	var t *topic
	if in.Topic != nil {
		if t = d.broker.topics.name(*in.Topic); t == nil {
			d.answer(in, noSuchTopic())
			return
		}
	} else if t = d.broker.topics.id(in.TopicID); t == nil {
		d.answer(in, refuse(kerr.UnknownTopicID, "This server does not host this topic ID."))
		return
	}
	if at, ok := d.position[t.id]; ok {
		err := refuse(kerr.InvalidRequest, "The provided topic name maps to an ID that was already supplied.")
		d.resp.Topics[at].ErrorCode, d.resp.Topics[at].ErrorMessage = code(err), errorText(err)
		d.topics = without(d.topics, t)
		return
	}
	if err := d.quota.take(len(*t.partitions.Load())); err != nil {
		d.answer(in, err)
		return
	}
	d.position[t.id] = len(d.resp.Topics)
	d.topics = append(d.topics, t)
	d.answer(&kmsg.DeleteTopicsRequestTopic{Topic: &t.name, TopicID: t.id}, nil)
}

func without(topics []*topic, t *topic) []*topic {
	kept := topics[:0]
	for _, other := range topics {
		if other != t {
			kept = append(kept, other)
		}
	}
	return kept
}

// run deletes what is on the list.
func (d *deletion) run(ctx context.Context) {
	if len(d.topics) == 0 {
		return
	}
	err := d.broker.deleteTopics(ctx, d.topics)
	for _, t := range d.topics {
		out := &d.resp.Topics[d.position[t.id]]
		out.ErrorCode, out.ErrorMessage = code(err), errorText(err)
	}
}

func (d *deletion) answer(in *kmsg.DeleteTopicsRequestTopic, err error) {
	out := kmsg.NewDeleteTopicsResponseTopic()
	out.Topic, out.TopicID = in.Topic, in.TopicID
	out.ErrorCode, out.ErrorMessage = code(err), errorText(err)
	d.resp.Topics = append(d.resp.Topics, out)
}

// once answers for a topic that the request has several times.
func (d *deletion) once(in *kmsg.DeleteTopicsRequestTopic, err error) {
	k := deleteKey{nameOf(in), in.TopicID}
	if !d.refused[k] {
		d.refused[k] = true
		d.answer(in, err)
	}
}

func (d *deletion) refuseAll(wanted []kmsg.DeleteTopicsRequestTopic, version int16) {
	kind := kerr.TopicDeletionDisabled
	if version < 3 {
		kind = kerr.InvalidRequest
	}
	for i := range wanted {
		d.answer(&wanted[i], refuse(kind, "Topic deletion is disabled."))
	}
}
