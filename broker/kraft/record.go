package kraft

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kbin"
)

// ErrFormat is metadata that does not parse, or that contradicts itself.
var ErrFormat = errors.New("KRaft metadata is not valid")

// kind is the number of a metadata record (apiKey of Kafka's message definitions of type "metadata").
type kind uint32

const (
	registerBroker           kind = 0
	unregisterBroker         kind = 1
	topicRecord              kind = 2
	partitionRecord          kind = 3
	configRecord             kind = 4
	partitionChange          kind = 5
	removeTopic              kind = 9
	delegationToken          kind = 10
	scramCredential          kind = 11
	featureLevel             kind = 12
	clientQuota              kind = 14
	producerIDs              kind = 15
	brokerRegistrationChange kind = 17
	accessControl            kind = 18
	removeAccessControl      kind = 19
	removeScramCredential    kind = 22
	beginTransaction         kind = 23
	endTransaction           kind = 24
	abortTransaction         kind = 25
	removeDelegationToken    kind = 26
)

// newest is the newest version of a kind that is known. Kinds that are not here are left out.
func (k kind) newest() (version uint32, known bool) {
	switch k {
	case registerBroker:
		return 4, true
	case partitionRecord, partitionChange:
		return 2, true
	case brokerRegistrationChange:
		return 3, true
	case unregisterBroker, topicRecord, configRecord, removeTopic, delegationToken, scramCredential, featureLevel, clientQuota, producerIDs,
		accessControl, removeAccessControl, removeScramCredential, beginTransaction, endTransaction, abortTransaction, removeDelegationToken:
		return 0, true
	}
	return 0, false
}

// frameVersion is the version of what precedes a message.
const frameVersion = 1

// frame takes the head of a record's value: its kind and version. What is left in the reader is the message.
func frame(value []byte) (k kind, version uint32, r kbin.Reader, err error) {
	r.Src = value
	f := r.Uvarint()
	k, version = kind(r.Uvarint()), r.Uvarint()
	switch {
	case !r.Ok():
		err = fmt.Errorf("%w: record of %d bytes has no head", ErrFormat, len(value))
	case f != frameVersion:
		err = fmt.Errorf("%w: frame version is %d, known is %d", ErrFormat, f, frameVersion)
	}
	return k, version, r, err
}

// appendFrame begins a record's value.
func appendFrame(k kind, version uint32) []byte {
	b := kbin.AppendUvarint(nil, frameVersion)
	b = kbin.AppendUvarint(b, uint32(k))
	return kbin.AppendUvarint(b, version)
}

// tags reads the tagged fields at the end of a structure, in which no id comes twice. Unknown ones are for the caller to leave out.
func tags(r *kbin.Reader, field func(id uint32, r *kbin.Reader)) {
	last := int64(-1)
	for n := r.Uvarint(); n > 0 && r.Ok(); n-- {
		id, size := r.Uvarint(), r.Uvarint()
		if int64(id) <= last || uint64(size) > uint64(len(r.Src)) {
			r.Span(len(r.Src) + 1) // marks the reader bad
			return
		}
		last = int64(id)
		value := kbin.Reader{Src: r.Span(int(size))}
		field(id, &value)
		if !value.Ok() {
			r.Span(len(r.Src) + 1)
		}
	}
}

func noTags(r *kbin.Reader) { tags(r, func(uint32, *kbin.Reader) {}) }

// count reads the length of a compact array whose elements have at least size bytes each; -1 is null.
func count(r *kbin.Reader, size int) int {
	n := int64(r.Uvarint()) - 1
	if n*int64(size) > int64(len(r.Src)) {
		r.Span(len(r.Src) + 1)
		return 0
	}
	return int(n)
}

// ids32 reads an array of broker ids; null is nil.
func ids32(r *kbin.Reader) []int32 {
	n := count(r, 4)
	if n < 0 {
		return nil
	}
	out := make([]int32, n)
	for i := range out {
		out[i] = r.Int32()
	}
	return out
}

func appendIDs32(b []byte, ids []int32) []byte {
	b = kbin.AppendCompactArrayLen(b, len(ids))
	for _, id := range ids {
		b = kbin.AppendInt32(b, id)
	}
	return b
}

// uuids reads an array of ids; null is nil.
func uuids(r *kbin.Reader) [][16]byte {
	n := count(r, 16)
	if n < 0 {
		return nil
	}
	out := make([][16]byte, n)
	for i := range out {
		out[i] = r.Uuid()
	}
	return out
}

func appendUUIDs(b []byte, ids [][16]byte) []byte {
	b = kbin.AppendCompactArrayLen(b, len(ids))
	for _, id := range ids {
		b = kbin.AppendUuid(b, id)
	}
	return b
}
