package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// Payload collects an answer: bytes, and between them sections of files that are never read into memory on plain TCP.
// Bytes are appended to Buf directly; the frame and header are added by the connection. A Payload belongs to one connection and is reused.
type Payload struct {
	Buf      []byte
	sections []placed
}

// placed is a section that goes out after Buf[:at].
type placed struct {
	at int
	Section
}

// Add appends a section after the bytes that are in Buf now. The payload owns it from here on and calls its Release.
func (p *Payload) Add(s Section) { p.sections = append(p.sections, placed{len(p.Buf), s}) }

// sectionBytes is the length of all sections.
func (p *Payload) sectionBytes() int {
	n := 0
	for i := range p.sections {
		n += p.sections[i].Len
	}
	return n
}

// release lets go of all sections and empties the payload. Buf is the caller's to put back.
func (p *Payload) release() {
	sections := p.sections
	p.Buf, p.sections = nil, p.sections[:0]
	for i := range sections {
		free := sections[i].Release
		sections[i] = placed{}
		if free != nil {
			free()
		}
	}
	if cap(sections) > 64 {
		p.sections = nil
	}
}

// Message makes a kmsg response a Body. Fields that kmsg would write as tags at versions that do not declare them are cleared first, since
// Java clients refuse such an answer: in Produce before version 10 (KIP-951) CurrentLeader and NodeEndpoints, in Fetch before
// version 16 NodeEndpoints.
func Message(r kmsg.Response) Body { return message{r} }

type message struct{ kmsg.Response }

// throttled is a Body that can tell a client to be quiet for a number of milliseconds.
type throttled interface{ SetThrottle(millis int32) }

// SetThrottle implements throttled, where the response has a field for it.
func (m message) SetThrottle(millis int32) {
	if t, ok := m.Response.(kmsg.SetThrottleResponse); ok {
		t.SetThrottle(millis)
	}
}

// Key implements Body.
func (m message) Key() int16 { return m.Response.Key() }

// Encode implements Body.
func (m message) Encode(p *Payload, version int16) {
	m.SetVersion(version)
	switch r := m.Response.(type) {
	case *kmsg.ProduceResponse:
		if version < 10 {
			clearLeaders(r)
		}
	case *kmsg.FetchResponse:
		if version < 16 {
			r.Brokers = nil
		}
	}
	p.Buf = m.AppendTo(p.Buf)
}

// clearLeaders takes out what Produce has from version 10 on.
func clearLeaders(r *kmsg.ProduceResponse) {
	r.Brokers = nil
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			r.Topics[i].Partitions[j].CurrentLeader = kmsg.NewProduceResponseTopicPartitionCurrentLeader()
		}
	}
}
