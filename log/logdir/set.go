package logdir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gregor/log"
	"gregor/log/commit"
	"gregor/log/vfs"
)

// Set is the log directories of one broker (log.dirs). One that cannot be used takes only its own partitions away; the first, which holds
// the broker's metadata, must be usable. All methods may be called concurrently.
type Set struct {
	opts    SetOptions
	members []*member // in the order of log.dirs; does not change after OpenSet

	handles    *log.HandleCache
	committers []*commit.Committer // one for each device

	moves   moves
	placing sync.Mutex // held by Create, so that partitions made at a time are counted; above all locks of a Dir
}

// member is a directory of a Set: dir, or why there is none.
type member struct {
	path string
	dir  *Dir
	err  error
}

// SetParallel changes Options.Parallel of every directory.
func (s *Set) SetParallel(n int) {
	for _, d := range s.live() {
		d.SetParallel(n)
	}
}

// live are the directories that are in use.
func (s *Set) live() []*Dir {
	var dirs []*Dir
	for _, m := range s.members {
		if m.dir != nil {
			dirs = append(dirs, m.dir)
		}
	}
	return dirs
}

// first is the directory that holds the metadata.
func (s *Set) first() *Dir { return s.members[0].dir }

// BrokerID and ClusterID are those of meta.properties, the same in all.
func (s *Set) BrokerID() int32 { return s.first().BrokerID() }

// ClusterID: see BrokerID.
func (s *Set) ClusterID() string { return s.first().ClusterID() }

// WasClean says that the last stop was clean in all directories; one without a partition counts as clean if it is new.
func (s *Set) WasClean() bool {
	for _, m := range s.members {
		if m.dir == nil || !m.dir.clean && (m == s.members[0] || !m.dir.fresh) {
			return false
		}
	}
	return true
}

// Offline joins why directories are not in use, nil if all are.
func (s *Set) Offline() error {
	var errs []error
	for _, m := range s.members {
		if m.dir == nil {
			errs = append(errs, fmt.Errorf("log directory %s is offline: %w", m.path, m.err))
		}
	}
	return errors.Join(errs...)
}

// Get finds a partition.
func (s *Set) Get(tp TopicPartition) (*Partition, bool) {
	p, _ := s.find(tp)
	return p, p != nil
}

func (s *Set) find(tp TopicPartition) (*Partition, *Dir) {
	for _, d := range s.live() {
		if p, ok := d.Get(tp); ok {
			return p, d
		}
	}
	return nil, nil
}

// Partitions returns all partitions, sorted by topic and number.
func (s *Set) Partitions() []*Partition {
	var all []*Partition
	for _, d := range s.live() {
		all = append(all, d.Partitions()...)
	}
	slices.SortFunc(all, func(a, b *Partition) int { return compareNames(a.id, b.id) })
	return all
}

// SetTopicID is Dir.SetTopicID.
func (s *Set) SetTopicID(p *Partition, id [16]byte) error {
	_, d := s.find(p.id)
	if d == nil {
		return fmt.Errorf("%w: %s", ErrNotFound, p.id)
	}
	return d.SetTopicID(p, id)
}

// each calls do for every directory in use and joins the errors.
func (s *Set) each(do func(*Dir) error) error {
	var errs []error
	for _, d := range s.live() {
		errs = append(errs, do(d))
	}
	return errors.Join(errs...)
}

// CheckpointStarts is Dir.CheckpointStarts of all.
func (s *Set) CheckpointStarts() error { return s.each((*Dir).CheckpointStarts) }

// Checkpoint is Dir.Checkpoint of all.
func (s *Set) Checkpoint() error { return s.each((*Dir).Checkpoint) }

// Sync is Dir.Sync of all.
func (s *Set) Sync(ctx context.Context) error {
	var errs []error
	for _, c := range s.committers {
		errs = append(errs, c.Flush(ctx))
	}
	return errors.Join(errs...)
}

// CommitStats adds up the counters of all committers.
func (s *Set) CommitStats() (sum commit.Stats) {
	for _, c := range s.committers {
		sum = sum.Plus(c.Stats())
	}
	return sum
}

// Close closes all directories, each as Dir.Close does.
func (s *Set) Close() error {
	s.moves.stop()
	err := s.each((*Dir).Close)
	s.drop()
	return err
}

// Abandon lets go of everything without writing, as a killed process would.
func (s *Set) Abandon() {
	s.moves.stop()
	for _, d := range s.live() {
		d.Abandon()
	}
	s.drop()
}

