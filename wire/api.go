package wire

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Handler answers requests.
type Handler interface {
	// Handle answers one request. It is called on the connection's goroutine, for one request at a time and in order. The
	// context ends when the connection or the server does, and when the peer has closed while a Pending without Pipeline waits. Handle
	// must not block on a sync or on data to come: it returns a Reply with Pending instead. A panic ends the connection.
	//
	// The Request and its Body are valid until Handle returned and, with a Reply of Pending, until that is done; they are used
	// again afterwards. The byte slices in the Body are valid until Handle returned in any case. Strings are ordinary strings.
	Handle(ctx context.Context, req *Request) Reply
}

// Request is one parsed request.
type Request struct {
	Key      int16
	Version  int16
	ClientID string // "" for null
	// Body is decoded; byte slices in it alias the frame and must not be kept after Handle returned.
	Body kmsg.Request
	// Size is the frame's size in bytes.
	Size int
	Conn *ConnInfo
	// Wake makes the connection ask its pending answers again. It may be called from any goroutine, any number of times, also
	// after the connection ended, and never blocks.
	Wake func()
}

// ConnInfo is what a handler may know of a connection.
type ConnInfo struct {
	ID       uint64
	Listener string   // name of the listener, PLAINTEXT unless configured otherwise
	Local    net.Addr // the address that the client came in on
	Remote   net.Addr
	// Software is what the client said of itself in ApiVersions v3+, "" before.
	SoftwareName    string
	SoftwareVersion string
}

// Reply is what became of a request. The zero Reply is an error of the handler and closes the connection.
type Reply struct {
	// Body is a whole answer. It is encoded at the request's version when it is written.
	Body Body
	// Pending is an answer that is not ready. Exactly one of Body, Pending, Silent, Close is set.
	Pending Pending
	// Silent says that no answer is sent (produce with acks 0).
	Silent bool
	// Close ends the connection without an answer, after the earlier answers went out; the text goes to the log.
	Close string
	// Mute is how long nothing more is taken from the connection after the answer, for a client that is over its quota. An answer that has a
	// throttle time says so. Requests that were handled before are answered meanwhile.
	Mute time.Duration
	// Pipeline allows the next request to be handled while this one is pending, if that one is of the same key.
	Pipeline bool
}

// Pending is an answer to come. Its methods are called on the connection's goroutine only.
type Pending interface {
	// Poll returns the answer when it is ready; the answer may not be Pending again. Only the oldest of a connection is asked: after
	// Request.Wake, at the Deadline, and when it has become the oldest. After it returned true it is not called again. It must return
	// true once now is not before the Deadline.
	//
	// When the context of its Handle has ended nobody waits for it any more, because the peer closed or the server stops: it is asked once
	// again and should then return true with what there is. If it returns false it is cancelled and the connection writes nothing more;
	// what the peer sent before it closed is still handled. Answers whose Reply said Pipeline are short by nature and are waited for.
	Poll(now time.Time) (Reply, bool)
	// Deadline is when Poll must be called at the latest; the zero time is never.
	Deadline() time.Time
	// Cancel is called instead of a Poll that returns true when the connection ends first.
	Cancel()
}

// Body is an encodable answer without header. kmsg responses are made into one by Message.
type Body interface {
	// Key and Version choose the response header.
	Key() int16
	// Encode adds the body at the given version to p. It is called once, also when the connection ended before, since the
	// sections that it adds are released by that.
	Encode(p *Payload, version int16)
}

// Source is where the bytes of a section are. A Source that also has SyscallConn (as *os.File) is sent by sendfile.
type Source interface {
	io.ReaderAt
}

// Stream makes the bytes of a section while they are sent.
type Stream interface {
	// Next returns the next bytes of the section, at least one, valid until the next call. It is called on the connection's goroutine, until
	// all Len bytes are there; what is over is not sent. An error ends the connection, as the length is out already.
	Next() ([]byte, error)
}

// Section is a range of a file that is part of an answer, or bytes that are made on the way.
type Section struct {
	Source Source
	Off    int64
	Len    int
	// Stream takes the place of Source and Off when it is not nil.
	Stream Stream
	// Release is called exactly once, when the bytes were sent or will never be.
	Release func()
}

// Config configures a Server. Zero values mean the defaults given.
type Config struct {
	Handler Handler
	Logger  *slog.Logger // nil discards
	// Supports reports the version range that is handled for a key; ok false closes the connection. It is called for every request. Needed.
	// ApiVersions (18) at a version outside is answered here: body of version 0, UNSUPPORTED_VERSION, its own range (KIP-511).
	Supports func(key int16) (min, max int16, ok bool)
	// NewBody makes the empty body of a request at a version that kmsg does not have; nil leaves it to kmsg. SetVersion is called on what it
	// returns, then ReadFrom with bytes that alias the frame: it must check every length against them, and keep only copies. Nil asks nobody.
	NewBody func(key, version int16) kmsg.Request
	// MaxFrame is the largest request in bytes (socket.request.max.bytes), 104857600.
	MaxFrame int32
	// QueuedBytes bounds the bytes of request buffers over all connections (queued.max.request.bytes), 256 MiB. What counts is the memory that
	// a frame holds, which is at most five times what arrived of it, or the size of the largest frame (up to 32 MiB) that its connection
	// has sent before; while it is handled, 32 times its size for one above 64 KiB that carries no records. Requests up to 16 KiB do not count.
	// When the bytes are used up larger frames wait, first come, first served, but for one at a time that may exceed the bound until it
	// was handled. So memory is bounded by QueuedBytes and one frame, and a frame larger than QueuedBytes passes. While others wait, a sender
	// that stalls in the middle of a frame is closed.
	QueuedBytes int64
	// IdleTimeout ends a connection without traffic (connections.max.idle.ms), 10 minutes. A pending answer is not idle.
	IdleTimeout time.Duration
	// SendBuffer and ReceiveBuffer are the sizes of the sockets' buffers in bytes (socket.send.buffer.bytes, socket.receive.buffer.bytes); 0
	// leaves them to the operating system.
	SendBuffer    int
	ReceiveBuffer int
	// Limits bound open connections at first; see SetLimits.
	Limits Limits
	// Pace is asked after each accepted connection how long the next of the listener is to wait. nil: not at all.
	Pace func(listener string) time.Duration
	// Delay is asked for each accepted connection; one that it gives a time for is closed after that and not served. nil: all are served.
	Delay func(peer netip.Addr) time.Duration
	// MaxPipeline is how many answers may be pending on one connection, 128.
	MaxPipeline int
}
