package broker

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func idRequest(transactional *string, id int64, epoch int16) *kmsg.InitProducerIDRequest {
	r := kmsg.NewPtrInitProducerIDRequest()
	r.TransactionalID, r.ProducerID, r.ProducerEpoch = transactional, id, epoch
	return r
}

func TestProducerIDsAtEveryVersionAndOverRestarts(t *testing.T) {
	dir := t.TempDir()
	seen := map[int64]bool{}
	for range 2 {
		b := startBroker(t, dir)
		c := b.dial()
		for v := int16(0); v <= 5; v++ {
			for _, r := range []*kmsg.InitProducerIDRequest{idRequest(nil, -1, -1), idRequest(nil, 7, 3)} {
				resp := ask[*kmsg.InitProducerIDResponse](c, v, r)
				if resp.ErrorCode != 0 || resp.ProducerEpoch != 0 || resp.ProducerID < 0 || seen[resp.ProducerID] {
					t.Fatalf("v%d: %+v, seen before: %v", v, resp, seen[resp.ProducerID])
				}
				seen[resp.ProducerID] = true
			}
		}
		b.stopClean()
	}
}

func TestInitProducerIDRefusals(t *testing.T) {
	c := startBroker(t, t.TempDir()).dial()
	empty, name := "", "tx"
	for v := int16(0); v <= 5; v++ {
		half := kerr.InvalidRequest.Code
		if v < 3 {
			half = 0 // the fields do not exist
		}
		for i, tt := range []struct {
			r    *kmsg.InitProducerIDRequest
			want int16
		}{
			{idRequest(&empty, -1, -1), kerr.InvalidRequest.Code},
			{idRequest(&name, -1, -1), kerr.InvalidTransactionTimeout.Code},
			{idRequest(nil, 5, -1), half},
			{idRequest(nil, -1, 5), half},
		} {
			resp := ask[*kmsg.InitProducerIDResponse](c, v, tt.r)
			if resp.ErrorCode != tt.want || tt.want != 0 && (resp.ProducerID != -1 || resp.ProducerEpoch != -1) {
				t.Errorf("v%d request %d: %+v, want error %d", v, i, resp, tt.want)
			}
		}
	}
}

func TestProducerIDBlocks(t *testing.T) {
	var p producerIDs
	var mu sync.Mutex
	blocks := int64(0)
	allocate := func(context.Context) (int64, int64, error) {
		mu.Lock()
		defer mu.Unlock()
		if blocks == 3 {
			return 0, 0, errors.New("disk")
		}
		blocks++
		return blocks * 100, 10, nil
	}
	ids := make(chan int64, 30)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 10 {
				id, err := p.next(t.Context(), allocate)
				if err != nil {
					t.Error(err)
				}
				ids <- id
			}
		})
	}
	wg.Wait()
	close(ids)
	seen := map[int64]bool{}
	for id := range ids {
		if seen[id] || id%100 >= 10 {
			t.Errorf("id %d was given before, or is in no block", id)
		}
		seen[id] = true
	}
	if id, err := p.next(t.Context(), allocate); err == nil {
		t.Errorf("id %d without a block", id)
	}
}
