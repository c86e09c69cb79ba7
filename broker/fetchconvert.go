package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kerr"

	"gregor/log"
	"gregor/log/batch"
)

// Fetch (key 1), versions 0 to 3: what consumers from 0.8 to 0.10 send.
//
//   - Versions 0 and 1 read magic 0, versions 2 and 3 magic 1 at most. What is stored so goes out from the file; what is newer is converted while
//     it is sent (KIP-283), a piece at a time: the size of the record set is promised first, and what the converted records do not fill is one
//     message that is cut off, which clients skip. At least the first batch is whole.
//   - Versions 0 to 2 have hard limits: a message that does not fit comes cut off, which tells the client to ask for more.
//   - Control batches are left out. Where nothing else is left, the next records are looked for, up to the high watermark, since such a
//     client cannot step over what it is not shown; when there are none yet the fetch waits for them.

const (
	// pieceBytes is about how much is converted at once.
	pieceBytes = 64 << 10
	// keepConverted bounds the bytes of first batches that a fetch keeps for when they are sent; others are converted twice.
	keepConverted = 1 << 20
)

// readableMagic is the newest format that clients of a version of Fetch read.
func readableMagic(version int16) int8 {
	switch {
	case version < 2:
		return 0
	case version < 4:
		return 1
	}
	return 2
}

// olderSlice is slice for versions 0 to 3. What must be converted is in p.converted instead of the slice.
func (f *fetch) olderSlice(p *fetchPart, l *log.Log, left int) (log.Slice, error) {
	first, hard := f.got == 0, f.version < 3
	slice, err := l.Read(max(p.FetchOffset, p.resume), left, f.limit, first || hard && left > 0)
	if err != nil || left == 0 && hard || slice.Size < max(slice.FirstBatch, 1) {
		slice.Release()
		return log.Slice{}, err
	}
	magic := readableMagic(f.version)
	newer, err := slice.NewerThan(magic)
	if err == nil && newer && !p.partition.topic.config.Load().DownConversion {
		err = fmt.Errorf("message.downconversion.enable of the topic is false: %w", kerr.UnsupportedVersion)
	}
	if err == nil && newer {
		return log.Slice{}, f.convert(p, l, slice, left)
	}
	if err != nil {
		slice.Release()
		return log.Slice{}, err
	}
	if hard {
		slice.Size = min(slice.Size, left)
	}
	return slice, nil
}

// convert makes p.converted of a slice with newer batches, or of what follows it if nothing is left of it.
func (f *fetch) convert(p *fetchPart, l *log.Log, slice log.Slice, left int) error {
	c := &downConversion{broker: f.broker, by: converting{"Fetch", f.version, f.clientID, f.peer}, slice: slice, magic: readableMagic(f.version), from: p.FetchOffset}
	for {
		keep := keepConverted - f.kept
		next, err := c.begin(keep)
		if err != nil {
			c.release()
			return conversionError(err)
		}
		if c.size > 0 {
			break
		}
		c.release()
		p.resume = next
		if c.slice, err = l.Read(next, left, f.limit, true); err != nil || c.slice.Size == 0 {
			c.slice.Release()
			return err
		}
	}
	f.kept += len(c.first)
	switch whole := c.slice.FirstBatch <= left; {
	case f.version < 3 && !whole:
		c.size = min(c.size, left)
	default:
		c.size = max(c.size, c.slice.Size)
	}
	c.left = c.size
	p.converted = c
	return nil
}

// downConversion is the record set of a partition for a client that does not read the stored format. It is a wire.Stream.
type downConversion struct {
	broker *Broker
	by     converting
	slice  log.Slice // owned
	magic  int8
	from   int64 // offset that was asked for
	size   int   // promised
	left   int   // of it

	first        []byte // converted already; nil if that was too much to keep
	firstRecords int64
	skip         int // bytes of slice that need no conversion any more
	current      *downgrade
}

// downgrade is what a conversion needs while it runs: about twice pieceBytes and twice the largest batch.
type downgrade struct {
	entries log.Entries
	down    batch.Downgrader
	out     []byte
	records int64 // converted since it was looked at last
	busy    bool  // down is not done with the current entry
	ended   bool
}

