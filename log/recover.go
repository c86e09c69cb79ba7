package log

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"gregor/log/batch"
)

// Open opens the log in o.Dir, or makes it, and recovers it as far as needed: after a clean stop the newest segment is looked at,
// after a crash everything above the recovery point is checked and what is not whole is cut off. Damage below the recovery
// point is a *CorruptError and nothing is changed.
//
// When the log was not closed cleanly, the high watermark starts at the recovery point and moves on with the first sync.
func Open(o Options) (*Log, error) {
	l := newLog(o)
	r := &recovery{Log: l, point: max(o.RecoveryPoint, 0), visible: max(o.RecoveryPoint, o.LogStart, 0), clean: o.Clean,
		trust: o.Clean || o.FastBoot, fast: o.FastBoot}
	if err := r.run(max(o.LogStart, 0)); err != nil {
		for _, s := range r.list {
			s.retire()
		}
		return nil, fmt.Errorf("opening log %s: %w", o.Dir, err)
	}
	l.snapshots.offsets = r.inv.snapshots
	l.changed = l.changed || !r.clean
	if err := r.proveUnsynced(); err != nil {
		l.Abandon()
		return nil, fmt.Errorf("opening log %s: %w", o.Dir, err)
	}
	if l.unsynced() {
		l.markDirty()
	}
	return l, nil
}

// recovery is the state of an Open.
type recovery struct {
	*Log
	inv     *inventory
	point   int64 // recovery point
	visible int64 // what consumers may have seen for sure: a log start that was moved is below the high watermark
	clean   bool  // everything is durable
	trust   bool  // look at headers only
	fast    bool  // and do not even compare with what should be there

	list   segments
	end    int64     // log end offset so far
	high   mark      // the first point between batches at visible or above, or the end if there is none
	cut    bool      // something was cut off or removed
	stored epochList // the checkpoint; nil: none
	epoch  epochList // with the epochs of the batches that were read

	replayed []*segment // whose transaction index comes from the replay
}

func (r *recovery) run(logStart int64) error {
	var err error
	if r.inv, err = r.takeInventory(); err != nil {
		return err
	}
	if r.stored, err = r.readEpochs(r.inv); err != nil {
		return err
	}
	r.epoch = r.stored
	if err := r.loadAll(logStart); err != nil {
		return err
	}
	if r.end < r.point && !r.fast {
		return &CorruptError{File: r.list.active().path(logExt), Pos: r.list.active().size.Load(),
			Err: fmt.Errorf("the log ends at offset %d, but everything up to %d was durable", r.end, r.point)}
	}
	r.publish(max(logStart, r.list[0].base))
	if err := r.loadEpochs(); err != nil {
		return err
	}
	if err := r.loadProducers(); err != nil {
		return err
	}
	if r.cut {
		return r.fs.SyncDir(r.Dir())
	}
	return nil
}

// loadAll fills list and end.
func (r *recovery) loadAll(logStart int64) error {
	if len(r.inv.bases) == 0 {
		return r.startEmpty(logStart)
	}
	err := r.loadSegments()
	if errors.Is(err, errNotClean) {
		r.logger.Warn("log is not as a clean stop leaves it, checking it as after a crash", "dir", r.Dir(), "reason", err)
		for _, s := range r.list {
			s.retire()
		}
		r.list, r.high, r.clean, r.trust, r.epoch = nil, mark{}, false, false, r.stored
		err = r.loadSegments()
	}
	if err == nil && r.end < logStart && r.end >= r.point {
		err = r.startOver(logStart)
	}
	return err
}

// errNotClean is damage after a stop that claims to have been clean.
var errNotClean = errors.New("unexpected end of the log")

// startEmpty makes the first segment of a new log.
func (r *recovery) startEmpty(base int64) error {
	if base < r.point && !r.fast {
		return &CorruptError{File: r.Dir(), Err: fmt.Errorf("there is no segment, but everything up to offset %d was durable", r.point)}
	}
	s, err := r.createSegment(base)
	if err != nil {
		return err
	}
	r.flush.parent = r.inv.made
	r.list, r.end, r.high = segments{s}, base, mark{offset: base, segment: base}
	return nil
}

