package hostile

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	endLimit     = time.Minute     // a bad connection ends at once, but machines stand still now and then
	witnessLimit = 9 * time.Second // nobody else waits longer than that: not for senders that stall to be closed, which takes ten seconds
)

// TestGarbage: everything that is no request ends its connection, and only that.
func TestGarbage(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	w := startWitness(t, b)
	for name, bad := range badFrames() {
		c := dial(t, b.Addr())
		c.send(t, bad)
		if err := c.ends(endLimit); err != nil {
			t.Errorf("%s (% .24x…): %v", name, bad[:min(24, len(bad))], err)
		}
	}
	rng := rand.New(rand.NewPCG(3, 5))
	for range 200 {
		garbage := make([]byte, 16+rng.IntN(4096))
		for i := range garbage {
			garbage[i] = byte(rng.Uint32())
		}
		garbage[0] |= 0x08 // a length of at least 128 MiB or below zero
		c := dial(t, b.Addr())
		c.send(t, garbage)
		if err := c.ends(endLimit); err != nil {
			t.Errorf("garbage % .24x…: %v", garbage[:16], err)
		}
		c.Close()
	}
	w.check(t, witnessLimit)
	if !b.External() && !b.Alive() {
		t.Error("the broker is dead")
	}
}

// badFrames are whole sends, each of which must end the connection.
func badFrames() map[string][]byte {
	header := func(key, version int16) []byte { // request header v1
		h := binary.BigEndian.AppendUint16(nil, uint16(key))
		h = binary.BigEndian.AppendUint16(h, uint16(version))
		h = binary.BigEndian.AppendUint32(h, 7)
		return append(h, 0, 1, 'x')
	}
	whole := func(parts ...[]byte) []byte {
		body := bytes.Join(parts, nil)
		return sized(int32(len(body)), body)
	}
	huge := []byte{0x7f, 0xff, 0xff, 0xff}
	flexible := append(header(3, 12), 0) // no header tags
	bad := map[string][]byte{
		"length -1":                            sized(-1, make([]byte, 64)),
		"length of 2 GiB":                      sized(0x7fffffff, make([]byte, 64)),
		"length over socket.request.max":       sized(104857601, make([]byte, 64)),
		"length 0":                             sized(0, nil),
		"length 4, shorter than a header":      sized(4, []byte{0, 3, 0, 1}),
		"HTTP":                                 []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		"SSH":                                  []byte("SSH-2.0-OpenSSH_9.2\r\n"),
		"unknown key":                          whole(header(9999, 0)),
		"negative key":                         whole(header(-5, 0)),
		"Metadata of version 99":               whole(header(3, 99), []byte{0, 0, 0, 0}),
		"Produce of version -1":                whole(header(0, -1), []byte{0, 0, 0, 0}),
		"Metadata, 2^31-1 topics":              whole(header(3, 1), huge),
		"Metadata, topics cut off":             whole(header(3, 1), []byte{0, 0, 0, 2, 0, 5, 'a'}),
		"Metadata, topic name of length -7":    whole(header(3, 1), []byte{0, 0, 0, 1, 0xff, 0xf9}),
		"Metadata v12, 2^32-2 topics":          whole(flexible, []byte{0xff, 0xff, 0xff, 0xff, 0x0f}),
		"Metadata v12, varint without end":     whole(flexible, bytes.Repeat([]byte{0xff}, 12)),
		"Metadata v12, 2^32-1 header tags":     whole(header(3, 12), []byte{0xff, 0xff, 0xff, 0xff, 0x0f}),
		"client id longer than the frame":      whole([]byte{0, 3, 0, 1, 0, 0, 0, 7, 0x7f, 0xff, 'x'}),
		"ListOffsets, 2^31-1 topics":           whole(header(2, 1), []byte{0xff, 0xff, 0xff, 0xff}, huge),
		"CreateTopics, nested arrays that lie": whole(header(19, 2), []byte{0, 0, 0, 1, 0, 1, 'a', 0, 0, 0, 1, 0, 1}, huge, huge),
	}
	produce := kmsg.NewPtrProduceRequest()
	produce.Version, produce.Acks, produce.TimeoutMillis = 7, 1, 1000
	good := frame(7, produce)
	good = good[:len(good)-4] // the topic array's length
	for name, array := range map[string][]byte{
		"Produce, 2^31-1 topics":                huge,
		"Produce, 2^31-1 partitions":            append([]byte{0, 0, 0, 1, 0, 1, 'a'}, huge...),
		"Produce, records longer than the rest": append([]byte{0, 0, 0, 1, 0, 1, 'a', 0, 0, 0, 1, 0, 0, 0, 0}, huge...),
	} {
		body := append(bytes.Clone(good[4:]), array...)
		bad[name] = sized(int32(len(body)), body)
	}
	return bad
}

// TestTLS: a TLS client at the plaintext port is told to go at once.
func TestTLS(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	c := dial(t, b.Addr())
	_ = c.SetDeadline(time.Now().Add(endLimit))
	start := time.Now()
	err := tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true}).Handshake()
	if err == nil || time.Since(start) > endLimit/2 {
		t.Errorf("TLS handshake at the plaintext port: %v after %v, want a closed connection at once", err, time.Since(start))
	}
	if b.External() || harness.Foreign(t, "the log line that names the peer and TLS") {
		return
	}
	peer := c.LocalAddr().String()
	for deadline := time.Now().Add(endLimit); !strings.Contains(b.Log(), peer) && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	line := ""
	for l := range strings.Lines(b.Log()) {
		if strings.Contains(l, peer) {
			line = l
		}
	}
	if !strings.Contains(line, "TLS") {
		t.Errorf("the log line about %s should name TLS, is %q", peer, line)
	}
}

// TestLogIsLimited: thousands of bad connections do not fill the log.
func TestLogIsLimited(t *testing.T) {
	b := harness.Start(t, harness.Config{})
	if harness.Foreign(t, "how much of the log bad connections fill") {
		return
	}
	before := len(b.Log())
	for range 2000 {
		c := dial(t, b.Addr())
		c.send(t, []byte("GET / HTTP/1.1\r\n\r\n"))
		if err := c.ends(endLimit); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	text := b.Log()[before:]
	if n := strings.Count(text, "\n"); n == 0 || n > 200 {
		t.Errorf("2000 bad connections wrote %d log lines, want at least one and few:\n%.1000s", n, text)
	}
}

// TestTruncated: a frame cut off by the peer's end of sending ends the connection; cut off by silence, the idle limit does.
func TestTruncated(t *testing.T) {
	b := harness.Start(t, harness.Config{Set: []string{"connections.max.idle.ms=1500"}})
	meta := kmsg.NewPtrMetadataRequest()
	meta.Version = 5
	whole := frame(1, meta)
	for cut := range len(whole) {
		c := dial(t, b.Addr())
		c.send(t, whole[:cut])
		if err := c.closeWrite(); err != nil {
			t.Fatal(err)
		}
		if err := c.ends(endLimit); err != nil {
			t.Errorf("cut after %d of %d bytes, half-closed: %v", cut, len(whole), err)
		}
	}
	for _, cut := range []int{0, 2, 4, 9, len(whole) - 1} {
		t.Run("silent", func(t *testing.T) {
			t.Parallel()
			c := dial(t, b.Addr())
			c.send(t, whole[:cut])
			if err := c.ends(endLimit); err != nil {
				t.Errorf("silence after %d of %d bytes: %v", cut, len(whole), err)
			}
		})
	}
}
