package logdir

import (
	"bytes"
	"io"

	"gregor/log"
	"gregor/log/batch"
)

// twin is one of several logs of one partition.
type twin struct {
	dir   *Dir
	p     *Partition
	epoch int32
	end   int64
}

// better says that a is more likely than b to be the newest: a move between directories ends with two logs that are the same, and only one of them goes on.
func (a *twin) better(b *twin) bool {
	switch {
	case (a.p.store == nil) != (b.p.store == nil):
		return a.p.store != nil
	case a.epoch != b.epoch:
		return a.epoch > b.epoch
	}
	return a.end > b.end
}

// chooseTwins keeps one log of each partition that is in several directories, as a crash at the end of a move leaves it. The others are
// deleted, unless they could not be opened or have records of their own: a directory that was not in log.dirs for a while comes back with those.
func (s *Set) chooseTwins() {
	dirs := s.live()
	if len(dirs) < 2 {
		return
	}
	best := make(map[TopicPartition]*twin)
	for _, d := range dirs {
		for _, p := range d.Partitions() {
			t := newTwin(d, p)
			other := best[p.id]
			if other == nil {
				best[p.id] = t
				continue
			}
			if t.better(other) {
				t, other = other, t
				best[p.id] = other
			}
			s.dropTwin(t, other)
		}
	}
}

func newTwin(d *Dir, p *Partition) *twin {
	t := &twin{dir: d, p: p, epoch: -1, end: -1}
	if l := p.Log(); l != nil {
		t.epoch, _ = l.LatestEpoch()
		t.end = l.EndOffset()
	}
	return t
}

func (s *Set) dropTwin(t, kept *twin) {
	logger := s.opts.Logger.With("partition", t.p.id.String(), "kept", kept.dir.Path(), "end", kept.end, "other", t.dir.Path(), "other end", t.end)
	if t.p.store == nil {
		logger.Warn("partition is in two log directories, one of which cannot be read and is left alone", "error", t.p.err)
		t.dir.unlist(t.p)
		return
	}
	if !t.within(kept) {
		logger.Error("partition is in two log directories with different records: the other is left alone and not served; stop the broker and move away the one not wanted")
		t.dir.unlist(t.p)
		return
	}
	logger.Warn("partition is in two log directories, as after a move that did not end: the older log is deleted")
	if err := t.dir.Delete(t.p.id); err != nil {
		logger.Error("the older log could not be deleted, the next start tries again", "error", err)
	}
}

// within says that kept has all that t has: the last batch of t, with its checksum, is in kept at the same offset. What cannot be read is not there.
func (t *twin) within(kept *twin) bool {
	own, other := t.p.Log(), kept.p.Log()
	if own == nil || own.StartOffset() == t.end {
		return true // nothing is in it
	}
	if other == nil {
		return false
	}
	a, err := firstBytes(own, t.end-1)
	if err != nil || len(a) == 0 {
		return false
	}
	b, err := firstBytes(other, t.end-1)
	return err == nil && bytes.Equal(a, b)
}

// firstBytes are those of the batch that holds offset, up to the end of the longest header; every format has its checksum among them.
func firstBytes(l *log.Log, offset int64) ([]byte, error) {
	s, err := l.Read(offset, batch.HeaderSize, log.ToLogEnd, true)
	if err != nil || s.Size == 0 {
		return nil, err
	}
	defer s.Release()
	b := make([]byte, min(s.Size, s.FirstBatch, batch.HeaderSize))
	if _, err := s.File.ReadAt(b, s.Pos); err != nil && err != io.EOF {
		return nil, err
	}
	return b, nil
}
