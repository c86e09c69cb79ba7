package zk

import (
	"context"

	"gregor/broker/meta"
)

// answer is what a call of the library came to.
type answer[T any] struct {
	value T
	err   error
}

// ask makes a call of the library, which may block for most of a session's timeout, on a goroutine of its own, so that the caller waits no longer than its
// context. A call that is given up ends with its answer or with the connection.
func ask[T any](ctx context.Context, t *Tree, call func() (T, error)) (value T, err error) {
	got := make(chan answer[T], 1)
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return value, meta.ErrClosed
	}
	t.running.Go(func() {
		v, err := call()
		got <- answer[T]{v, err}
	})
	t.mu.Unlock()
	select {
	case a := <-got:
		return a.value, a.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// retry asks again and again while the connection is down.
func retry[T any](ctx context.Context, t *Tree, call func() (T, error)) (T, error) {
	for {
		value, err := ask(ctx, t, call)
		if !lost(err) {
			return value, err
		}
		if err := t.pause(ctx); err != nil {
			return value, err
		}
	}
}
