package broker

import (
	"github.com/twmb/franz-go/pkg/kbin"

	"gregor/broker/fetchsession"
	"gregor/log"
	"gregor/wire"
)

// fetchBody is a FetchResponse of versions 0 to 18, written by our own encoder because the records are sections of files that never pass
// through memory. The layout is that of message FetchResponse; TestFetchBody compares every version with kmsg.
type fetchBody struct {
	errorCode int16 // v7+; before, it is repeated in every partition
	sessionID int32 // v7+
	throttle  int32 // v1+, milliseconds
	// committed says that the reader is read_committed: it is told of aborted transactions.
	committed bool
	// parts are in the order of the answer; those of one topic that follow each other are grouped.
	parts []*fetchPart
}

// fetchPart is one partition of a fetch: what was asked and, after a read, what is answered.
type fetchPart struct {
	fetchsession.Partition            // a copy: the session may be used by its next request before the answer is encoded
	partition              *partition // nil when there is none
	errorCode              int16
	hw                     int64
	lso                    int64
	start                  int64
	// diverging is the end of the last epoch that we share with the reader, when its log has gone another way (KIP-595).
	diverging bool
	endEpoch  int32
	endOffset int64
	slice     log.Slice
	aborted   []log.AbortedTxn // that a read_committed reader of slice must know
	// converted takes the place of slice for a reader of an older format. Before resume there is nothing for it.
	converted *downConversion
	resume    int64
	// readable is the offset up to which the last read could see, at least.
	readable int64
	watch    fetchWatch
}

// SetThrottle has the answer tell the client to be quiet for so many milliseconds.
func (f *fetchBody) SetThrottle(millis int32) { f.throttle = millis }

// Key implements wire.Body.
func (*fetchBody) Key() int16 { return 1 }

// Encode implements wire.Body. The payload takes over the slices.
func (f *fetchBody) Encode(p *wire.Payload, version int16) {
	e := fetchEncoder{p: p, version: version, flexible: version >= 12, committed: f.committed}
	if version >= 1 {
		p.Buf = kbin.AppendInt32(p.Buf, f.throttle)
	}
	if version >= 7 {
		p.Buf = kbin.AppendInt16(p.Buf, f.errorCode)
		p.Buf = kbin.AppendInt32(p.Buf, f.sessionID)
	}
	topics := 0
	for i := range f.parts {
		if i == 0 || !f.parts[i].sameTopic(f.parts[i-1]) {
			topics++
		}
	}
	e.arrayLen(topics)
	for i := 0; i < len(f.parts); {
		n := 1
		for i+n < len(f.parts) && f.parts[i+n].sameTopic(f.parts[i]) {
			n++
		}
		e.topic(f.parts[i : i+n])
		i += n
	}
	e.tags()
}

func (a *fetchPart) sameTopic(b *fetchPart) bool { return a.Topic == b.Topic && a.TopicID == b.TopicID }

// fetchEncoder writes the parts of a FetchResponse at one version.
type fetchEncoder struct {
	p         *wire.Payload
	version   int16
	flexible  bool
	committed bool
}

func (e *fetchEncoder) arrayLen(n int) {
	if e.flexible {
		e.p.Buf = kbin.AppendCompactArrayLen(e.p.Buf, n)
	} else {
		e.p.Buf = kbin.AppendArrayLen(e.p.Buf, n)
	}
}

// tags ends a structure without tagged fields.
func (e *fetchEncoder) tags() {
	if e.flexible {
		e.p.Buf = append(e.p.Buf, 0)
	}
}

func (e *fetchEncoder) topic(parts []*fetchPart) {
	switch {
	case e.version >= 13:
		e.p.Buf = append(e.p.Buf, parts[0].TopicID[:]...)
	case e.flexible:
		e.p.Buf = kbin.AppendCompactString(e.p.Buf, parts[0].Topic)
	default:
		e.p.Buf = kbin.AppendString(e.p.Buf, parts[0].Topic)
	}
	e.arrayLen(len(parts))
	for _, p := range parts {
		e.part(p)
	}
	e.tags()
}

func (e *fetchEncoder) part(f *fetchPart) {
	b := kbin.AppendInt32(e.p.Buf, f.Partition.Partition)
	b = kbin.AppendInt16(b, f.errorFor(e.version))
	b = kbin.AppendInt64(b, f.hw)
	if e.version >= 4 {
		b = kbin.AppendInt64(b, f.lso)
	}
	if e.version >= 5 {
		b = kbin.AppendInt64(b, f.start)
	}
	if e.version >= 4 {
		b = e.appendAborted(b, f.aborted)
	}
	if e.version >= 11 {
		b = kbin.AppendInt32(b, -1) // preferred read replica
	}
	if e.flexible {
		b = kbin.AppendUvarint(b, uint32(f.size())+1)
	} else {
		b = kbin.AppendInt32(b, int32(f.size()))
	}
	e.p.Buf = b
	switch {
	case f.converted != nil:
		e.p.Add(wire.Section{Stream: f.converted, Len: f.converted.size, Release: f.converted.release})
	case f.slice.Size > 0:
		e.p.Add(wire.Section{Source: f.slice.File, Off: f.slice.Pos, Len: f.slice.Size, Release: f.slice.Release})
	}
	e.partTags(f)
}

// appendAborted writes the list of aborted transactions, which is null for whoever does not ask for it. It is in the order of the markers, as
// Kafka gives it: of each producer in the order of its transactions.
func (e *fetchEncoder) appendAborted(b []byte, list []log.AbortedTxn) []byte {
	if e.flexible {
		b = kbin.AppendCompactNullableArrayLen(b, len(list), !e.committed)
	} else {
		b = kbin.AppendNullableArrayLen(b, len(list), !e.committed)
	}
	for i := range list {
		b = kbin.AppendInt64(b, list[i].ProducerID)
		b = kbin.AppendInt64(b, list[i].FirstOffset)
		if e.flexible {
			b = append(b, 0) // no tags
		}
	}
	return b
}

// partTags writes the tagged fields of a partition: tag 0, the diverging epoch, when there is one.
func (e *fetchEncoder) partTags(f *fetchPart) {
	if !e.flexible {
		return
	}
	if !f.diverging {
		e.p.Buf = append(e.p.Buf, 0)
		return
	}
	const divergingSize = 4 + 8 + 1                      // epoch, end offset, no tags
	b := append(e.p.Buf, 1 /* tags */, 0, divergingSize) // count, tag, size
	b = kbin.AppendInt32(b, f.endEpoch)
	b = kbin.AppendInt64(b, f.endOffset)
	e.p.Buf = append(b, 0)
}

// errorFor maps codes that clients of old versions do not know.
func (f *fetchPart) errorFor(version int16) int16 {
	const storageError, notLeader = 56, 6
	if f.errorCode == storageError && version <= 5 {
		return notLeader
	}
	return f.errorCode
}
