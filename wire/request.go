package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	keyProduce            = 0
	keyControlledShutdown = 7
	keyAPIVersions        = 18

	// minFrame is the shortest request header: key, version and correlation id (header version 0).
	minFrame = 8
	// maxControlFrame is the largest frame of any request but Produce, which no such request comes near in practice. Decoded arrays can take
	// many times the bytes that they arrived in (TestLyingLengths says how many), so that whole frames above freeDecode take decodeCost
	// times their size from the budget while they are handled.
	maxControlFrame = 16 << 20
	freeDecode      = 64 << 10
	decodeCost      = 32
	// maxProduceParts is how many topics and partitions one Produce request may name, for the same reason.
	maxProduceParts = 200_000

	errUnsupportedVersion = 35 // UNSUPPORTED_VERSION
)

// header is a request header, versions 0 to 2 (RequestHeader.json).
type header struct {
	key, version int16
	correlation  int32
	clientID     []byte // aliases the frame; nil for null
}

var (
	errHeaderShort = errors.New("header runs past the end of the frame")
	errHeaderTags  = errors.New("tagged fields of the header run past the end of the frame")
	errTooMany     = fmt.Errorf("more than %d topics and partitions in one Produce request", maxProduceParts)
	errNotEnough   = errors.New("body runs past the end of the frame")
)

// peekHeader reads the part of the header that all versions share. b has at least minFrame bytes.
func peekHeader(b []byte) header {
	return header{
		key:         int16(binary.BigEndian.Uint16(b)),
		version:     int16(binary.BigEndian.Uint16(b[2:])),
		correlation: int32(binary.BigEndian.Uint32(b[4:])),
	}
}

// parseHeader reads the header at the front of a frame and returns the body behind it. The client id keeps its two-byte length in
// header version 2, which flexible requests have; version 0, without client id, is that of ControlledShutdown version 0 alone.
func parseHeader(b []byte, flexible bool) (h header, body []byte, err error) {
	if len(b) < minFrame {
		return h, nil, errHeaderShort
	}
	h = peekHeader(b)
	b = b[minFrame:]
	if h.key == keyControlledShutdown && h.version == 0 {
		return h, b, nil
	}
	if len(b) < 2 {
		return h, nil, errHeaderShort
	}
	n := int(int16(binary.BigEndian.Uint16(b)))
	b = b[2:]
	if n > len(b) || n < -1 {
		return h, nil, errHeaderShort
	}
	if n >= 0 {
		h.clientID, b = b[:n:n], b[n:]
	}
	if flexible {
		if b, err = skipTags(b); err != nil {
			return h, nil, err
		}
	}
	return h, b, nil
}

// skipTags steps over a tag buffer.
func skipTags(b []byte) ([]byte, error) {
	count, b, ok := uvarint(b)
	if !ok {
		return nil, errHeaderTags
	}
	for ; count > 0; count-- {
		var size uint32
		if _, b, ok = uvarint(b); !ok {
			return nil, errHeaderTags
		}
		if size, b, ok = uvarint(b); !ok || uint64(size) > uint64(len(b)) {
			return nil, errHeaderTags
		}
		b = b[size:]
	}
	return b, nil
}

// uvarint reads an unsigned varint of at most 5 bytes and 32 bits.
func uvarint(b []byte) (uint32, []byte, bool) {
	var v uint64
	for i := 0; i < 5 && i < len(b); i++ {
		v |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return uint32(v), b[i+1:], v <= 1<<32-1
		}
	}
	return 0, nil, false
}

// parse fills the slot from a whole frame whose key and version are supported. The body's byte slices alias the frame.
func (c *conn) parse(s *slot, frame []byte) error {
	h := peekHeader(frame)
	body := c.srv.newBody(h.key, h.version)
	if body == nil {
		return fmt.Errorf("no codec for key %d", h.key)
	}
	body.SetVersion(h.version)
	s.req = Request{Key: h.key, Version: h.version, Body: body, Size: len(frame), Conn: &c.info, Wake: c.wakeFn}
	s.flexible = body.IsFlexible()
	h, rest, err := parseHeader(frame, s.flexible)
	if err != nil {
		return err
	}
	s.correlation = h.correlation
	if string(h.clientID) != c.clientID { // no allocation for the comparison; a client keeps its name
		c.clientID = string(h.clientID)
	}
	s.req.ClientID = c.clientID
	if h.key == keyProduce {
		if err := checkProduce(rest, h.version); err != nil {
			return err
		}
	}
	if body.ReadFrom(rest) != nil {
		return errNotEnough // the only error there is; its text speaks of responses
	}
	if av, ok := body.(*kmsg.ApiVersionsRequest); ok {
		c.noteSoftware(av)
	}
	return nil
}

// newBody returns an empty request of the key, nil for a key without codec. Produce requests are used again.
func (s *Server) newBody(key, version int16) kmsg.Request {
	if s.cfg.NewBody != nil {
		if body := s.cfg.NewBody(key, version); body != nil {
			return body
		}
	}
	if key == keyProduce {
		if p, ok := s.produce.Get().(*kmsg.ProduceRequest); ok {
			return p
		}
	}
	return kmsg.RequestForKey(key)
}

// recycle keeps the body of a finished request if that pays.
func (s *Server) recycle(body kmsg.Request) {
	p, ok := body.(*kmsg.ProduceRequest)
	if !ok || cap(p.Topics) > 64 {
		return
	}
	topics := p.Topics[:cap(p.Topics)]
	clear(topics) // what it names and the frame must not be held
	*p = kmsg.ProduceRequest{Topics: topics[:0]}
	s.produce.Put(p)
}

// noteSoftware keeps what the client says of itself if it is well-formed (KIP-511); the Handler answers what is not.
func (c *conn) noteSoftware(av *kmsg.ApiVersionsRequest) {
	if av.Version >= 3 && softwareText(av.ClientSoftwareName) && softwareText(av.ClientSoftwareVersion) {
		c.info.SoftwareName, c.info.SoftwareVersion = av.ClientSoftwareName, av.ClientSoftwareVersion
	}
}

// softwareText reports whether s is [a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])? of a sensible length.
func softwareText(s string) bool {
	if s == "" || len(s) > 256 {
		return false
	}
	for i := range len(s) {
		b := s[i]
		alnum := '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
		inner := (b == '-' || b == '.') && i > 0 && i < len(s)-1
		if !alnum && !inner {
			return false
		}
	}
	return true
}

// apiVersionsFallback is the answer to ApiVersions at a version that is not known: the body of version 0 with UNSUPPORTED_VERSION
// and the range of ApiVersions itself, from which the client picks a version (KIP-511).
type apiVersionsFallback struct{ min, max int16 }

// Key implements Body.
func (apiVersionsFallback) Key() int16 { return keyAPIVersions }

// Encode implements Body.
func (f apiVersionsFallback) Encode(p *Payload, _ int16) {
	b := p.Buf
	b = binary.BigEndian.AppendUint16(b, errUnsupportedVersion)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint16(b, keyAPIVersions)
	b = binary.BigEndian.AppendUint16(b, uint16(f.min))
	p.Buf = binary.BigEndian.AppendUint16(b, uint16(f.max))
}
