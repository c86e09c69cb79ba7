package log

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"gregor/log/batch"
	"gregor/log/vfs"
)

// Suffixes of a partition's files, as Kafka has them.
const (
	logExt      = ".log"
	indexExt    = ".index"
	timeExt     = ".timeindex"
	txnExt      = ".txnindex"
	snapshotExt = ".snapshot"
	epochFile   = "leader-epoch-checkpoint"
)

// noTime is the largest timestamp of a segment without any. Kafka keeps nothing below 0 in a time index either.
const noTime = -1

// fileName is Kafka's: the offset in 20 digits, so that names sort.
func fileName(offset int64, ext string) string {
	digits := strconv.FormatInt(offset, 10)
	const zeros = "00000000000000000000"
	return zeros[:len(zeros)-len(digits)] + digits + ext
}

// parseFileName takes a file name apart; ok is false if it is not fileName's.
func parseFileName(name string) (offset int64, ext string, ok bool) {
	digits, _, _ := strings.Cut(name, ".")
	if len(digits) != 20 {
		return 0, "", false
	}
	offset, err := strconv.ParseInt(digits, 10, 64)
	return offset, name[20:], err == nil && offset >= 0
}

// segment is one .log with its indexes. What readers use is atomic or immutable; the writer's part is guarded by Log.mu.
type segment struct {
	log  *Log
	base int64
	// suffix goes after the names of the files: the output of compaction has one, and is not shared.
	suffix string

	data    sharedFile
	offsets sparse
	times   sparse
	aborted sparse // transactions that a marker in this segment aborted
	// proven: entries of aborted for markers from this offset on are what the log says; unproven: none are.
	proven atomic.Int64
	// firstOpen is what Log.firstOpen was when the segment began; unknownOpen: see openAtBase.
	firstOpen atomic.Int64
	// size is the end of the last whole entry. It is stored after the bytes are written, so that reads below it find them.
	size    atomic.Int64
	maxTime atomic.Int64 // the largest timestamp, noTime if none; of a sealed segment only when loaded
	// recovered is when the segment was read after an unclean stop, in milliseconds; 0 if it was not.
	recovered int64

	// A sealed segment that was found at Open is looked at when it is first needed (ensure).
	loadMu    sync.Mutex
	loaded    atomic.Bool
	discarded bool // its files are not its own any more; guarded by loadMu

	writer segmentWriter
}

// segmentWriter is what only the writer of an active segment needs. Guarded by Log.mu.
type segmentWriter struct {
	pinned        bool  // the handle has a use for the writer: active, or sealed and not synced yet
	created       int64 // broker clock, milliseconds
	jitter        int64 // taken off segment.ms
	firstTime     int64 // max timestamp of the first batch; noTime while there is none
	maxTimeOffset int64 // last offset of the batch that has maxTime
	indexedTime   int64 // timestamp of the last entry of the time index; noTime while it is empty
	sinceIndex    int   // bytes since the batch of the last index entry
	abortedInFile int   // entries of the transaction index that were written to its file
}

func newSegment(l *Log, base int64) *segment {
	s := &segment{log: l, base: base}
	s.offsets.init(s, indexExt, offsetEntrySize)
	s.times.init(s, timeExt, timeEntrySize)
	s.aborted.init(s, txnExt, txnEntrySize)
	s.proven.Store(unproven)
	s.firstOpen.Store(unknownOpen)
	s.maxTime.Store(noTime)
	s.writer = segmentWriter{created: l.now().UnixMilli(), firstTime: noTime, indexedTime: noTime, maxTimeOffset: base}
	if cfg := l.cfg.Load(); cfg.SegmentJitterMs > 0 {
		s.writer.jitter = rand.Int64N(min(cfg.SegmentJitterMs, cfg.SegmentMs))
	}
	return s
}

func (s *segment) name(ext string) string { return fileName(s.base, ext) + s.suffix }
func (s *segment) path(ext string) string { return filepath.Join(s.log.Dir(), s.name(ext)) }

// pin makes s a segment that is written to through f, the handle that readers share.
func (s *segment) pin(f vfs.File) {
	s.data.adopt(f)
	s.writer.pinned = true
	s.loaded.Store(true)
}

