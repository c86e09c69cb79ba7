package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// raw makes a batch of given records bytes, for what a Builder would not write.
func raw(t testing.TB, codec Codec, count, lastDelta int32, body []byte) []byte {
	t.Helper()
	var d deflater
	b, err := d.append(make([]byte, HeaderSize), codec, body)
	if err != nil {
		t.Fatal(err)
	}
	return wrap(codec, count, lastDelta, b[HeaderSize:])
}

// wrap makes a batch of a body that is compressed already.
func wrap(codec Codec, count, lastDelta int32, body []byte) []byte {
	b := append(make([]byte, HeaderSize), body...)
	encodeHeader(b, &Header{Length: int32(len(b) - OverheadSize), LeaderEpoch: -1, Magic: 2, Attributes: int16(codec), LastDelta: lastDelta,
		MaxTimestamp: 0, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, Count: count})
	setCRC(b)
	return b
}

// rec is a record body with its length: attributes, timestamp delta, offset delta, then rest as it is.
func rec(offset int64, rest ...byte) []byte {
	b := append(appendVarint([]byte{0, 0}, offset), rest...)
	return append(appendVarint(nil, int64(len(b))), b...)
}

// plain is a record with null key and value and no headers.
func plain(offset int64) []byte { return rec(offset, 1, 1, 0) }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func refused(t *testing.T, b []byte, r Rules, want ...error) error {
	t.Helper()
	var c Checker
	before := bytes.Clone(b)
	_, err := c.Check(b, r)
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("got %v, want %v", err, w)
		}
	}
	if !bytes.Equal(before, b) {
		t.Error("a refused batch was changed")
	}
	return err
}

func TestCheckRefusesRecords(t *testing.T) {
	for name, c := range map[string]struct {
		count, last int32
		body        []byte
	}{
		"count above last delta":   {2, 0, join(plain(0), plain(1))},
		"count below last delta":   {1, 1, join(plain(0), plain(1))},
		"count 0":                  {0, -1, nil},
		"count -1":                 {-1, 0, plain(0)},
		"last delta negative":      {1, -1, plain(0)},
		"count min":                {math.MinInt32, math.MaxInt32, plain(0)},
		"count max":                {math.MaxInt32, math.MaxInt32 - 1, plain(0)},
		"fewer records than count": {2, 1, plain(0)},
		"more records than count":  {1, 0, join(plain(0), plain(1))},
		"offset gap":               {2, 1, join(plain(0), plain(2))},
		"offset twice":             {2, 1, join(plain(0), plain(0))},
		"offsets fall":             {2, 1, join(plain(1), plain(0))},
		"negative offset":          {1, 0, plain(-1)},
		"byte after the last":      {1, 0, join(plain(0), []byte{0})},
		"empty record":             {1, 0, []byte{0}},
		"negative length":          {1, 0, []byte{1}},
		"length past the end":      {1, 0, []byte{14, 0, 0, 0, 1, 1, 0}},
		"length short":             {1, 0, []byte{10, 0, 0, 0, 1, 1, 0}},
		"key of -2":                {1, 0, rec(0, 3, 1, 0)},
		"key past the end":         {1, 0, rec(0, 20, 1, 0)},
		"value of -2":              {1, 0, rec(0, 1, 3, 0)},
		"value past the end":       {1, 0, rec(0, 1, 20, 0)},
		"value past the batch":     {1, 0, rec(0, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0)},
		"header count negative":    {1, 0, rec(0, 1, 1, 1)},
		"header count without":     {1, 0, rec(0, 1, 1, 2)},
		"header count max":         {1, 0, rec(0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f)},
		"header key null":          {1, 0, rec(0, 1, 1, 2, 1, 1)},
		"header key past the end":  {1, 0, rec(0, 1, 1, 2, 20, 1)},
		"header value of -2":       {1, 0, rec(0, 1, 1, 2, 0, 3)},
		"header value past end":    {1, 0, rec(0, 1, 1, 2, 0, 20)},
		"bytes after headers":      {1, 0, rec(0, 1, 1, 2, 0, 1, 0)},
		"varint too long":          {1, 0, rec(0, 0x81, 0x80, 0x80, 0x80, 0x80, 0, 1, 0)},
		"varint over 32 bits":      {1, 0, rec(0, 0x81, 0x80, 0x80, 0x80, 0x10, 1, 0)},
		"ends in a length":         {2, 1, join(plain(0), []byte{0x80})},
	} {
		for _, codec := range codecs {
			t.Run(fmt.Sprintf("%s/codec%d", name, codec), func(t *testing.T) {
				refused(t, raw(t, codec, c.count, c.last, c.body), anyTime(), ErrInvalid)
			})
		}
	}
}

