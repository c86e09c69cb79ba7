package twophase

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func named(id string) *Request {
	r := new(Request)
	r.Default()
	r.Version, r.TransactionalID, r.TransactionTimeoutMillis = Version, &id, 60_000
	return r
}

// Bytes of version 6, written by hand from Apache Kafka's descriptions of the messages.
func TestLayout(t *testing.T) {
	r := named("tx")
	r.ProducerID, r.ProducerEpoch, r.KeepPreparedTxn = 5, 2, true
	a := NewResponse(Version)
	a.ThrottleMillis, a.ErrorCode, a.ProducerID, a.ProducerEpoch, a.OngoingTxnProducerID, a.OngoingTxnProducerEpoch = 1, 90, 7, 3, 9, 11
	for want, got := range map[string][]byte{
		"03747800" + "00ea60" + "0000000000000005" + "0002" + "00" + "01" + "00":               r.AppendTo(nil),
		"00000001" + "005a" + "0000000000000007" + "0003" + "0000000000000009" + "000b" + "00": a.AppendTo(nil),
	} {
		if hex.EncodeToString(got) != want {
			t.Errorf("got  %x\nwant %s", got, want)
		}
	}
}

func TestThereAndBack(t *testing.T) {
	for version := int16(0); version <= Version; version++ {
		r := named("tx")
		r.Version, r.Enable2PC, r.KeepPreparedTxn = version, version == Version, version == Version
		back := &Request{InitProducerIDRequest: kmsg.InitProducerIDRequest{Version: version}}
		if err := back.ReadFrom(r.AppendTo(nil)); err != nil || !reflect.DeepEqual(r, back) {
			t.Errorf("v%d: %+v becomes %+v, %v", version, r, back, err)
		}
		a := NewResponse(version)
		a.ErrorCode, a.ProducerID, a.ProducerEpoch = 1, 5, 6
		if version == Version {
			a.OngoingTxnProducerID, a.OngoingTxnProducerEpoch = 7, 8
		}
		got := r.ResponseKind().(*Response)
		if err := got.ReadFrom(a.AppendTo(nil)); err != nil || !reflect.DeepEqual(a, got) {
			t.Errorf("v%d: %+v becomes %+v, %v", version, a, got, err)
		}
		if q := a.RequestKind(); q.Key() != a.Key() || q.GetVersion() != version || q.IsFlexible() != a.IsFlexible() {
			t.Errorf("v%d: its request is %+v", version, q)
		}
	}
}

func TestOf(t *testing.T) {
	r := named("tx")
	if Of(r) != r {
		t.Error("another request")
	}
	if got := Of(&r.InitProducerIDRequest); got.TransactionalID != r.TransactionalID || got.Enable2PC || got.KeepPreparedTxn {
		t.Errorf("%+v", got)
	}
	if _, ok := NewBody(key, 6).(*Request); !ok || NewBody(key, 5) != nil || NewBody(3, 6) != nil {
		t.Error("bodies are made for the wrong requests")
	}
}

func TestShort(t *testing.T) {
	r, a := named("tx").AppendTo(nil), NewResponse(Version).AppendTo(nil)
	for n := range len(r) {
		if named("").ReadFrom(r[:n]) == nil {
			t.Errorf("a request of %d bytes is read", n)
		}
	}
	for n := range len(a) {
		if NewResponse(Version).ReadFrom(a[:n]) == nil {
			t.Errorf("an answer of %d bytes is read", n)
		}
	}
}

// FuzzRead: what is read is written as it was, but for tagged fields, and reads the same again.
func FuzzRead(f *testing.F) {
	f.Add(named("tx").AppendTo(nil))
	f.Add(NewResponse(Version).AppendTo(nil))
	f.Add(append(bytes.TrimSuffix(named("tx").AppendTo(nil), []byte{0}), 1, 9, 3, 1, 2, 3))     // a tagged field
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})                                                 // a long id
	f.Add(append(bytes.TrimSuffix(named("").AppendTo(nil), []byte{0}), 0xff, 0xff, 0xff, 0x7f)) // many tagged fields
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, kind := range []func() message{
			func() message { return named("") }, func() message { return NewResponse(Version) },
		} {
			m, again := kind(), kind()
			if m.ReadFrom(b) != nil {
				continue
			}
			out := m.AppendTo(nil)
			if len(out) > len(b) {
				t.Fatalf("%d bytes of %d", len(out), len(b))
			}
			if err := again.ReadFrom(out); err != nil || !reflect.DeepEqual(m, again) {
				t.Fatalf("%+v becomes %+v, %v", m, again, err)
			}
		}
	})
}

type message interface {
	AppendTo([]byte) []byte
	ReadFrom([]byte) error
}
