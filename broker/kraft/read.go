package kraft

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gregor/log/batch"
	"gregor/log/vfs"
)

// DirName is the directory of the metadata in a log directory (metadata.log.dir, or the first of log.dirs).
const DirName = "__cluster_metadata-0"

// maxBatch bounds a batch of metadata in bytes; Kafka writes at most 8 MiB.
const maxBatch = 64 << 20

// State is what Read found.
type State struct {
	Image *Image
	// End is the offset after the last whole batch of the log, and Epoch the leader epoch of that.
	End   int64
	Epoch int32
	// Torn is how many bytes at the end of the log are no whole batch: what an unclean stop leaves.
	Torn int64
	// Base is the offset that the newest segment begins at, -1 without segments.
	Base int64
}

// DamageError is metadata that cannot be read.
type DamageError struct {
	File string
	Pos  int64 // of the batch, in bytes
	Err  error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("metadata file %s is damaged at byte %d: %v", e.File, e.Pos, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// files are the names in a metadata directory that matter.
type files struct {
	segments []int64  // base offsets, ascending
	snapshot snapshot // the newest; end is -1 when there is none
}

type snapshot struct {
	end   int64 // offset after the last record in it
	epoch int32
}

func (s snapshot) name() string { return fmt.Sprintf("%020d-%010d.checkpoint", s.end, s.epoch) }

// Read reads the metadata in dir, which ends in DirName, without changing anything. Without such a directory the error is fs.ErrNotExist. Damage is
// a *DamageError.
func Read(fsys vfs.FS, dir string) (*State, error) {
	list, err := listFiles(fsys, dir)
	if err != nil {
		return nil, err
	}
	st := &State{Image: NewImage(), Base: -1}
	if list.snapshot.end > 0 { // the one at 0 is from formatting: the first controller repeats it in the log
		if err := st.readSnapshot(fsys, dir, list.snapshot); err != nil {
			return nil, err
		}
	}
	for i, base := range list.segments {
		last := i == len(list.segments)-1
		if !last && list.segments[i+1] <= st.End {
			continue // older than the snapshot
		}
		if base > st.End {
			return nil, &DamageError{filepath.Join(dir, segmentName(base)), 0, fmt.Errorf("%w: nothing has the records from %d to %d", ErrFormat, st.End, base-1)}
		}
		if err := st.readSegment(fsys, dir, base, last); err != nil {
			return nil, err
		}
		st.Base = base
	}
	return st, nil
}

func segmentName(base int64) string { return fmt.Sprintf("%020d.log", base) }

func listFiles(fsys vfs.FS, dir string) (files, error) {
	checkpoint := regexp.MustCompile(`^(\d{20})-(\d{10})\.checkpoint$`)
	found := files{snapshot: snapshot{end: -1}}
	entries, err := fsys.List(dir)
	if err != nil {
		return found, fmt.Errorf("listing the metadata: %w", err)
	}
	for _, e := range entries {
		if m := checkpoint.FindStringSubmatch(e.Name()); m != nil {
			end, err1 := strconv.ParseInt(m[1], 10, 64)
			epoch, err2 := strconv.ParseInt(m[2], 10, 32)
			if s := (snapshot{end, int32(epoch)}); err1 == nil && err2 == nil && end >= found.snapshot.end {
				found.snapshot = s
			}
		}
		if digits, ok := strings.CutSuffix(e.Name(), ".log"); ok && len(digits) == 20 {
			if base, err := strconv.ParseInt(digits, 10, 64); err == nil && base >= 0 {
				found.segments = append(found.segments, base)
			}
		}
	}
	slices.Sort(found.segments)
	return found, nil
}

// errTail is the end of what can be read of a file that is not its end.
var errTail = errors.New("batch is not whole")

// walk calls visit with each batch of a file, checked, until the file's end, or an error: errTail is wrapped where a batch is cut off or damaged.
func walk(fsys vfs.FS, name string, visit func(pos int64, h batch.Header, b []byte) error) error {
	f, err := fsys.OpenRead(name)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	var buf []byte
	for pos := int64(0); pos < size; {
		b, err := readBatch(f, pos, size, &buf)
		if err != nil {
			return &DamageError{name, pos, err}
		}
		h, err := batch.ReadHeader(b)
		if err == nil {
			err = batch.Verify(b)
		}
		if err != nil {
			return &DamageError{name, pos, fmt.Errorf("%w: %w", errTail, err)}
		}
		if err := visit(pos, h, b); err != nil {
			return &DamageError{name, pos, err}
		}
		pos += int64(len(b))
	}
	return nil
}

// readBatch reads the batch at pos into buf, which grows.
func readBatch(f vfs.File, pos, size int64, buf *[]byte) ([]byte, error) {
	head := make([]byte, batch.HeaderSize)
	if size-pos < int64(len(head)) {
		return nil, fmt.Errorf("%w: %d bytes are left", errTail, size-pos)
	}
	if _, err := f.ReadAt(head, pos); err != nil {
		return nil, err
	}
	n, err := batch.EntrySize(head)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errTail, err)
	case int64(n) > size-pos:
		return nil, fmt.Errorf("%w: %d bytes of %d", errTail, size-pos, n)
	case n > maxBatch:
		return nil, fmt.Errorf("%w: batch of %d bytes, at most %d", ErrFormat, n, maxBatch)
	}
	*buf = slices.Grow((*buf)[:0], n)[:n]
	if _, err := f.ReadAt(*buf, pos); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return *buf, nil
}

