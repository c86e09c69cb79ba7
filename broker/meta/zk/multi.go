package zk

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"gregor/broker/meta"
)

// Multi implements meta.Tree. A change whose context ended before the answer came may have been made.
func (t *Tree) Multi(ctx context.Context, ops ...meta.Op) error {
	steps := make([]any, len(ops))
	for i := range ops {
		step, err := t.step(&ops[i])
		if err != nil {
			return named(ops, i, err)
		}
		steps[i] = step
	}
	if size := stepSize(ops); size > maxStep {
		return fmt.Errorf("changing %d nodes: %w: about %d bytes, ZooKeeper takes %d (jute.maxbuffer)", len(ops), meta.ErrTooLarge, size, maxStep)
	}
	answerLost := false
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		results, err := ask(ctx, t, func() ([]zk.MultiResponse, error) { return t.conn.Multi(steps...) })
		switch {
		case err == nil:
			return nil
		case !lost(err):
			if answerLost && t.made(ctx, ops) {
				return nil // by the attempt whose answer was lost
			}
			return failure(ops, results, err)
		}
		answerLost = true
		if err := t.pause(ctx); err != nil {
			return err
		}
	}
}

// Limits of ZooKeeper's messages. It ends the connection of who sends more, again and again.
const (
	maxStep    = 1<<20 - 1 - 4<<10 // jute.maxbuffer, without the message's own header
	opOverhead = 128               // of an op beside path and data: lengths, ACL, flags
)

// stepSize is at least how long a Multi's message is, in bytes.
func stepSize(ops []meta.Op) (size int) {
	for i := range ops {
		size += len(ops[i].Path()) + len(ops[i].Data()) + opOverhead
	}
	return size
}

// step is an op as the library has it.
func (t *Tree) step(op *meta.Op) (any, error) {
	path := op.Path()
	if op.Life() == meta.Sequential {
		if !meta.ValidPath(path + "0000000000") {
			return nil, meta.ErrBadPath
		}
		return &zk.CreateRequest{Path: t.full(path), Data: op.Data(), Acl: t.opts.acl(op.Path()), Flags: zk.FlagSequence}, nil
	}
	if !meta.ValidPath(path) || path == "/" && (op.Kind() == meta.OpCreate || op.Kind() == meta.OpDelete) {
		return nil, meta.ErrBadPath
	}
	path = t.full(path)
	switch op.Kind() {
	case meta.OpCreate:
		var flags int32
		if op.Life() == meta.Ephemeral {
			flags = zk.FlagEphemeral
		}
		return &zk.CreateRequest{Path: path, Data: op.Data(), Acl: t.opts.acl(op.Path()), Flags: flags}, nil
	case meta.OpSet:
		return &zk.SetDataRequest{Path: path, Data: op.Data(), Version: op.Version()}, nil
	case meta.OpDelete:
		return &zk.DeleteRequest{Path: path, Version: op.Version()}, nil
	}
	return &zk.CheckVersionRequest{Path: path, Version: op.Version()}, nil
}

// failure says which op failed and why: the first whose result is not that others failed.
func failure(ops []meta.Op, results []zk.MultiResponse, err error) error {
	for i := range results {
		if e := results[i].Error; e != nil && known(e) != e {
			return named(ops, i, known(e))
		}
	}
	if len(ops) == 1 {
		return named(ops, 0, known(err))
	}
	return fmt.Errorf("changing %d nodes: %w", len(ops), known(err))
}

func named(ops []meta.Op, i int, err error) error {
	if len(ops) == 1 {
		return fmt.Errorf("%s %s: %w", ops[i].Kind(), ops[i].Path(), err)
	}
	return fmt.Errorf("op %d, %s %s: %w", i, ops[i].Kind(), ops[i].Path(), err)
}

// made looks whether the nodes are as the ops leave them, and could have become so by nobody else: what they set has the version and the bytes that
// they give it.
func (t *Tree) made(ctx context.Context, ops []meta.Op) bool {
	decided := false
	for i := range ops {
		op := &ops[i]
		if op.Life() == meta.Sequential {
			continue // whether it was made cannot be seen; its companions tell
		}
		data, stat, err := t.get(ctx, op.Path())
		switch op.Kind() {
		case meta.OpCreate:
			mine := op.Life() != meta.Ephemeral || err == nil && stat.EphemeralOwner == t.conn.SessionID()
			if err != nil || !mine || stat.Version != 0 || !bytes.Equal(data, op.Data()) {
				return false
			}
			decided = true
		case meta.OpSet:
			if err != nil || !bytes.Equal(data, op.Data()) || op.Version() != meta.AnyVersion && stat.Version != op.Version()+1 {
				return false
			}
			decided = true
		case meta.OpDelete:
			if !errors.Is(err, zk.ErrNoNode) {
				return false
			}
			decided = true
		}
	}
	return decided
}
