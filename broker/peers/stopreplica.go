package peers

import "github.com/twmb/franz-go/pkg/kmsg"

// StopReplicaRequest is kmsg's with version 4 as Kafka has it (StopReplicaRequest.json): IsKRaftController lies before the controller's epoch, where
// kmsg has it behind.
type StopReplicaRequest struct{ kmsg.StopReplicaRequest }

// swapped is where the two fields lie, behind the controller's id: five bytes.
const (
	swappedFrom  = 4
	swappedTo    = 9
	swappedFirst = 4 // the version with both
)

// NewBody makes the body of a StopReplica request of version 4, for a server's decoding, and nil for everything else.
func NewBody(key, version int16) kmsg.Request {
	if key != keyStopReplica || version < swappedFirst {
		return nil
	}
	return new(StopReplicaRequest)
}

// AppendTo implements kmsg.Request.
func (r *StopReplicaRequest) AppendTo(dst []byte) []byte {
	from := len(dst)
	dst = r.StopReplicaRequest.AppendTo(dst)
	if r.Version >= swappedFirst {
		b := dst[from+swappedFrom : from+swappedTo]
		kraft := b[4]
		copy(b[1:], b[:4])
		b[0] = kraft
	}
	return dst
}

// UnsafeReadFrom implements kmsg.UnsafeReadFrom, by copying.
func (r *StopReplicaRequest) UnsafeReadFrom(src []byte) error { return r.ReadFrom(src) }

// ReadFrom implements kmsg.Request. src is not changed.
func (r *StopReplicaRequest) ReadFrom(src []byte) error {
	if r.Version < swappedFirst || len(src) < swappedTo {
		return r.StopReplicaRequest.ReadFrom(src)
	}
	b := make([]byte, 0, len(src))
	b = append(b, src[:swappedFrom]...)
	b = append(b, src[swappedFrom+1:swappedTo]...)
	b = append(b, src[swappedFrom])
	return r.StopReplicaRequest.ReadFrom(append(b, src[swappedTo:]...))
}