// readSnapshot reads a whole snapshot; one without its last record, the footer, is damaged.
func (st *State) readSnapshot(fsys vfs.FS, dir string, s snapshot) error {
	const footer = 4 // type of the control record at a snapshot's end
	name := filepath.Join(dir, s.name())
	whole := false
	var r batch.Reader
	err := walk(fsys, name, func(_ int64, h batch.Header, b []byte) error {
		if h.Control() {
			kind, err := controlType(&r, b)
			whole = whole || kind == footer
			return err
		}
		return st.apply(&r, b, 0)
	})
	if err == nil && !whole {
		err = &DamageError{name, 0, fmt.Errorf("%w: it has no footer", ErrFormat)}
	}
	st.End, st.Epoch = s.end, s.epoch
	return err
}

// controlType is the type of a control record.
func controlType(r *batch.Reader, b []byte) (int, error) {
	if err := r.Reset(b, maxBatch); err != nil {
		return 0, err
	}
	var rec batch.Record
	if !r.Next(&rec) || len(rec.Key) < 4 {
		return 0, errors.Join(fmt.Errorf("%w: control batch without a type", ErrFormat), r.Err())
	}
	return int(rec.Key[2])<<8 | int(rec.Key[3]), nil
}

// apply takes over the records of a batch from offset on.
func (st *State) apply(r *batch.Reader, b []byte, from int64) error {
	if err := r.Reset(b, maxBatch); err != nil {
		return err
	}
	var rec batch.Record
	for r.Next(&rec) {
		if rec.Offset < from {
			continue
		}
		if err := st.Image.Apply(rec.Value); err != nil {
			return fmt.Errorf("offset %d: %w", rec.Offset, err)
		}
	}
	return r.Err()
}

// readSegment replays a segment from st.End on. What is not whole at the end of the last one is torn.
func (st *State) readSegment(fsys vfs.FS, dir string, base int64, last bool) error {
	name := filepath.Join(dir, segmentName(base))
	var r batch.Reader
	err := walk(fsys, name, func(_ int64, h batch.Header, b []byte) error {
		if h.LastOffset() < st.End {
			return nil
		}
		if h.BaseOffset > st.End {
			return fmt.Errorf("%w: offset %d follows %d", ErrFormat, h.BaseOffset, st.End-1)
		}
		if !h.Control() {
			if err := st.apply(&r, b, st.End); err != nil {
				return err
			}
		}
		st.End, st.Epoch = h.LastOffset()+1, h.LeaderEpoch
		return nil
	})
	var damage *DamageError
	if last && errors.Is(err, errTail) && errors.As(err, &damage) {
		info, e := fsys.Stat(name)
		if e != nil {
			return e
		}
		st.Torn = info.Size() - damage.Pos
		return nil
	}
	return err
}
