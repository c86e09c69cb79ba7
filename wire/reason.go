package wire

import "fmt"

// reason is why a connection ended. It is the key of Stats.Closed and of the log limiter.
type reason uint8

const (
	reasonPeerClosed reason = iota
	reasonConnError
	reasonIdle
	reasonStalled
	reasonSlowReader
	reasonBadFrame
	reasonTLS
	reasonHTTP
	reasonUnsupported
	reasonUnparsable
	reasonHandler
	reasonPanic
	reasonShortSection
	reasonShutdown
	reasonPerIP
	reasonRate
	reasonMaxConns // nothing ends by it; it limits a log line
	reasonCount
)

// String names the reason as it appears in Stats and in logs.
func (r reason) String() string {
	switch r {
	case reasonPeerClosed:
		return "peer closed"
	case reasonConnError:
		return "connection error"
	case reasonIdle:
		return "idle"
	case reasonStalled:
		return "stalled sender"
	case reasonSlowReader:
		return "slow reader"
	case reasonBadFrame:
		return "bad frame"
	case reasonTLS:
		return "TLS on a plaintext port"
	case reasonHTTP:
		return "HTTP on a Kafka port"
	case reasonUnsupported:
		return "unsupported request"
	case reasonUnparsable:
		return "unparsable request"
	case reasonHandler:
		return "ended by the handler"
	case reasonPanic:
		return "panic"
	case reasonShortSection:
		return "section shorter than promised"
	case reasonShutdown:
		return "shutdown"
	case reasonPerIP:
		return "too many connections from one address"
	case reasonRate:
		return "too many new connections from one address"
	case reasonMaxConns:
		return "connection limit"
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// quiet says that the end is part of normal life and goes to the log at debug level only.
func (r reason) quiet() bool {
	switch r {
	case reasonPeerClosed, reasonConnError, reasonIdle, reasonShutdown:
		return true
	}
	return false
}

// ending is how a connection ends: the reason and a detail for the log.
type ending struct {
	reason reason
	detail string
	// key and version are those of the request that ended it, -1 when there is none.
	key, version int16
}

// end makes an ending that no request is to blame for.
func end(r reason, detail string) *ending {
	return &ending{reason: r, detail: detail, key: -1, version: -1}
}
