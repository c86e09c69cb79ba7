package adopt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"gregor/broker/kraft"
	"gregor/log/logdir"
	"gregor/log/vfs"
)

// inspection is Inspect at work.
type inspection struct {
	Options
	ctx     context.Context
	plan    *Plan
	surveys []*logdir.Survey
	image   *kraft.Image // nil with ZooKeeper
	// found are the directories of each topic's partitions.
	found map[string]map[int32]place
	maxID int64 // largest producer id seen
}

// place is where a partition is.
type place struct {
	logdir.Found
	survey *logdir.Survey
}

// Empty reports if there is nothing to take over in the directories: they do not exist, or have no log.
func Empty(o Options) (bool, error) {
	for _, dir := range o.Dirs {
		s, err := logdir.Look(o.FS, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		if len(s.Partitions) > 0 || slices.ContainsFunc(s.Others, func(f logdir.Other) bool { return f.Kind == "metadata" }) {
			return false, nil
		}
	}
	return true, nil
}

// Inspect looks at the directories. An error says that they cannot be looked at; what stands in the way of taking them over is in the plan.
func Inspect(ctx context.Context, o Options) (*Plan, error) {
	in := &inspection{Options: o, ctx: ctx, plan: &Plan{NodeID: -1}, found: map[string]map[int32]place{}, maxID: -1}
	if !o.Locked {
		release, err := lock(o, logdir.LockForLook)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	for _, step := range []func() error{in.lookAtDirs, in.readMetadata, in.planTopics, in.readPartitions, in.replayInternal, in.finish} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := step(); err != nil {
			return nil, err
		}
	}
	return in.plan, nil
}

// Lock takes the locks of the directories, which must exist, so that no broker changes them.
func Lock(o Options) (release func(), err error) { return lock(o, logdir.Lock) }

func lock(o Options, take func(vfs.FS, string) (io.Closer, error)) (release func(), err error) {
	var locks []io.Closer
	release = func() {
		for _, l := range locks {
			_ = l.Close() // nothing was written through it
		}
	}
	for _, dir := range o.Dirs {
		if info, err := o.FS.Stat(dir); err != nil || !info.IsDir() {
			release()
			return nil, errors.Join(fmt.Errorf("%s is not a directory; name the log.dirs of a stopped Kafka", dir), err)
		}
		lock, err := take(o.FS, dir)
		if err != nil {
			release()
			return nil, err
		}
		locks = append(locks, lock)
	}
	return release, nil
}

// lookAtDirs reads who the directories belong to and finds the partitions.
func (in *inspection) lookAtDirs() error {
	for _, dir := range in.Dirs {
		s, err := logdir.Look(in.FS, dir)
		if err != nil {
			return err
		}
		in.surveys = append(in.surveys, s)
		in.plan.Dirs = append(in.plan.Dirs, Dir{Path: dir, Clean: s.Clean, Identity: s.Identity})
		in.identify(s)
		for _, bad := range s.Ignored {
			in.plan.Notes = append(in.plan.Notes, fmt.Sprintf("checkpoint is ignored, logs are recovered from their start: %v", bad))
		}
		if !s.Clean {
			in.plan.Notes = append(in.plan.Notes, dir+" was not stopped cleanly: what was not synced is checked at the start, as Kafka does; to have Kafka do it, start and stop Kafka once more")
		}
		in.others(s)
		for _, f := range s.Partitions {
			in.place(f, s)
		}
	}
	return nil
}

// identify compares a directory's identity with that of the others.
func (in *inspection) identify(s *logdir.Survey) {
	p, id := in.plan, s.Identity
	if id.Version < 0 {
		p.Notes = append(p.Notes, s.Path+" has no meta.properties: it is taken for this broker's")
		return
	}
	if id.ClusterID != "" {
		if p.ClusterID != "" && p.ClusterID != id.ClusterID {
			p.block(fmt.Sprintf("%s belongs to cluster %s, another of the directories to %s; name only directories of one broker", s.Path, id.ClusterID, p.ClusterID))
		}
		p.ClusterID = id.ClusterID
	}
	if id.BrokerID >= 0 {
		if p.NodeID >= 0 && p.NodeID != id.BrokerID {
			p.block(fmt.Sprintf("%s belongs to broker %d, another of the directories to %d; name only directories of one broker", s.Path, id.BrokerID, p.NodeID))
		}
		p.NodeID = id.BrokerID
	}
}

// others says what becomes of directories that hold no live log.
func (in *inspection) others(s *logdir.Survey) {
	p := in.plan
	for _, o := range s.Others {
		switch o.Kind {
		case "delete":
			p.Notes = append(p.Notes, o.Path+" was being deleted by Kafka and will be deleted")
		case "future":
			p.Lost = append(p.Lost, o.Path+": a move between log directories that was not finished; the partition stays where it was, remove the directory when you do not need it")
		case "stray":
			p.Lost = append(p.Lost, o.Path+": Kafka had put it aside as not assigned to the broker; it is left alone")
		case "foreign":
			p.Notes = append(p.Notes, o.Path+" is no partition and is left alone")
		}
	}
}

// place notes where a partition is. A directory without a log is no partition, whatever its name.
func (in *inspection) place(f logdir.Found, s *logdir.Survey) {
	if !in.hasLog(f.Path) {
		in.plan.Notes = append(in.plan.Notes, f.Path+" has no log in it and is left alone")
		return
	}
	if f.Err != nil {
		in.plan.block(fmt.Sprintf("%s/partition.metadata cannot be read (%v); restore it, or remove it if the topic's other partitions have one", f.Path, f.Err))
	}
	parts := in.found[f.Topic]
	if parts == nil {
		parts = map[int32]place{}
		in.found[f.Topic] = parts
	}
	if twin, ok := parts[f.Partition]; ok {
		in.plan.block(fmt.Sprintf("%s and %s are the same partition; move the older one away", twin.Path, f.Path))
		return
	}
	parts[f.Partition] = place{f, s}
}

func (in *inspection) hasLog(dir string) bool {
	entries, err := in.FS.List(dir)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		digits, ok := strings.CutSuffix(e.Name(), ".log")
		return ok && len(digits) == 20
	})
}