// begin converts the first batch that anything is left of, and sets size to that of the outcome: 0 if there is none, and then next is the
// offset to go on at. The outcome is kept if it has no more than keep bytes.
func (c *downConversion) begin(keep int) (next int64, err error) {
	w := c.broker.downgrades.Get().(*downgrade)
	defer func() { c.broker.putDowngrade(w) }()
	w.entries.Reset(&c.slice, 0)
	c.size, c.first, c.skip = 0, nil, 0
	for c.size == 0 {
		before := w.entries.Pos()
		b, err := w.entries.Next()
		if err == io.EOF {
			return next, nil
		}
		if err != nil {
			return 0, err
		}
		e, err := batch.ReadEntry(b)
		if err != nil {
			return 0, err
		}
		next, c.skip = e.LastOffset+1, before
		if err := w.down.Start(b, c.magic, c.from); err != nil {
			return 0, err
		}
		for done := false; !done; {
			if w.out, done, err = w.down.Next(w.out[:0], pieceBytes); err != nil {
				return 0, err
			}
			c.size += len(w.out)
			c.firstRecords = int64(w.down.Records())
			if c.size <= keep {
				c.first = append(c.first, w.out...)
			}
		}
	}
	if c.size > keep {
		c.first = nil
	} else {
		c.skip = w.entries.Pos()
	}
	return next, nil
}

// Next implements wire.Stream. Damage and what cannot be converted ends the records: the client asks again from there and is told then.
func (c *downConversion) Next() ([]byte, error) {
	b, records := c.piece()
	b = b[:min(len(b), c.left)]
	c.left -= len(b)
	if records > 0 {
		c.broker.conversions.fetched(c.by, records, int64(len(b)))
	}
	return b, nil
}

// piece makes the next bytes and says how many records were converted for them.
func (c *downConversion) piece() ([]byte, int64) {
	if b := c.first; b != nil {
		c.first = nil
		return b, c.firstRecords
	}
	w := c.current
	if w == nil {
		w = c.broker.downgrades.Get().(*downgrade)
		w.entries.Reset(&c.slice, c.skip)
		w.ended, w.busy, w.records = false, false, 0
		c.current = w
	}
	w.out, w.records = w.out[:0], 0
	for !w.ended && len(w.out) < pieceBytes {
		w.ended = w.more(c.magic, c.from) != nil
	}
	if len(w.out) == 0 {
		w.overflow(c.left)
	}
	return w.out, w.records
}

// more appends converted records to out. Any error is the end.
func (w *downgrade) more(magic int8, from int64) error {
	if !w.busy {
		b, err := w.entries.Next()
		if err != nil {
			return err
		}
		if err := w.down.Start(b, magic, from); err != nil {
			return err
		}
	}
	before := w.down.Records()
	out, done, err := w.down.Next(w.out, pieceBytes)
	w.out, w.busy = out, err == nil && !done
	w.records += int64(w.down.Records() - before)
	return err
}

// overflow makes what fills up a promised size: a message that is longer than the rest of the answer, whose end no client waits for.
func (w *downgrade) overflow(left int) {
	w.out = append(w.out[:0], 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	w.out = binary.BigEndian.AppendUint32(w.out, uint32(max(left+1, batch.HeaderSize)))
	if n := min(left, pieceBytes); n > len(w.out) {
		w.out = append(w.out, make([]byte, n-len(w.out))...)
	}
}

func (b *Broker) putDowngrade(w *downgrade) {
	w.entries.Release()
	w.down.Release()
	if cap(w.out) > keepConverted {
		w.out = nil
	}
	b.downgrades.Put(w)
}

// release lets go of the segment file and the scratch. It may be called again.
func (c *downConversion) release() {
	if c.current != nil {
		c.broker.putDowngrade(c.current)
		c.current = nil
	}
	c.slice.Release()
}

// conversionError is why a batch cannot be converted, as its reader is told.
func conversionError(err error) error {
	var damage *log.CorruptError
	switch {
	case errors.Is(err, batch.ErrCodec):
		return kerr.UnsupportedCompressionType
	case errors.As(err, &damage), errors.Is(err, batch.ErrInvalid), errors.Is(err, batch.ErrCorrupt):
		return fmt.Errorf("stored batch cannot be converted: %w: %w", kerr.CorruptMessage, err)
	}
	return err
}
