package kraft

import (
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kbin"
)

func (m *Image) config(r *kbin.Reader) {
	of := Resource{Type: r.Int8(), Name: r.CompactString()}
	key, value := r.CompactString(), r.CompactNullableString()
	noTags(r)
	if !r.Ok() {
		return
	}
	keys := m.Configs[of]
	if value == nil {
		delete(keys, key)
		if len(keys) == 0 {
			delete(m.Configs, of)
		}
		return
	}
	if keys == nil {
		keys = map[string]string{}
		m.Configs[of] = keys
	}
	keys[key] = *value
}

func (m *Image) feature(r *kbin.Reader) {
	name, level := r.CompactString(), r.Int16()
	noTags(r)
	switch {
	case !r.Ok():
	case level == 0:
		delete(m.Features, name)
	default:
		m.Features[name] = level
	}
}

func (m *Image) producerIDs(r *kbin.Reader) {
	r.Int32() // broker
	r.Int64() // its epoch
	next := r.Int64()
	noTags(r)
	if r.Ok() {
		m.NextProducerID = max(m.NextProducerID, next)
	}
}

// broker takes over what bears on a broker's registration.
func (m *Image) broker(k kind, version uint32, r *kbin.Reader) {
	id := r.Int32()
	b := Broker{Epoch: -1}
	switch k {
	case registerBroker:
		b.Epoch, b.LogDirs = registration(version, r)
	case unregisterBroker:
		r.Int64()
		noTags(r)
		if r.Ok() {
			delete(m.Brokers, id)
		}
		return
	case brokerRegistrationChange:
		b.Epoch, b.LogDirs = r.Int64(), m.Brokers[id].LogDirs
		tags(r, func(tag uint32, r *kbin.Reader) {
			if tag == 2 {
				b.LogDirs = uuids(r)
			}
		})
	}
	if r.Ok() {
		m.Brokers[id] = b
	}
}

// registration reads a RegisterBrokerRecord after the broker's id.
func registration(version uint32, r *kbin.Reader) (epoch int64, dirs [][16]byte) {
	if version >= 2 {
		r.Bool() // migrating from ZooKeeper
	}
	r.Uuid() // incarnation
	epoch = r.Int64()
	for n := count(r, 1); n > 0 && r.Ok(); n-- { // endpoints
		r.CompactString()
		r.CompactString()
		r.Uint16()
		r.Int16()
		noTags(r)
	}
	for n := count(r, 1); n > 0 && r.Ok(); n-- { // features
		r.CompactString()
		r.Int16()
		r.Int16()
		noTags(r)
	}
	r.CompactNullableString() // rack
	r.Bool()                  // fenced
	if version >= 1 {
		r.Bool() // in controlled shutdown
	}
	tags(r, func(tag uint32, r *kbin.Reader) {
		if tag == 0 {
			dirs = uuids(r)
		}
	})
	return epoch, dirs
}

// security counts what is about principals: it is not carried, but must be named.
func (m *Image) security(k kind, r *kbin.Reader) {
	switch k {
	case accessControl, removeAccessControl:
		mark(m.acls, r.Uuid(), k == accessControl && r.Ok())
	case scramCredential, removeScramCredential:
		name := r.CompactString()
		mark(m.scram, name+"/"+strconv.Itoa(int(r.Int8())), k == scramCredential && r.Ok())
	case delegationToken:
		r.CompactString() // owner
		r.CompactString() // requester
		for n := count(r, 1); n > 0 && r.Ok(); n-- {
			r.CompactString()
		}
		r.Int64()
		r.Int64()
		r.Int64()
		mark(m.tokens, r.CompactString(), r.Ok())
	case removeDelegationToken:
		mark(m.tokens, r.CompactString(), false)
	case clientQuota:
		m.quota(r)
	}
	if r.Ok() {
		r.Span(len(r.Src)) // the rest does not matter
	}
}

func (m *Image) quota(r *kbin.Reader) {
	entity := map[string]*string{}
	for n := count(r, 1); n > 0 && r.Ok(); n-- {
		kind := r.CompactString()
		entity[kind] = r.CompactNullableString()
		noTags(r)
	}
	key, value, remove := r.CompactString(), r.Float64(), r.Bool()
	if !r.Ok() {
		return
	}
	id := entityKey(entity)
	q := m.quotas[id]
	switch {
	case !remove && q == nil:
		m.quotas[id] = &Quota{Entity: entity, Values: map[string]float64{key: value}}
	case !remove:
		q.Values[key] = value
	case q != nil:
		if delete(q.Values, key); len(q.Values) == 0 {
			delete(m.quotas, id)
		}
	}
}

// entityKey is one text for an entity, whatever the order of its parts.
func entityKey(entity map[string]*string) string {
	var b []byte
	for _, kind := range slices.Sorted(maps.Keys(entity)) {
		b = strconv.AppendQuote(b, kind)
		if name := entity[kind]; name != nil {
			b = strconv.AppendQuote(append(b, '='), *name)
		}
		b = append(b, ' ')
	}
	return string(b)
}

func mark[K comparable](set map[K]struct{}, key K, there bool) {
	if there {
		set[key] = struct{}{}
	} else {
		delete(set, key)
	}
}
