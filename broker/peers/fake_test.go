package peers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/broker/meta"
)

// fake is a broker that answers what the test says.
type fake struct {
	t *testing.T
	// newest are the highest versions that it knows, by key; ApiVersions among them.
	newest map[int16]int16
	idle   time.Duration // ends connections that bring nothing for so long; 0: never
	// answer makes the answer; nil for an answer without errors, an error ends the connection.
	answer func(req kmsg.Request) (kmsg.Response, error)

	mu   sync.Mutex
	seen []kmsg.Request // without ApiVersions
}

var errHangUp = errors.New("the fake broker ends the connection")

func newFake(t *testing.T) *fake {
	return &fake{t: t, newest: map[int16]int16{4: 7, 5: 4, 6: 8, 7: 3, 18: 4, 27: 2, 24: 5}}
}

// listen serves on a port of its own until the test ends, and returns how to reach it.
func (f *fake) listen() []meta.Endpoint {
	f.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { f.serve(ctx, c) })
		}
	})
	f.t.Cleanup(func() { cancel(); l.Close(); running.Wait() })
	a := l.Addr().(*net.TCPAddr)
	return []meta.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: a.IP.String(), Port: int32(a.Port)}}
}

// serve answers on a connection until either side or the context ends it.
func (f *fake) serve(ctx context.Context, c net.Conn) {
	defer context.AfterFunc(ctx, func() { c.Close() })()
	defer c.Close()
	for {
		if f.idle > 0 {
			_ = c.SetReadDeadline(time.Now().Add(f.idle))
		}
		b, err := readRequest(c)
		if err != nil {
			return
		}
		key, version := int16(binary.BigEndian.Uint16(b)), int16(binary.BigEndian.Uint16(b[2:]))
		out, err := f.reply(key, version, b)
		if err != nil {
			if !errors.Is(err, errHangUp) {
				f.t.Error(err)
			}
			return
		}
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}

func readRequest(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(r, b)
	return b, err
}

// reply decodes a request with kmsg and makes the frame with the answer.
func (f *fake) reply(key, version int16, b []byte) ([]byte, error) {
	correlation := b[4:8]
	if key == 18 && version > f.newest[18] { // as Kafka does: version 0 with an error (KIP-511)
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.ErrorCode = codeUnsupportedVersion
		return frame(resp.AppendTo(append([]byte{}, correlation...))), nil
	}
	req := kmsg.RequestForKey(key)
	if key == keyStopReplica {
		req = &StopReplicaRequest{}
	}
	req.SetVersion(version)
	b = b[8:]
	if key != keyControlledShutdown || version != 0 {
		n := int(int16(binary.BigEndian.Uint16(b)))
		b = b[2+n:]
	}
	if req.IsFlexible() {
		if b[0] != 0 {
			return nil, fmt.Errorf("key %d version %d: tags in the header", key, version)
		}
		b = b[1:]
	}
	if err := req.ReadFrom(b); err != nil {
		return nil, fmt.Errorf("key %d version %d: %w", key, version, err)
	}
	resp, err := f.respond(req)
	if err != nil {
		return nil, err
	}
	out := append([]byte{}, correlation...)
	if req.IsFlexible() && key != 18 {
		out = append(out, 1, 7, 2, 0xff, 0xff) // a tag that nobody knows
	}
	return frame(resp.AppendTo(out)), nil
}

func frame(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func (f *fake) respond(req kmsg.Request) (kmsg.Response, error) {
	resp := req.ResponseKind()
	if versions, ok := resp.(*kmsg.ApiVersionsResponse); ok {
		for key, high := range f.newest {
			versions.ApiKeys = append(versions.ApiKeys, kmsg.ApiVersionsResponseApiKey{ApiKey: key, MaxVersion: high})
		}
		return resp, nil
	}
	f.mu.Lock()
	f.seen = append(f.seen, req)
	f.mu.Unlock()
	if f.answer == nil {
		return resp, nil
	}
	made, err := f.answer(req)
	if made == nil {
		made = resp
	}
	made.SetVersion(req.GetVersion())
	return made, err
}

// requests are those that it has seen.
func (f *fake) requests() []kmsg.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]kmsg.Request{}, f.seen...)
}
