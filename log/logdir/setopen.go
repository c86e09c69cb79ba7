package logdir

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"gregor/log"
	"gregor/log/commit"
	"gregor/log/vfs"
)

// SetOptions say which directories are opened, and how.
type SetOptions struct {
	// Options are for each of them; its Dir, Handles, Committer and Locked are not used.
	Options
	// Dirs are the directories, the first of which holds the broker's metadata.
	Dirs []string
	// Locked is called when all are locked, before a log is opened. nil: nothing to do.
	Locked func(*Set) error
	// Expected lists the partitions that must be in one of the directories; called after Locked. nil: none.
	Expected func() []TopicPartition
}

// OpenSet takes the directories and opens all logs in them. One other than the first that cannot be used stays offline; it is an error if one
// belongs to another broker, or is in use by another process.
func OpenSet(o SetOptions) (*Set, error) {
	s := &Set{opts: o}
	s.moves.slot, s.moves.byID = make(chan struct{}, 1), make(map[TopicPartition]*move)
	s.opts.Options = o.withDefaults()
	err := s.claimAll()
	if err == nil {
		err = s.first().format()
	}
	if err == nil && o.Locked != nil {
		err = o.Locked(s)
	}
	if err == nil {
		s.formatOthers()
		s.share()
		err = s.openAll()
	}
	if err != nil {
		s.Abandon()
		return nil, advise(err)
	}
	s.chooseTwins()
	s.resume()
	return s, nil
}

// fatal says that an error is not one of a single directory.
func fatal(err error) bool {
	return errors.Is(err, ErrIdentity) || errors.Is(err, ErrInUse) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// lose puts a directory out of use.
func (s *Set) lose(m *member, err error) {
	m.dir, m.err = nil, err
	s.opts.Logger.Error("log directory is offline: the partitions in it cannot be used", "dir", m.path, "error", err)
}

func (s *Set) claimAll() error {
	id := identity{BrokerID: s.opts.BrokerID, ClusterID: s.opts.ClusterID}
	for i, path := range s.opts.Dirs {
		m := &member{path: path}
		s.members = append(s.members, m)
		o := s.opts.Options
		o.Dir, o.BrokerID, o.ClusterID, o.Locked = path, id.BrokerID, id.ClusterID, nil
		var err error
		if m.dir, err = claim(o); err == nil {
			id = m.dir.id
			continue
		}
		if i == 0 || fatal(err) {
			return err
		}
		s.lose(m, err)
	}
	return nil
}

// formatOthers writes whose they are into the directories that are new. If partitions are nowhere to be found, a new directory may be where a disk is not
// mounted: it stays as it is, out of use, and the partitions are not begun anew.
func (s *Set) formatOthers() {
	missing := s.missing()
	for _, m := range s.members[1:] {
		if m.dir == nil {
			continue
		}
		var err error
		if m.dir.fresh && len(missing) > 0 {
			err = fmt.Errorf("it is new, and %d partitions, such as %s, are in no directory: is its disk mounted? If the data is lost for good, delete these topics "+
				"or start once without this directory", len(missing), missing[0])
		} else {
			err = m.dir.format()
		}
		if err != nil {
			m.dir.Abandon()
			s.lose(m, advise(err))
		}
	}
}

// missing are the expected partitions that no directory has; it is not asked when no directory is new.
func (s *Set) missing() (missing []TopicPartition) {
	news := false
	for _, m := range s.members[1:] {
		news = news || m.dir != nil && m.dir.fresh
	}
	if !news || s.opts.Expected == nil {
		return nil
	}
	have := make(map[TopicPartition]struct{})
	for _, d := range s.live() {
		entries, err := d.opts.FS.List(d.opts.Dir)
		if err != nil {
			continue // it will be offline soon
		}
		for _, e := range entries {
			if tp, kind := parseName(e.Name()); kind == live {
				have[tp] = struct{}{}
			}
		}
	}
	for _, tp := range s.opts.Expected() {
		if _, ok := have[tp]; !ok {
			missing = append(missing, tp)
		}
	}
	return missing
}

// share makes what directories share: read handles, and a committer for each device.
func (s *Set) share() {
	s.handles = log.NewHandleCache(s.opts.FS, DefaultIdleHandles)
	byDevice := make(map[uint64]*commit.Committer)
	for _, d := range s.live() {
		d.opts.Handles = s.handles
		device, err := uint64(0), error(vfs.ErrUnsupported)
		if t, ok := s.opts.FS.(vfs.DeviceTeller); ok {
			device, err = t.Device(d.opts.Dir)
		}
		c := byDevice[device]
		if c == nil || err != nil {
			c = commit.New(s.opts.FS, d.opts.Dir, s.opts.Logger)
			s.committers = append(s.committers, c)
		}
		if err == nil {
			byDevice[device] = c
		}
		d.opts.Committer = c
	}
}

// openAll opens the logs of all directories at a time.
func (s *Set) openAll() error {
	errs := make([]error, len(s.members))
	var wg sync.WaitGroup
	for i, m := range s.members {
		if m.dir != nil {
			wg.Go(func() { errs[i] = m.dir.openLogs() })
		}
	}
	wg.Wait()
	for i, m := range s.members {
		if errs[i] == nil {
			continue
		}
		if i == 0 || fatal(errs[i]) {
			return errs[i]
		}
		m.dir.Abandon()
		s.lose(m, advise(errs[i]))
	}
	return nil
}
