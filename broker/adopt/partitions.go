package adopt

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gregor/log"
	"gregor/log/batch"
	"gregor/log/logdir"
	"gregor/log/producer"
	"gregor/log/vfs"
)

// maxSnapshot bounds a producer snapshot in bytes: a million producers.
const maxSnapshot = 64 << 20

// segment is one segment file of a partition.
type segment struct {
	name string
	base int64
	size int64
}

// readPartitions looks at the files of every partition.
func (in *inspection) readPartitions() error {
	for i := range in.plan.Topics {
		t := &in.plan.Topics[i]
		for n := range t.Partitions {
			if err := in.ctx.Err(); err != nil {
				return err
			}
			p := &t.Partitions[n]
			if p.Path == "" {
				continue
			}
			s := in.surveyOf(p.Path)
			if err := in.readPartition(p, logdir.TopicPartition{Topic: t.Name, Partition: int32(n)}, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *inspection) surveyOf(path string) *logdir.Survey {
	for _, s := range in.surveys {
		if s.Path == filepath.Dir(path) {
			return s
		}
	}
	return &logdir.Survey{}
}

func (in *inspection) readPartition(p *Partition, tp logdir.TopicPartition, s *logdir.Survey) error {
	segments, snapshots, err := in.list(p.Path)
	if err != nil {
		return err
	}
	p.Segments, p.Start = len(segments), segments[0].base
	if start, ok := s.LogStarts[tp]; ok {
		if start < p.Start && start >= 0 && len(segments) > 0 && segments[0].base > start {
			in.plan.Notes = append(in.plan.Notes, fmt.Sprintf("%s begins at offset %d, its log start was %d: what is between was tiered or is lost", p.Path, p.Start, start))
		}
		p.Start = max(p.Start, start)
	}
	if err := in.epochs(p); err != nil {
		return err
	}
	for _, name := range snapshots {
		in.producers(filepath.Join(p.Path, name))
	}
	for i, seg := range segments {
		p.Bytes += seg.size
		if err := in.readSegment(p, tp, s, seg, i == len(segments)-1); err != nil {
			return err
		}
	}
	return nil
}

// list finds the segments, of which there is one at least, and the producer snapshots of a partition.
func (in *inspection) list(dir string) (segments []segment, snapshots []string, err error) {
	entries, err := in.FS.List(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("listing a partition: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		digits, ok := strings.CutSuffix(name, ".log")
		base, bad := strconv.ParseInt(digits, 10, 64)
		switch {
		case ok && len(digits) == 20 && bad == nil:
			info, err := in.FS.Stat(filepath.Join(dir, name))
			if err != nil {
				return nil, nil, err
			}
			segments = append(segments, segment{filepath.Join(dir, name), base, info.Size()})
		case strings.HasSuffix(name, ".snapshot"):
			snapshots = append(snapshots, name)
		case strings.HasSuffix(name, ".swap"):
			in.plan.Notes = append(in.plan.Notes, filepath.Join(dir, name)+" is of a compaction that was not finished; it will be, or undone, at the start")
		}
	}
	if len(segments) == 0 {
		return nil, nil, fmt.Errorf("%s has no segment any more", dir)
	}
	slices.SortFunc(segments, func(a, b segment) int { return strings.Compare(a.name, b.name) })
	return segments, snapshots, nil
}

// epochs learns the newest leader epoch from the checkpoint.
func (in *inspection) epochs(p *Partition) error {
	list, err := log.SurveyEpochs(in.FS, p.Path)
	if err != nil {
		in.plan.Notes = append(in.plan.Notes, fmt.Sprintf("leader epochs of %s are read from its batches: %v", p.Path, err))
	}
	if n := len(list); n > 0 {
		p.LeaderEpoch = max(p.LeaderEpoch, list[n-1].Epoch)
	}
	return nil
}

// producers learns producer ids from a snapshot. One that does not parse is a hint less.
func (in *inspection) producers(name string) {
	b, err := vfs.ReadFile(in.FS, name, maxSnapshot)
	if err != nil {
		return
	}
	entries, err := producer.DecodeSnapshot(b)
	if err != nil {
		return
	}
	for _, e := range entries {
		in.maxID = max(in.maxID, e.ProducerID)
	}
}

// readSegment looks at a segment's first batch, or at all of it.
func (in *inspection) readSegment(p *Partition, tp logdir.TopicPartition, s *logdir.Survey, seg segment, last bool) error {
	f, err := in.FS.OpenRead(seg.name)
	if err != nil {
		return err
	}
	defer f.Close()
	first := true
	p.End = -1
	next := seg.base
	end, err := log.SurveySegment(f, seg.name, 0, seg.size, in.Full, func(pos int64, e batch.Entry) error {
		if first {
			p.Formats[e.Magic]++
			first = false
		}
		if e.LastOffset < next {
			return &log.CorruptError{File: seg.name, Pos: pos, Err: fmt.Errorf("offset %d is below %d", e.LastOffset, next)}
		}
		next = e.LastOffset + 1
		p.LeaderEpoch = max(p.LeaderEpoch, e.LeaderEpoch)
		if !in.Full {
			return log.ErrStop
		}
		if e.Magic == 2 {
			return in.producerOf(f, pos)
		}
		return nil
	})
	var damage *log.CorruptError
	if err != nil && !errors.As(err, &damage) {
		return err
	}
	if in.Full && last {
		p.End = next
	}
	if damage != nil {
		in.damaged(damage, next, s.Clean, s.RecoveryPoints[tp], seg.size-end)
	}
	return nil
}

// producerOf learns the producer id of a batch.
func (in *inspection) producerOf(f vfs.File, pos int64) error {
	head := make([]byte, batch.HeaderSize)
	if _, err := f.ReadAt(head, pos); err != nil {
		return err
	}
	h, err := batch.ReadHeader(head)
	if err == nil {
		in.maxID = max(in.maxID, h.ProducerID)
	}
	return nil
}

// damaged says what becomes of damage in a segment. What Kafka's recovery would cut off after an unclean stop is cut off here too.
func (in *inspection) damaged(d *log.CorruptError, offset int64, clean bool, recoveryPoint, left int64) {
	if !clean && offset >= recoveryPoint {
		in.plan.Notes = append(in.plan.Notes, fmt.Sprintf("%s: the last %d bytes, from offset %d on, were being written at an unclean stop and will be cut off (%v)", d.File, left, offset, d.Err))
		return
	}
	in.plan.block(fmt.Sprintf("%v (offset %d, below what was synced); restore the file from a replica or a backup, or move the partition's directory away", d, offset))
}
