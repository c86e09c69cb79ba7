package broker

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

// unknown asks for what is not there, and for what makes no sense.
func (p *txnPlay) unknown(v int16) {
	bogus := batch.Producer{ID: 7_000_000, Epoch: 3}
	for _, id := range []string{"play-none", ""} {
		p.txn = id
		what := fmt.Sprintf("unknown id %q", id)
		p.step(what, v, p.addRequest(bogus, "play/0"))
		p.step(what, v, p.addOffsetsRequest(bogus, "play-group"))
		p.step(what, v, p.endRequest(bogus, true))
		p.step(what, v, p.endRequest(bogus, false))
		d := kmsg.NewPtrDescribeTransactionsRequest()
		d.TransactionalIDs = []string{id}
		p.step(what, v, d)
		l := kmsg.NewPtrListTransactionsRequest()
		p.step(what, v, l)
		if id != "" {
			l.StateFilters = []string{"Ongoing", "bogus"}
			p.step(what+", by state", v, l)
			bad := "["
			l.TransactionalIDPattern = &bad
			p.step(what+", by a wrong pattern", v, l)
		}
		if v >= 4 {
			r := p.addRequest(bogus, "play/0")
			r.Transactions[0].VerifyOnly = true
			p.step(what+", verify", v, r)
		}
	}
	p.txn = ""
	p.step("empty id", v, p.initRequest(noProducer()))
	p.txn = "play-refused"
	for _, timeout := range []int32{0, -1, 900_001} {
		r := p.initRequest(noProducer())
		r.TransactionTimeoutMillis = timeout
		p.step(fmt.Sprintf("timeout %d", timeout), v, r)
	}
	if v >= 3 {
		p.step("no epoch", v, p.initRequest(batch.Producer{ID: 7, Epoch: -1}))
		p.step("no producer", v, p.initRequest(batch.Producer{ID: -1, Epoch: 7}))
	}
	none := p.initRequest(noProducer())
	none.TransactionalID = nil
	p.step("no id", v, none)
	c := p.offsetsRequest(bogus, "")
	p.step("empty group", v, c)
}

// life takes one id of transaction version 0 from its first producer on, all at one version or the newest below it.
func (p *txnPlay) life(v int16) {
	p.txn = fmt.Sprint("play-life-", v)
	group := p.txn + "-group"
	init := min(v, 5)
	p.who = producerOf(p.settled("first", init, p.initRequest(noProducer())))
	p.describe("empty")
	p.who = producerOf(p.settled("second", init, p.initRequest(noProducer())))
	if v >= 3 {
		before := p.who
		p.who = producerOf(p.settled("goes on", init, p.initRequest(before)))
		p.settled("goes on again", init, p.initRequest(before))
		p.settled("went on long ago", init, p.initRequest(batch.Producer{ID: before.ID, Epoch: 0}))
		p.settled("is someone else", init, p.initRequest(batch.Producer{ID: before.ID + 1_000_000, Epoch: 0}))
	}
	p.ends(v, "empty")
	p.adds(v, "empty")
	p.transaction(v, group, true)
	p.transaction(v, group, false)
	p.fenced(v, group)
}

func producerOf(resp kmsg.Response) batch.Producer {
	r := resp.(*kmsg.InitProducerIDResponse)
	return batch.Producer{ID: r.ProducerID, Epoch: r.ProducerEpoch}
}

// old is the version for requests of clients of transaction version 0.
func old(v, newest int16) int16 { return min(v, newest) }

