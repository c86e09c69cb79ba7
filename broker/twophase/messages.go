package twophase

import (
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Version is the version of InitProducerId that two-phase commit came with.
const Version = 6

const key = 22 // InitProducerId

// NewBody makes the body of a request that kmsg does not know; nil for all others. It is a wire.Config.NewBody.
func NewBody(apiKey, version int16) kmsg.Request {
	if apiKey == key && version >= Version {
		return new(Request)
	}
	return nil
}

// Request is InitProducerIdRequest, up to version 6. At a version below 6 it is kmsg's.
type Request struct {
	kmsg.InitProducerIDRequest
	// Enable2PC asks for transactions without timeout.
	Enable2PC bool
	// KeepPreparedTxn asks for the open transaction not to be aborted.
	KeepPreparedTxn bool
}

// Of is the request in a body that is InitProducerId of any version.
func Of(body kmsg.Request) *Request {
	switch r := body.(type) {
	case *Request:
		return r
	case *kmsg.InitProducerIDRequest:
		return &Request{InitProducerIDRequest: *r}
	}
	return new(Request)
}

// MaxVersion implements kmsg.Request.
func (*Request) MaxVersion() int16 { return Version }

// Default sets what a client that says nothing means.
func (r *Request) Default() {
	r.InitProducerIDRequest.Default()
	r.Enable2PC, r.KeepPreparedTxn = false, false
}

// ResponseKind implements kmsg.Request.
func (r *Request) ResponseKind() kmsg.Response { return NewResponse(r.Version) }

// AppendTo implements kmsg.Request. Tagged fields, of which none is known, are not written.
func (r *Request) AppendTo(dst []byte) []byte {
	if r.Version < Version {
		return r.InitProducerIDRequest.AppendTo(dst)
	}
	dst = kbin.AppendCompactNullableString(dst, r.TransactionalID)
	dst = kbin.AppendInt32(dst, r.TransactionTimeoutMillis)
	dst = kbin.AppendInt64(dst, r.ProducerID)
	dst = kbin.AppendInt16(dst, r.ProducerEpoch)
	dst = kbin.AppendBool(dst, r.Enable2PC)
	dst = kbin.AppendBool(dst, r.KeepPreparedTxn)
	return append(dst, 0)
}

// ReadFrom implements kmsg.Request. Tagged fields are skipped.
func (r *Request) ReadFrom(src []byte) error {
	if r.Version < Version {
		return r.InitProducerIDRequest.ReadFrom(src)
	}
	b := kbin.Reader{Src: src}
	r.TransactionalID = b.CompactNullableString()
	r.TransactionTimeoutMillis = b.Int32()
	r.ProducerID, r.ProducerEpoch = b.Int64(), b.Int16()
	r.Enable2PC, r.KeepPreparedTxn = b.Bool(), b.Bool()
	kmsg.SkipTags(&b)
	return b.Complete()
}

// Response is InitProducerIdResponse, up to version 6. At a version below 6 it is kmsg's.
type Response struct {
	kmsg.InitProducerIDResponse
	// OngoingTxnProducerID and OngoingTxnProducerEpoch are the producer of the transaction that was kept, -1 and -1 when there was none.
	OngoingTxnProducerID    int64
	OngoingTxnProducerEpoch int16
}

// NewResponse makes an empty answer at a version.
func NewResponse(version int16) *Response {
	r := new(Response)
	r.Default()
	r.Version = version
	return r
}

// MaxVersion implements kmsg.Response.
func (*Response) MaxVersion() int16 { return Version }

// Default sets what stands for nothing.
func (r *Response) Default() {
	r.InitProducerIDResponse.Default()
	r.OngoingTxnProducerID, r.OngoingTxnProducerEpoch = -1, -1
}

// RequestKind implements kmsg.Response.
func (r *Response) RequestKind() kmsg.Request {
	q := new(Request)
	q.Default()
	q.Version = r.Version
	return q
}

// AppendTo implements kmsg.Response. Tagged fields, of which none is known, are not written.
func (r *Response) AppendTo(dst []byte) []byte {
	if r.Version < Version {
		return r.InitProducerIDResponse.AppendTo(dst)
	}
	dst = kbin.AppendInt32(dst, r.ThrottleMillis)
	dst = kbin.AppendInt16(dst, r.ErrorCode)
	dst = kbin.AppendInt64(dst, r.ProducerID)
	dst = kbin.AppendInt16(dst, r.ProducerEpoch)
	dst = kbin.AppendInt64(dst, r.OngoingTxnProducerID)
	dst = kbin.AppendInt16(dst, r.OngoingTxnProducerEpoch)
	return append(dst, 0)
}

// ReadFrom implements kmsg.Response. Tagged fields are skipped.
func (r *Response) ReadFrom(src []byte) error {
	if r.Version < Version {
		return r.InitProducerIDResponse.ReadFrom(src)
	}
	b := kbin.Reader{Src: src}
	r.ThrottleMillis, r.ErrorCode = b.Int32(), b.Int16()
	r.ProducerID, r.ProducerEpoch = b.Int64(), b.Int16()
	r.OngoingTxnProducerID, r.OngoingTxnProducerEpoch = b.Int64(), b.Int16()
	kmsg.SkipTags(&b)
	return b.Complete()
}