// TestCheckRefusesLargeRecords is about records over windowSize, which take their own way when they are compressed.
func TestCheckRefusesLargeRecords(t *testing.T) {
	big := make([]byte, 3*windowSize)
	blob := func(n int64) []byte { return append(appendVarint(nil, n), big...) }
	size := int64(len(big))
	for name, body := range map[string][]byte{
		"key of -2":          rec(0, append([]byte{3}, blob(size)...)...),
		"value short":        rec(0, append([]byte{1}, append(blob(size-5), 0)...)...),
		"value long":         rec(0, append([]byte{1}, append(blob(size+5), 0)...)...),
		"header count":       rec(0, append([]byte{1}, append(blob(size), 1)...)...),
		"headers missing":    rec(0, append([]byte{1}, append(blob(size), 4)...)...),
		"header key null":    rec(0, append([]byte{1}, append(blob(size), 2, 1, 1)...)...),
		"header value of -2": rec(0, append([]byte{1}, append(blob(size), 2, 0, 3)...)...),
		"offset":             rec(7, append([]byte{1}, append(blob(size), 0)...)...),
		"cut off":            rec(0, append([]byte{1}, append(blob(size), 0)...)...)[:2*windowSize],
	} {
		for _, codec := range codecs {
			t.Run(fmt.Sprintf("%s/codec%d", name, codec), func(t *testing.T) {
				refused(t, raw(t, codec, 1, 0, body), anyTime(), ErrInvalid)
			})
		}
	}
}

func TestCheckRefusesHeaders(t *testing.T) {
	put16 := func(at int, v int16) func(*testing.T, []byte) []byte {
		return func(_ *testing.T, b []byte) []byte {
			binary.BigEndian.PutUint16(b[at:], uint16(v))
			setCRC(b)
			return b
		}
	}
	put64 := func(at int, v int64) func(*testing.T, []byte) []byte {
		return func(_ *testing.T, b []byte) []byte {
			binary.BigEndian.PutUint64(b[at:], uint64(v))
			setCRC(b)
			return b
		}
	}
	length := func(d int32) func(*testing.T, []byte) []byte {
		return func(_ *testing.T, b []byte) []byte {
			binary.BigEndian.PutUint32(b[LengthPos:], uint32(int32(len(b))-OverheadSize+d))
			return b
		}
	}
	for name, c := range map[string]struct {
		damage func(*testing.T, []byte) []byte
		want   []error
	}{
		"empty":                {func(*testing.T, []byte) []byte { return nil }, []error{ErrInvalid, ErrShort}},
		"cut in the header":    {func(_ *testing.T, b []byte) []byte { return b[:40] }, []error{ErrInvalid, ErrShort}},
		"cut in the overhead":  {func(_ *testing.T, b []byte) []byte { return b[:10] }, []error{ErrInvalid, ErrShort}},
		"cut by a byte":        {func(_ *testing.T, b []byte) []byte { return b[:len(b)-1] }, []error{ErrInvalid, ErrShort}},
		"two batches":          {func(_ *testing.T, b []byte) []byte { return append(b, b...) }, []error{ErrInvalid}},
		"a byte follows":       {func(_ *testing.T, b []byte) []byte { return append(b, 0) }, []error{ErrInvalid}},
		"length says more":     {length(1), []error{ErrInvalid, ErrShort}},
		"length max":           {length(math.MaxInt32 - 1000), []error{ErrInvalid, ErrShort}},
		"length below header":  {length(-1000), []error{ErrCorrupt}},
		"magic 1":              {func(_ *testing.T, b []byte) []byte { b[MagicPos] = 1; return b }, []error{ErrInvalid, ErrMagic}},
		"magic 3":              {func(_ *testing.T, b []byte) []byte { b[MagicPos] = 3; return b }, []error{ErrCorrupt, ErrMagic}},
		"magic -1":             {func(_ *testing.T, b []byte) []byte { b[MagicPos] = 255; return b }, []error{ErrCorrupt, ErrMagic}},
		"crc":                  {func(_ *testing.T, b []byte) []byte { b[CRCPos]++; return b }, []error{ErrCorrupt}},
		"flipped value":        {func(_ *testing.T, b []byte) []byte { b[len(b)-3] ^= 1; return b }, []error{ErrCorrupt}},
		"base offset":          {put64(OffsetPos, 1), []error{ErrInvalid}},
		"base offset negative": {put64(OffsetPos, -1), []error{ErrInvalid}},
		"codec 5":              {put16(AttributesPos, 5), []error{ErrCodec}},
		"codec 7":              {put16(AttributesPos, 7), []error{ErrCodec}},
		"control":              {put16(AttributesPos, AttrControl), []error{ErrInvalid}},
		"delete horizon":       {put16(AttributesPos, AttrDeleteHorizon), []error{ErrInvalid}},
		"transaction, no id":   {put16(AttributesPos, AttrTransactional), []error{ErrInvalid}},
		"id without sequence":  {put64(ProducerIDPos, 5), []error{ErrInvalid}},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, c.damage(t, build(t, Options{LeaderEpoch: -1}, samples(3, 10))), anyTime(), c.want...)
		})
	}
}