// transaction is one, with all that can be wrong in it.
func (p *txnPlay) transaction(v int16, group string, commit bool) {
	when := fmt.Sprintf("%s, commit %v", p.txn, commit)
	p.settled(when, old(v, 3), p.addRequest(p.who, "play/0"))
	p.settled(when+", again", old(v, 3), p.addRequest(p.who, "play/0"))
	p.settled(when+", with one that is not there", old(v, 3), p.addRequest(p.who, "play/1", "nowhere/0"))
	if v >= 4 {
		r := p.addRequest(p.who, "play/0", "play/1")
		r.Transactions[0].VerifyOnly = true
		p.step(when+", verify", v, r)
	}
	p.settled(when, 9, p.batchRequest(p.who, 0))
	p.who.Sequence++
	if p.ranges[0][1] >= 11 { // before, batches were not compared with the transaction
		p.settled(when+", not in the transaction", 9, p.batchRequest(batch.Producer{ID: p.who.ID, Epoch: p.who.Epoch}, 1))
		p.settled(when+", not in the transaction", 11, p.batchRequest(batch.Producer{ID: p.who.ID, Epoch: p.who.Epoch}, 1))
	}
	p.settled(when, old(v, 3), p.addOffsetsRequest(p.who, group))
	p.settled(when, old(v, 4), p.offsetsRequest(p.who, group))
	p.members(v, group, when)
	f := fetchOffsetsRequest(group, "play", 0)
	f.RequireStable = true
	p.upTo(when+", stable", 7, f)
	f.RequireStable = false
	p.upTo(when+", unstable", 7, f)
	p.describe(when)
	p.adds(v, when)
	p.ends(v, when)
	p.settled(when, old(v, 4), p.endRequest(p.who, commit))
	p.settled(when+", again", old(v, 4), p.endRequest(p.who, commit))
	p.settled(when+", the opposite", old(v, 4), p.endRequest(p.who, !commit))
	p.describe(when + ", ended")
	if commit {
		waitFor(p.t, func() bool { return ask[*kmsg.OffsetFetchResponse](p.c, 5, f).Topics[0].Partitions[0].Offset == 7 })
	}
}

// members names members that the group does not have (KIP-447).
func (p *txnPlay) members(v int16, group, when string) {
	if v < 3 {
		return
	}
	r := p.offsetsRequest(p.who, group)
	r.MemberID, r.Generation = "bogus", 1
	p.settled(when+", unknown member", old(v, 4), r)
	r = p.offsetsRequest(p.who, group)
	r.MemberID, r.Generation = "", 1
	p.settled(when+", generation without member", old(v, 4), r)
	instance := "i"
	r = p.offsetsRequest(p.who, group)
	r.InstanceID = &instance
	p.settled(when+", unknown instance", old(v, 4), r)
}

// wrong are producers that are not the id's.
func (p *txnPlay) wrong() map[string]batch.Producer {
	return map[string]batch.Producer{
		"older epoch": {ID: p.who.ID, Epoch: p.who.Epoch - 1},
		"newer epoch": {ID: p.who.ID, Epoch: p.who.Epoch + 1},
		"other id":    {ID: p.who.ID + 1_000_000, Epoch: p.who.Epoch},
	}
}

// adds are those of producers that are not the id's.
func (p *txnPlay) adds(v int16, when string) {
	for name, who := range p.wrong() {
		if who.Epoch < 0 {
			continue
		}
		p.settled(when+", "+name, old(v, 3), p.addRequest(who, "play/2"))
		p.settled(when+", "+name, old(v, 3), p.addOffsetsRequest(who, p.txn+"-group"))
		if v >= 4 {
			r := p.addRequest(who, "play/0")
			r.Transactions[0].VerifyOnly = true
			p.step(when+", verify, "+name, v, r)
		}
	}
}

// ends are those that are wrong.
func (p *txnPlay) ends(v int16, when string) {
	for name, who := range p.wrong() {
		if who.Epoch >= 0 {
			p.settled(when+", "+name, old(v, 4), p.endRequest(who, true))
		}
	}
	if when == "empty" {
		p.settled(when, old(v, 4), p.endRequest(p.who, true))
		p.settled(when+", abort", old(v, 4), p.endRequest(p.who, false))
	}
}