// startOver goes on at the log start when all segments lie below it: nothing in them may be read.
func (r *recovery) startOver(logStart int64) error {
	r.logger.Warn("all segments lie below the log start offset and are removed", "dir", r.Dir(), "end", r.end, "start", logStart)
	if err := r.removeSynced(r.list); err != nil {
		return err
	}
	r.epoch = nil
	return r.startEmpty(logStart)
}

// loadSegments fills list: segments below the recovery point as they are, the others read.
func (r *recovery) loadSegments() error {
	for _, base := range r.inv.bases {
		r.list = append(r.list, newSegment(r.Log, base))
	}
	first := len(r.list) - 1
	if !r.trust {
		// Of the segment that begins at the recovery point nothing was durable, but all of the one before was.
		first = max(r.list.find(r.point), 0)
	}
	for i, s := range r.list[:first] {
		if err := r.loadSealed(s); err != nil {
			return err
		}
		if !r.clean && r.list[i+1].base > r.point {
			r.needSync(&fileSync{r.Log, s.name(logExt)})
		}
	}
	for i := first; i < len(r.list); i++ {
		damage, err := r.loadNewest(i)
		if err != nil {
			return err
		}
		if ok, err := r.joins(i, damage); !ok || err != nil {
			return err
		}
	}
	return nil
}

// loadSealed takes a segment below the recovery point as it is. Its indexes are looked at when they are needed, unless the last
// stop was unclean.
func (r *recovery) loadSealed(s *segment) error {
	info, err := r.fs.Stat(s.path(logExt))
	if err != nil {
		return err
	}
	s.size.Store(info.Size())
	if r.trust && (r.fast || r.inv.hasIndexes(s.base)) {
		return nil
	}
	return s.ensure()
}

// loadNewest reads segment i and makes it the active one, sealing the one that was. damage is why it ended before its file did.
func (r *recovery) loadNewest(i int) (damage, err error) {
	s := r.list[i]
	if i > 0 && r.list[i-1].writer.pinned {
		if err := r.sealRecovered(r.list[i-1]); err != nil {
			return nil, err
		}
	}
	f, err := r.fs.Open(s.path(logExt))
	if err != nil {
		return nil, err
	}
	s.pin(f)
	if !r.clean {
		s.recovered = r.now().UnixMilli()
	}
	damage, err = r.load(s)
	if err == nil && r.trust && !r.fast {
		switch {
		case damage != nil:
			err = fmt.Errorf("%w: %s at byte %d: %w", errNotClean, s.path(logExt), s.size.Load(), damage)
		case r.point > 0 && r.end != r.point:
			err = fmt.Errorf("%w: it is offset %d, the recovery point is %d", errNotClean, r.end, r.point)
		}
	}
	return damage, err
}

// joins looks at how segment i ends. False: the log ends there, and what came after was cut off and removed.
func (r *recovery) joins(i int, damage error) (bool, error) {
	s := r.list[i]
	if damage != nil && r.end < r.point && !r.fast {
		return false, &CorruptError{File: s.path(logExt), Pos: s.size.Load(), Err: damage}
	}
	if i < len(r.list)-1 {
		next := r.list[i+1]
		if r.end > next.base {
			return false, &CorruptError{File: next.path(logExt), Err: fmt.Errorf("it starts at offset %d, the segment before ends at %d", next.base, r.end)}
		}
		if damage == nil && (r.end == next.base || r.cfg.Load().Compacted) {
			return true, nil
		}
		// What is missing here was not durable, so nothing that was written after it was: syncs go in order.
		if err := r.removeAbove(i); err != nil {
			return false, err
		}
	}
	if damage != nil {
		return false, r.cutTail(s, damage)
	}
	return false, nil
}

// sealRecovered seals a segment that turned out not to be the last. It is as unsynced as after a roll.
func (r *recovery) sealRecovered(s *segment) error {
	if err := s.seal(); err != nil {
		return err
	}
	s.unpin()
	for _, ext := range append(s.indexes(), logExt) {
		r.needSync(&fileSync{r.Log, s.name(ext)})
	}
	return nil
}

// cutTail cuts what is not a whole valid entry off the end of s.
func (r *recovery) cutTail(s *segment, damage error) error {
	keep := s.size.Load()
	size, err := s.data.file.Size()
	if err != nil {
		return err
	}
	r.logger.Warn("cutting a torn tail off the log", "file", s.path(logExt), "position", keep, "bytes", size-keep, "offset", r.end, "reason", damage)
	r.cut = true
	if err := r.cutIndexes(s); err != nil {
		return err
	}
	if err := s.data.file.Truncate(keep); err != nil {
		return err
	}
	return s.data.file.Sync()
}

