package log

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"gregor/log/batch"
)

// errCutOff is an entry that ends after its file.
var errCutOff = errors.New("entry is cut off")

// scanner walks over the entries of a file. It reads big chunks, and only headers of entries larger than those unless verify
// asks for every byte.
type scanner struct {
	file   io.ReaderAt
	pos    int64 // of the next entry
	end    int64 // of what may be read
	verify bool  // check every checksum

	buf  []byte // scratch; how much is read at once
	from int64  // position of buf[0]
	have int    // bytes of buf that are read

	// entry is the current one, at bytes [at, at+entry.Size).
	entry batch.Entry
	at    int64
}

// next goes to the next entry. io.EOF is a clean end; any other error is damage, or a read that failed (*readError), at pos.
func (s *scanner) next() error {
	left := s.end - s.pos
	if left == 0 {
		return io.EOF
	}
	head, err := s.bytes(s.pos, int(min(left, batch.EntryHeaderSize)))
	if err != nil {
		return err
	}
	e, err := batch.ReadEntry(head)
	if err != nil {
		return err
	}
	if int64(e.Size) > left {
		return fmt.Errorf("%w: %d bytes of %d", errCutOff, left, e.Size)
	}
	if s.verify {
		if err := s.check(e.Size); err != nil {
			return err
		}
	}
	s.entry, s.at = e, s.pos
	s.pos += int64(e.Size)
	return nil
}

// header is the head of the current entry, as long as ReadEntry needs it.
func (s *scanner) header() ([]byte, error) { return s.bytes(s.at, min(s.entry.Size, batch.HeaderSize)) }

// bytes returns n bytes at pos, n at most len(buf), valid until the next call.
func (s *scanner) bytes(pos int64, n int) ([]byte, error) {
	if pos < s.from || pos+int64(n) > s.from+int64(s.have) {
		b := s.buf[:min(int64(len(s.buf)), s.end-pos)]
		got, err := s.file.ReadAt(b, pos)
		if got < n {
			s.have = 0
			return nil, &readError{noEOF(err)}
		}
		s.from, s.have = pos, got
	}
	at := pos - s.from
	return s.buf[at : at+int64(n)], nil
}

// readError is a failure of the disk, which is no proof of damage.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// check verifies the checksum of the entry at pos. One that is larger than the buffer goes through it piece by piece: its size is
// only a claim as yet, too weak to allocate on.
func (s *scanner) check(size int) error {
	if size <= len(s.buf) {
		b, err := s.bytes(s.pos, size)
		if err != nil {
			return err
		}
		return batch.Verify(b)
	}
	head, err := s.bytes(s.pos, batch.HeaderSize)
	if err != nil {
		return err
	}
	stored, covered, table := binary.BigEndian.Uint32(head[batch.CRCPos:]), int64(batch.AttributesPos), crc32.MakeTable(crc32.Castagnoli)
	if head[batch.MagicPos] < 2 {
		stored, covered, table = binary.BigEndian.Uint32(head[batch.OverheadSize:]), batch.MagicPos, crc32.IEEETable
	}
	computed := uint32(0)
	for pos, end := s.pos+covered, s.pos+int64(size); pos < end; {
		b, err := s.bytes(pos, int(min(end-pos, int64(len(s.buf)))))
		if err != nil {
			return err
		}
		computed = crc32.Update(computed, table, b)
		pos += int64(len(b))
	}
	if computed != stored {
		return fmt.Errorf("%w: crc is %08x, the bytes have %08x", batch.ErrCorrupt, stored, computed)
	}
	return nil
}