// fenced lets another producer take the id in the middle of a transaction.
func (p *txnPlay) fenced(v int16, group string) {
	when := p.txn + ", fenced"
	p.settled(when+", before", old(v, 3), p.addRequest(p.who, "play/0"))
	p.settled(when+", before", 9, p.batchRequest(p.who, 0))
	p.who.Sequence++
	before := p.who
	p.upTo(when+", first try", min(v, 5), p.initRequest(noProducer()))
	p.who = producerOf(p.settled(when, min(v, 5), p.initRequest(noProducer())))
	p.settled(when, old(v, 3), p.addRequest(before, "play/0"))
	p.settled(when, old(v, 3), p.addOffsetsRequest(before, group))
	p.settled(when, old(v, 4), p.endRequest(before, true))
	if p.ranges[0][1] >= 11 {
		p.settled(when, old(v, 4), p.offsetsRequest(before, group))
	}
	for _, version := range []int16{9, 11} {
		if p.knows(0, version) {
			p.settled(when, version, p.batchRequest(before, 0))
		}
	}
	if v >= 3 {
		p.settled(when+", and goes on", min(v, 5), p.initRequest(before))
	}
	p.describe(when)
}

func (p *txnPlay) describe(when string) {
	d := kmsg.NewPtrDescribeTransactionsRequest()
	d.TransactionalIDs = []string{p.txn}
	p.step(when, 0, d)
	for v := int16(0); v <= 2; v++ {
		l := kmsg.NewPtrListTransactionsRequest()
		p.step(when, v, l)
		l.StateFilters = []string{"Ongoing"}
		p.step(when+", ongoing", v, l)
		l.StateFilters, l.ProducerIDFilters = nil, []int64{p.who.ID}
		p.step(when+", by producer", v, l)
		l.ProducerIDFilters, l.DurationFilterMillis = nil, 3_600_000
		p.step(when+", an hour old", v, l)
		pattern := "play-life-[0-9]"
		l.DurationFilterMillis, l.TransactionalIDPattern = -1, &pattern
		p.step(when+", by pattern", v, l)
	}
}

// lifeV2 is an id of transaction version 2: partitions join by themselves, each end has another epoch.
func (p *txnPlay) lifeV2() {
	if !p.knows(0, 12) {
		return
	}
	p.txn = "play-v2"
	group := "play-v2-group"
	p.who = producerOf(p.settled("first, v2", 5, p.initRequest(noProducer())))
	p.settled("v2, commit of nothing", 5, p.endRequest(p.who, true))
	p.endV2("v2, abort of nothing", p.who, false)
	for round, commit := range []bool{true, false, true} {
		when := fmt.Sprintf("v2, round %d", round)
		for _, version := range []int16{12, 13} {
			if p.knows(0, version) {
				p.settled(when, version, p.batchRequest(p.who, int32(version-12)))
			}
		}
		p.settled(when, 5, p.offsetsRequest(p.who, group))
		if p.knows(28, 6) {
			p.settled(when, 6, p.offsetsRequest(p.who, group))
		}
		p.describe(when)
		for name, who := range p.wrong() {
			p.settled(when+", "+name, 5, p.endRequest(who, commit))
			p.settled(when+", "+name, 12, p.batchRequest(who, 0))
			p.settled(when+", "+name, 5, p.offsetsRequest(who, group))
		}
		before := p.who
		p.endV2(when, before, commit)
		p.settled(when+", end again", 5, p.endRequest(before, commit))
		p.settled(when+", the opposite", 5, p.endRequest(before, !commit))
		p.settled(when+", late", 12, p.batchRequest(before, 0))
		p.settled(when+", late", 5, p.offsetsRequest(before, group))
		p.describe(when + ", ended")
	}
	p.endV2("v2, abort of nothing after the end", p.who, false)
	p.settled("v2, before another takes it", 12, p.batchRequest(p.who, 0))
	before := p.who
	p.step("v2, first try", 5, p.initRequest(noProducer()))
	p.who = producerOf(p.settled("v2, fences", 5, p.initRequest(noProducer())))
	p.settled("v2, fenced", 12, p.batchRequest(before, 0))
	p.settled("v2, fenced", 5, p.endRequest(before, true))
	p.settled("v2, fenced", 5, p.initRequest(before))
	p.describe("v2, fenced")
}

// endV2 ends a transaction and takes the next producer over.
func (p *txnPlay) endV2(when string, who batch.Producer, commit bool) {
	if r := p.settled(when, 5, p.endRequest(who, commit)).(*kmsg.EndTxnResponse); r.ErrorCode == 0 {
		p.who = batch.Producer{ID: r.ProducerID, Epoch: r.ProducerEpoch}
	}
}
