package broker

import (
	"context"
	"errors"

	"gregor/log/logdir"
)

// leaving is a topic that is marked for deletion and has left the catalog. Its directories may be there still.
type leaving struct {
	name       string
	id         [16]byte // zero when it has none
	partitions int
	// remote are other brokers that have not removed their replicas yet.
	remote map[int32]bool
}

// addRemote notes the replicas of a partition that are not on this broker.
func (l *leaving) addRemote(replicas []int32, self int32) {
	for _, id := range replicas {
		if id != self {
			if l.remote == nil {
				l.remote = map[int32]bool{}
			}
			l.remote[id] = true
		}
	}
}

// leavingOf is a topic of the catalog that leaves.
func (b *Broker) leavingOf(t *topic) leaving {
	l := leaving{name: t.name, id: t.id, partitions: len(*t.partitions.Load())}
	for _, p := range *t.partitions.Load() {
		l.addRemote(p.lead.Load().replicas, b.nodeID)
	}
	return l
}

// replicasOf are the topic's replicas that are here still. A directory of another id is an older topic of that name: it was never served as this one,
// and does not go with it.
func (b *Broker) replicasOf(l *leaving) (ids []logdir.TopicPartition) {
	for n := range l.partitions {
		at := logdir.TopicPartition{Topic: l.name, Partition: int32(n)}
		if found, ok := b.dir.Get(at); ok && sameID(found.TopicID(), l.id) {
			ids = append(ids, at)
		}
	}
	return ids
}

// sameID says whether two ids may be of one topic: who has none, or does not know it, says nothing.
func sameID(a, b [16]byte) bool {
	var none [16]byte
	return a == b || a == none || b == none
}

// deleteTopics deletes topics that are in the catalog: they are marked in the tree, leave the catalog, their logs are closed and their directories renamed,
// and the tree forgets them. The space comes back a little later (file.delete.delay.ms). After the mark it cannot fail any more: what is left to
// do is done later.
func (b *Broker) deleteTopics(ctx context.Context, topics []*topic) error {
	b.admin.Lock()
	defer b.admin.Unlock()
	return b.deleteAll(ctx, topics)
}

// deleteAll is deleteTopics for whoever has admin.
func (b *Broker) deleteAll(ctx context.Context, topics []*topic) error {
	var names []string
	var present []*topic
	for _, t := range topics {
		// Another request may have deleted it, and made a new one of that name, since it was looked up.
		if b.topics.name(t.name) == t {
			names, present = append(names, t.name), append(present, t)
		}
	}
	if err := b.control.DeleteTopics(ctx, names); err != nil {
		return err
	}
	var left []leaving
	for _, t := range present {
		t.deleted.Store(true)
		b.topics.remove(t)
		left = append(left, b.leavingOf(t))
	}
	b.leaving = append(b.leaving, left...)
	b.steward.deleting(left)
	if err := b.finishDeletions(ctx); err != nil {
		b.logger.Error("deleted topics stay in the metadata until the next change of topics", "error", err)
	}
	for _, t := range present {
		b.groups.topicDeleted(t.name)
		b.txns.topicDeleted(t.name)
	}
	return nil
}

// finishDeletions removes the directories of the topics that are leaving, with one sync for all, and lets the tree forget those that have none left.
// A directory that cannot be removed is tried again by the next creation or deletion and by the next start; until then its topic's name
// stays taken. Needs admin, or a broker that does not serve yet.
func (b *Broker) finishDeletions(ctx context.Context) error {
	if len(b.leaving) == 0 {
		return nil
	}
	var ids []logdir.TopicPartition
	for i := range b.leaving {
		ids = append(ids, b.replicasOf(&b.leaving[i])...)
	}
	if err := b.dir.Delete(ids...); err != nil && !onlyNotFound(err) {
		b.logger.Error("partitions of deleted topics cannot be removed yet", "error", err)
	}
	var gone []string
	var left []leaving
	for i := range b.leaving {
		if l := b.leaving[i]; len(l.remote) > 0 || len(b.replicasOf(&l)) > 0 {
			left = append(left, l)
		} else {
			gone = append(gone, l.name)
		}
	}
	if err := b.control.CompleteDelete(ctx, gone...); err != nil {
		return err
	}
	b.leaving = left
	b.steward.deleted(gone)
	return nil
}

// topicGone lets go of a topic that is deleted. Its logs are closed later. Needs admin.
func (b *Broker) topicGone(t *topic) {
	t.deleted.Store(true)
	b.topics.remove(t)
	b.groups.topicDeleted(t.name)
	b.txns.topicDeleted(t.name)
}

// onlyNotFound reports if every error joined in err is logdir.ErrNotFound: the replica is gone already.
func onlyNotFound(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if !onlyNotFound(e) {
				return false
			}
		}
		return true
	}
	return errors.Is(err, logdir.ErrNotFound)
}