func TestCheckProducer(t *testing.T) {
	for _, c := range []struct {
		p  Producer
		ok bool
	}{
		{Producer{0, 0, 0}, true}, {Producer{5, 32767, math.MaxInt32}, true}, {Producer{5, 0, -1}, false}, {Producer{5, -1, 0}, false}, {Producer{-1, -1, -1}, true},
	} {
		b := build(t, Options{Producer: &c.p, Transactional: c.p.ID >= 0}, samples(2, 5))
		var k Checker
		h, err := k.Check(b, anyTime())
		if c.ok && (err != nil || h.ProducerID != c.p.ID || h.ProducerEpoch != c.p.Epoch || h.BaseSequence != c.p.Sequence) {
			t.Errorf("%+v: %v, %+v", c.p, err, h)
		}
		if !c.ok && !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", c.p, err)
		}
	}
}

func TestCheckSize(t *testing.T) {
	b := build(t, Options{}, samples(3, 100))
	r := anyTime()
	for _, c := range []struct {
		most int
		want error
	}{{0, nil}, {len(b), nil}, {len(b) - 1, ErrTooLarge}} {
		r.MaxBytes = c.most
		var k Checker
		if _, err := k.Check(b, r); !errors.Is(err, c.want) {
			t.Errorf("limit %d: %v", c.most, err)
		}
	}
}

func TestCheckNoZstd(t *testing.T) {
	r := anyTime()
	r.NoZstd = true
	for _, codec := range codecs {
		b := build(t, Options{Codec: codec}, samples(3, 100))
		var c Checker
		_, err := c.Check(b, r)
		if (codec == Zstd) != errors.Is(err, ErrCodec) || (codec != Zstd && err != nil) {
			t.Errorf("codec %d: %v", codec, err)
		}
	}
}

func TestCheckKeys(t *testing.T) {
	r := anyTime()
	r.RequireKey = true
	for _, codec := range codecs {
		list := []sample{{ts: 1, key: []byte{}}, {ts: 1}, {ts: 1, key: []byte("k")}, {ts: 1, value: []byte("v")}}
		err := refused(t, build(t, Options{Codec: codec}, list), r, ErrInvalid)
		var records *RecordError
		if !errors.As(err, &records) || len(records.Records) != 2 || records.Records[0].Index != 1 || records.Records[1].Index != 3 {
			t.Fatalf("%#v", err)
		}
		if !strings.Contains(err.Error(), "without key") {
			t.Error(err)
		}
		var c Checker
		if _, err := c.Check(build(t, Options{Codec: codec}, list[2:3]), r); err != nil {
			t.Error(err)
		}
	}
}

