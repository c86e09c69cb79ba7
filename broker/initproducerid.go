package broker

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/wire"
)

// InitProducerId (key 22), versions 0 to 5. Without a transactional id every request gets an id that was never given before, with epoch 0,
// whatever id it had (KIP-360). Transactional ids need a transaction coordinator, which is not built: UNSUPPORTED_VERSION ends such a producer at once,
// where a retriable code would leave it hanging.

func (b *Broker) handleInitProducerID(ctx context.Context, _ *wire.Request, r *kmsg.InitProducerIDRequest) kmsg.Response {
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	switch {
	case r.TransactionalID != nil && *r.TransactionalID == "", r.Version >= 3 && (r.ProducerID == -1) != (r.ProducerEpoch == -1):
		resp.ErrorCode = kerr.InvalidRequest.Code
		return resp
	case r.TransactionalID != nil:
		resp.ErrorCode = kerr.UnsupportedVersion.Code
		return resp
	}
	id, err := b.producerIDs.next(ctx, b.control.AllocateProducerIDs)
	if err != nil {
		b.logger.Warn("no producer id could be given", "error", err)
		resp.ErrorCode = code(err)
		return resp
	}
	resp.ProducerID, resp.ProducerEpoch = id, 0
	return resp
}

// producerIDs gives out producer ids from the block that was taken last. The zero value has none. What is left of a block at the end of the
// process is lost; ids are 63 bits wide.
type producerIDs struct {
	mu    sync.Mutex // held over the allocation of a block, which is once in a thousand
	first int64
	left  int64
}

// next returns an id, with a new block from allocate when needed.
func (p *producerIDs) next(ctx context.Context, allocate func(context.Context) (first, count int64, err error)) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 {
		first, count, err := allocate(ctx)
		if err != nil {
			return -1, err
		}
		p.first, p.left = first, count
	}
	id := p.first
	p.first++
	p.left--
	return id, nil
}