// readMetadata reads __cluster_metadata, which is in one of the directories of Kafka in KRaft mode.
func (in *inspection) readMetadata() error {
	p := in.plan
	for _, s := range in.surveys {
		if !slices.ContainsFunc(s.Others, func(o logdir.Other) bool { return o.Kind == "metadata" }) {
			continue
		}
		st, err := kraft.Read(in.FS, kraft.Path(s.Path))
		var damage *kraft.DamageError
		switch {
		case errors.As(err, &damage):
			p.block(fmt.Sprintf("%v; restore the file, or take the directory from another controller", damage))
			return nil
		case err != nil:
			return err
		}
		if in.image != nil {
			p.block(s.Path + " and another directory have " + kraft.DirName + "; name only directories of one broker")
		}
		if st.Torn > 0 {
			p.Notes = append(p.Notes, fmt.Sprintf("the last %d bytes of the metadata log are no whole batch and do not count, as after any unclean stop", st.Torn))
		}
		in.image, p.KRaft, p.MetadataVersion = st.Image, true, st.Image.Features["metadata.version"]
		in.planQuotas(st.Image.Quotas())
		in.lostSecurity(st.Image)
	}
	if in.image == nil && slices.ContainsFunc(in.surveys, func(s *logdir.Survey) bool { return s.Identity.Version == 1 }) {
		p.block("this is a broker of Kafka in KRaft mode, but " + kraft.DirName + " is in none of the directories; name the one of metadata.log.dir too")
	}
	return nil
}

// lostSecurity names what the metadata has and this broker does not take.
func (in *inspection) lostSecurity(m *kraft.Image) {
	for _, l := range []struct {
		n    int
		what string
	}{
		{m.ACLs(), "ACLs"}, {m.Credentials(), "SCRAM credentials"}, {m.Tokens(), "delegation tokens"},
	} {
		if l.n > 0 {
			in.plan.Lost = append(in.plan.Lost, fmt.Sprintf("%d %s: they stay in Kafka's metadata and are in force there again, not here", l.n, l.what))
		}
	}
	for of, keys := range m.Configs {
		for key, value := range keys {
			if of.Type != kraft.BrokerResource || of.Name == "" && key == "min.insync.replicas" && value == "1" { // what every new cluster has
				continue
			}
			in.plan.Lost = append(in.plan.Lost, fmt.Sprintf("broker setting %s (of broker %q) was changed at run time; put it into server.properties", key, of.Name))
		}
	}
	slices.Sort(in.plan.Lost)
}