// drop closes what the directories shared.
func (s *Set) drop() {
	for _, c := range s.committers {
		c.Close()
	}
	if s.handles != nil {
		s.handles.Close()
	}
}

// Status is what there is to say of one directory.
type Status struct {
	Path string
	// Err says why it is not in use, nil if it is. The rest is there only then.
	Err        error
	Usage      vfs.Usage
	Partitions []*Partition
	Futures    []Future
}

// Status describes all directories, in the order of log.dirs.
func (s *Set) Status() []Status {
	all := make([]Status, len(s.members))
	for i, m := range s.members {
		st := &all[i]
		st.Path, st.Err = m.path, m.err
		if m.dir == nil {
			continue
		}
		if st.Usage, st.Err = s.opts.FS.Usage(m.path); st.Err != nil {
			continue
		}
		st.Partitions, st.Futures = m.dir.Partitions(), s.futuresIn(m.dir)
	}
	return all
}

// Create makes partitions, all or none, each in the directory with the fewest. One that fails is passed over for the others.
func (s *Set) Create(specs ...Spec) ([]*Partition, error) {
	s.placing.Lock()
	defer s.placing.Unlock()
	for _, spec := range specs {
		if p, d := s.find(spec.TopicPartition); p != nil {
			return nil, fmt.Errorf("%w: %s in %s", ErrExists, spec.TopicPartition, d.Path())
		}
	}
	made := make([]*Partition, len(specs))
	failed := make(map[*Dir]error)
	for {
		groups := s.place(made, failed)
		if groups == nil {
			return made, nil
		}
		for d, group := range groups {
			some := make([]Spec, len(group))
			for i, at := range group {
				some[i] = specs[at]
			}
			parts, err := d.Create(some...)
			if err != nil {
				failed[d] = err
				continue
			}
			for i, at := range group {
				made[at] = parts[i]
			}
		}
		if err := s.giveUp(made, failed); err != nil {
			return nil, err
		}
	}
}

// giveUp takes back what was made and returns the errors when no directory is left to try; nil as long as there is one.
func (s *Set) giveUp(made []*Partition, failed map[*Dir]error) error {
	var errs []error
	missing := slices.Contains(made, nil)
	for _, d := range s.live() {
		err, tried := failed[d]
		if !tried && missing || !missing {
			return nil
		}
		errs = append(errs, err)
	}
	for _, p := range made {
		if p != nil {
			if _, d := s.find(p.id); d != nil {
				errs = append(errs, d.Delete(p.id))
			}
		}
	}
	return errors.Join(errs...)
}

// place gives the specs without a partition to the directories that did not fail, nil when there are none: those whose logs all work first,
// then the emptiest, then the order of log.dirs.
func (s *Set) place(made []*Partition, failed map[*Dir]error) map[*Dir][]int {
	type choice struct {
		dir    *Dir
		sick   int // partitions whose logs failed
		number int
	}
	var choices []*choice
	for _, d := range s.live() {
		if failed[d] == nil {
			c := &choice{dir: d}
			c.number, c.sick = d.count()
			c.sick = min(c.sick, 1)
			choices = append(choices, c)
		}
	}
	var groups map[*Dir][]int
	for i, p := range made {
		if p != nil {
			continue
		}
		best := slices.MinFunc(choices, func(a, b *choice) int { return cmp.Or(cmp.Compare(a.sick, b.sick), cmp.Compare(a.number, b.number)) })
		best.number++
		if groups == nil {
			groups = make(map[*Dir][]int)
		}
		groups[best.dir] = append(groups[best.dir], i)
	}
	return groups
}

// count is the number of partitions, and of those that went offline while in use.
func (d *Dir) count() (number, sick int) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, p := range d.mu.partitions {
		if l := p.Log(); l != nil && l.Err() != nil {
			sick++
		}
	}
	return len(d.mu.partitions), sick
}

// Delete takes partitions away, as Dir.Delete does.
func (s *Set) Delete(tps ...TopicPartition) error {
	s.moves.changing.Lock()
	defer s.moves.changing.Unlock()
	s.endMoves(tps)
	groups := make(map[*Dir][]TopicPartition)
	var errs []error
	for _, tp := range tps {
		_, d := s.find(tp)
		if d == nil {
			errs = append(errs, fmt.Errorf("%w: %s", ErrNotFound, tp))
			continue
		}
		groups[d] = append(groups[d], tp)
	}
	for _, d := range s.live() {
		if group := groups[d]; group != nil {
			errs = append(errs, d.Delete(group...))
		}
	}
	return errors.Join(errs...)
}