// cutIndexes makes the index files of s hold what was kept of them, before the log is cut, for the reason of segment.cutIndexes.
func (r *recovery) cutIndexes(s *segment) error {
	for _, x := range []*sparse{&s.offsets, &s.times} {
		if _, ok := r.inv.files[fileKey{s.base, x.ext}]; !ok {
			continue
		}
		if err := x.cut(x.entries()); err != nil {
			return err
		}
	}
	return nil
}

// removeAbove removes the segments after i.
func (r *recovery) removeAbove(i int) error {
	gone := slices.Clone(r.list[i+1:])
	if gone[0].base < r.point && !r.fast {
		return &CorruptError{File: r.list[i].path(logExt), Pos: r.list[i].size.Load(),
			Err: fmt.Errorf("it ends at offset %d and the next segment starts at %d, but everything up to %d was durable", r.end, gone[0].base, r.point)}
	}
	for _, s := range gone {
		info, err := r.fs.Stat(s.path(logExt))
		if err != nil {
			return err
		}
		r.logger.Warn("removing a segment that was written after the cut", "file", s.path(logExt), "bytes", info.Size(), "offset", r.end)
	}
	r.list = r.list[:i+1]
	r.cut = true
	return removeAll(gone)
}

// load reads s from where its indexes are known to be good. damage is why it ended before the end of the file; err is a failure
// to read, which proves nothing.
func (r *recovery) load(s *segment) (damage, err error) {
	size, err := s.data.file.Size()
	if err != nil {
		return nil, err
	}
	from, err := r.resume(s, size)
	if err != nil {
		return nil, err
	}
	chunks := &r.handles.chunks
	buf := chunks.get()
	defer chunks.put(buf)
	scan := scanner{file: s.data.file, pos: from.pos, end: size, buf: buf.b, verify: !r.trust}
	s.size.Store(from.pos)
	r.end = max(from.offset, s.base)
	for err = scan.next(); err == nil; err = scan.next() {
		if damage := r.take(s, &scan); damage != nil {
			return damage, nil
		}
	}
	r.note(s)
	switch {
	case err == io.EOF:
		return nil, nil
	case isDamage(err):
		return err, nil
	}
	return nil, fmt.Errorf("reading %s: %w", s.path(logExt), err)
}

// take adds the scanner's entry to s, or says why it cannot be there.
func (r *recovery) take(s *segment, scan *scanner) error {
	e := &scan.entry
	follows := e.LastOffset >= r.end && (e.Magic < 2 || e.BaseOffset >= r.end) && s.fits(e.LastOffset)
	// Offsets are outside the checksum. A batch began at the recovery point: one that comes after a gap around it has a wrong one.
	if e.BaseOffset > r.point && r.end < r.point && (e.Magic >= 2 || e.Codec == batch.None) && !r.cfg.Load().Compacted {
		follows = false
	}
	if !follows {
		return fmt.Errorf("offsets %d to %d do not follow %d", e.BaseOffset, e.LastOffset, r.end)
	}
	r.note(s)
	s.account(scan.at, e)
	s.size.Store(scan.pos)
	r.end = e.LastOffset + 1
	if list, changed := r.epoch.assign(e.LeaderEpoch, e.BaseOffset); changed {
		r.epoch = list
	}
	return nil
}

// note remembers the end of s so far, until that is past what consumers may have seen.
func (r *recovery) note(s *segment) {
	if r.high.offset < r.visible || r.high == (mark{}) {
		r.high = mark{offset: r.end, segment: s.base, pos: s.size.Load()}
	}
}

// publish makes the segments the log's.
func (r *recovery) publish(start int64) {
	s := r.list.active()
	r.Log.list.Store(&r.list)
	end := mark{offset: r.end, segment: s.base, pos: s.size.Load()}
	r.Log.end.store(end)
	r.start.Store(start)
	if r.clean {
		r.synced.Store(r.end)
	} else {
		r.synced.Store(min(r.point, r.end))
	}
	if r.clean || r.cfg.Load().FlushMessages > 1 {
		r.Log.high.store(end)
	} else {
		r.Log.high.store(r.high)
	}
}
