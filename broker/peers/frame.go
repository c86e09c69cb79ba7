package peers

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// appendRequest writes a request with its size and header: version 0 of the header for ControlledShutdown 0, 2 for flexible versions, else 1.
func appendRequest(dst []byte, req kmsg.Request, correlation int32, clientID string) []byte {
	from := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(req.Key()))
	dst = binary.BigEndian.AppendUint16(dst, uint16(req.GetVersion()))
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlation))
	if req.Key() != keyControlledShutdown || req.GetVersion() != 0 {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(clientID)))
		dst = append(dst, clientID...)
	}
	if req.IsFlexible() {
		dst = append(dst, 0) // no tags
	}
	dst = req.AppendTo(dst)
	binary.BigEndian.PutUint32(dst[from:], uint32(len(dst)-from-4))
	return dst
}

// firstStep is how much memory an announced answer gets before any of it has come.
const firstStep = 64 << 10

// readFrame reads one answer without its size. It fails before reading one that is announced as larger than limit bytes.
func readFrame(r *bufio.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := int64(int32(binary.BigEndian.Uint32(head[:])))
	if size < 4 || size > int64(limit) {
		return nil, fmt.Errorf("%w: it announces %d bytes, at least 4 and at most %d are taken", ErrProtocol, size, limit)
	}
	frame := make([]byte, 0, min(size, firstStep))
	for int64(len(frame)) < size {
		if len(frame) == cap(frame) {
			frame = append(make([]byte, 0, min(size, int64(2*len(frame)))), frame...)
		}
		n, err := io.ReadFull(r, frame[len(frame):cap(frame)])
		frame = frame[:len(frame)+n]
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, fmt.Errorf("%d of %d bytes of the answer came: %w", len(frame), size, err)
		}
	}
	return frame, nil
}

// body checks an answer's header and returns what follows it. flexible says that the header is of version 1.
func body(frame []byte, correlation int32, flexible bool) ([]byte, error) {
	if got := int32(binary.BigEndian.Uint32(frame)); got != correlation {
		return nil, fmt.Errorf("%w: it is to request %d, not %d", ErrProtocol, got, correlation)
	}
	rest := frame[4:]
	if !flexible {
		return rest, nil
	}
	tags, rest, ok := uvarint(rest)
	for ; ok && tags > 0; tags-- {
		var size uint64
		if _, rest, ok = uvarint(rest); !ok {
			break
		}
		if size, rest, ok = uvarint(rest); !ok || size > uint64(len(rest)) {
			ok = false
			break
		}
		rest = rest[size:]
	}
	if !ok {
		return nil, fmt.Errorf("%w: its header ends within the tags", ErrProtocol)
	}
	return rest, nil
}

func uvarint(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}