// unpin gives the writer's use of the handle up.
func (s *segment) unpin() {
	if s.writer.pinned {
		s.writer.pinned = false
		s.log.handles.release(&s.data)
	}
}

// retire lets the handles go: readers that have one keep it until they release it.
func (s *segment) retire() {
	for _, f := range []*sharedFile{&s.data, &s.offsets.file, &s.times.file, &s.aborted.file} {
		s.log.handles.drop(f)
	}
	s.unpin()
}

// remove deletes the files. The .log goes last: while it is there the segment is.
func (s *segment) remove() error {
	s.retire()
	for _, ext := range []string{indexExt, timeExt, txnExt, logExt} {
		if err := s.log.fs.Remove(s.path(ext)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// account takes note of an entry at pos: the indexes get one for it when enough bytes lie behind the last. Log.mu must be
// held, or the segment not be shared yet.
func (s *segment) account(pos int64, e *batch.Entry) {
	w := &s.writer
	if pos == 0 {
		w.firstTime = e.MaxTimestamp
	}
	if e.MaxTimestamp > s.maxTime.Load() {
		s.maxTime.Store(e.MaxTimestamp)
		w.maxTimeOffset = e.LastOffset
	}
	if w.sinceIndex > s.log.cfg.Load().IndexIntervalBytes {
		var entry [offsetEntrySize]byte
		binary.BigEndian.PutUint32(entry[0:], uint32(e.LastOffset-s.base))
		binary.BigEndian.PutUint32(entry[4:], uint32(pos))
		s.offsets.add(entry[:])
		s.addTime()
		w.sinceIndex = 0
	}
	w.sinceIndex += e.Size
}

// addTime appends the largest timestamp so far to the time index, unless it is there.
func (s *segment) addTime() {
	if s.maxTime.Load() <= s.writer.indexedTime {
		return
	}
	s.writer.indexedTime = s.maxTime.Load()
	var entry [timeEntrySize]byte
	binary.BigEndian.PutUint64(entry[0:], uint64(s.maxTime.Load()))
	binary.BigEndian.PutUint32(entry[8:], uint32(s.writer.maxTimeOffset-s.base))
	s.times.add(entry[:])
}

// seal writes the indexes for good: the last entry of the time index is the segment's largest timestamp. The bytes of the
// files are not synced.
func (s *segment) seal() error {
	s.addTime()
	err := errors.Join(s.offsets.seal(), s.times.seal())
	if s.proven.Load() != unproven { // else nobody has looked at the file yet
		err = errors.Join(err, s.aborted.seal())
	}
	if err != nil {
		return fmt.Errorf("writing the indexes of %s: %w", s.path(logExt), err)
	}
	return nil
}

// indexes are the extensions of the index files that s has; there is no transaction index where nothing was aborted.
func (s *segment) indexes() []string {
	if s.aborted.entries() == 0 {
		return []string{indexExt, timeExt}
	}
	return []string{indexExt, timeExt, txnExt}
}

// full says that the indexes hold no further entries. The time index keeps a place for the one that sealing adds.
func (s *segment) full(indexBytes int) bool {
	return s.offsets.entries() >= indexBytes/offsetEntrySize || s.times.entries() >= indexBytes/timeEntrySize-1
}

// fits says that offset can be written relative to the base.
func (s *segment) fits(offset int64) bool { return offset-s.base <= math.MaxInt32 }

func offsetEntry(b []byte) (relative, pos int64) {
	return int64(int32(binary.BigEndian.Uint32(b))), int64(int32(binary.BigEndian.Uint32(b[4:])))
}

func timeEntry(b []byte) (timestamp, relative int64) {
	return int64(binary.BigEndian.Uint64(b)), int64(int32(binary.BigEndian.Uint32(b[8:])))
}

// segments are all of a log, by base offset; never empty, the last is the active one. A list does not change once published.
type segments []*segment

func (list segments) active() *segment { return list[len(list)-1] }

// find is the place of the segment that holds offset, if any does: the last whose base is not above. -1 if all are above.
func (list segments) find(offset int64) int {
	// Most reads are of the newest data.
	if n := len(list) - 1; list[n].base <= offset {
		return n
	}
	return sort.Search(len(list), func(i int) bool { return list[i].base > offset }) - 1
}