func TestCheckTimestamps(t *testing.T) {
	const now = 1_000_000
	for _, c := range []struct {
		ts, before, after int64
		ok                bool
	}{
		{now, 0, 0, true}, {now - 1, 0, 0, false}, {now + 1, 0, 0, false}, {-1, 0, 0, true},
		{now - 10, 10, 0, true}, {now - 11, 10, 0, false}, {now + 10, 0, 10, true}, {now + 11, 0, 10, false},
		{0, math.MaxInt64, 0, true}, {-5, math.MaxInt64, 0, true}, {math.MinInt64, math.MaxInt64, 0, true},
		{math.MinInt64, math.MaxInt64 - 1, 0, false}, {math.MaxInt64, 0, math.MaxInt64, true}, {math.MaxInt64, 0, 3_600_000, false},
	} {
		b := build(t, Options{}, []sample{{ts: c.ts}})
		r := Rules{Now: now, BeforeMax: c.before, AfterMax: c.after}
		var k Checker
		_, err := k.Check(b, r)
		if (err == nil) != c.ok || (err != nil && !errors.Is(err, ErrTimestamp)) {
			t.Errorf("%+v: %v", c, err)
		}
		r.LogAppendTime = true
		if h, err := k.Check(b, r); err != nil || h.MaxTimestamp != now {
			t.Errorf("%+v: with LogAppendTime: %+v, %v", c, h, err)
		}
	}
}

func TestCheckTimestampWins(t *testing.T) {
	r := Rules{Now: 100, RequireKey: true}
	b := build(t, Options{Codec: Gzip}, []sample{{ts: 100}, {ts: 50, key: []byte("k")}, {ts: 50}})
	err := refused(t, b, r, ErrTimestamp)
	var records *RecordError
	if !errors.As(err, &records) || len(records.Records) != 3 || records.Records[1].Index != 1 {
		t.Fatalf("%#v", err)
	}
	if m := records.Records[1].Message; m != "Timestamp 50 is out of range. The timestamp should be within [100, 100]." {
		t.Error(m)
	}
	many := make([]sample, 3*MaxRecordErrors)
	if err := refused(t, build(t, Options{}, many), r, ErrInvalid); !errors.As(err, &records) || len(records.Records) != MaxRecordErrors {
		t.Error("record errors are not bounded")
	}
}

func TestCheckRewritesMaxTimestamp(t *testing.T) {
	for _, codec := range codecs {
		list := []sample{{ts: 500}, {ts: 900, value: make([]byte, 100_000)}, {ts: 100}}
		right := build(t, Options{Codec: codec}, list)
		for _, wrong := range []int64{-1, 0, 899, 901, math.MaxInt64} {
			b := bytes.Clone(right)
			binary.BigEndian.PutUint64(b[MaxTimePos:], uint64(wrong))
			setCRC(b)
			var c Checker
			h, err := c.Check(b, anyTime())
			if err != nil || h.MaxTimestamp != 900 || !bytes.Equal(b, right) {
				t.Errorf("codec %d, max timestamp %d: %+v, %v", codec, wrong, h, err)
			}
			if again, err := ReadHeader(b); err != nil || again != h {
				t.Errorf("header returned %+v, written %+v", h, again)
			}
		}
	}
}

func TestCheckLogAppendTime(t *testing.T) {
	for _, codec := range codecs {
		b := build(t, Options{Codec: codec}, []sample{{ts: 500}, {ts: 900}})
		r := Rules{Now: 7777, LogAppendTime: true}
		var c Checker
		h, err := c.Check(b, r)
		if err != nil || h.MaxTimestamp != 7777 || h.Attributes != AttrLogAppendTime|int16(codec) || Verify(b) != nil {
			t.Fatalf("codec %d: %+v, %v, %v", codec, h, err, Verify(b))
		}
		compare(t, b, 0, []sample{{ts: 7777}, {ts: 7777}})
		refused(t, b, r, ErrTimestamp) // it has the bit now
		if h, err = c.Check(b, anyTime()); err != nil || h.MaxTimestamp != 900 || h.Attributes != int16(codec) {
			t.Fatalf("codec %d: a client's bit on a CreateTime topic: %+v, %v", codec, h, err)
		}
		compare(t, b, 0, []sample{{ts: 500}, {ts: 900}})
	}
}

func TestCheckUnknownAttributes(t *testing.T) {
	b := build(t, Options{}, samples(3, 10))
	binary.BigEndian.PutUint16(b[AttributesPos:], 0x8080)
	setCRC(b)
	var c Checker
	if h, err := c.Check(b, anyTime()); err != nil || uint16(h.Attributes) != 0x8080 {
		t.Errorf("unused bits: %+v, %v", h, err)
	}
	r := anyTime()
	r.LogAppendTime = true
	if h, err := c.Check(b, r); err != nil || h.Attributes != AttrLogAppendTime {
		t.Errorf("unused bits in a batch that is rewritten: %+v, %v", h, err)
	}
}
