package work

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gregor/compat/bench/raw"
)

const (
	groupCount     = 1000
	groupMembers   = 3
	joinAtOnce     = 250 // groups whose members are connected at the same time
	groupConns     = 4
	groupInFlight  = 16
	commitRate     = 2000 // a second
	groupPartition = 4    // partitions of the topic
)

// groups1000 is heartbeats and commits of many groups.
func groups1000(e *Env) (Values, error) {
	return e.withTopic(e.topic(), groupPartition, func(control *raw.Conn) (Values, error) {
		groups, err := e.joinAll()
		if err != nil {
			return nil, err
		}
		v, err := e.groupLoads(groups)
		for _, members := range groups { // so that nothing of them runs on in the workloads that follow
			err = errors.Join(err, control.Leave(members))
		}
		return v, err
	})
}

// joinAll makes the groups, some hundred at a time.
func (e *Env) joinAll() ([][]raw.Member, error) {
	groups := make([][]raw.Member, groupCount)
	errs := make([]error, groupCount)
	for from := 0; from < groupCount; from += joinAtOnce {
		var all sync.WaitGroup
		for i := from; i < from+joinAtOnce; i++ {
			all.Go(func() { groups[i], errs[i] = e.joinGroup(fmt.Sprintf("%s-%d", e.topic(), i)) })
		}
		all.Wait()
	}
	return groups, errors.Join(errs...)
}

func (e *Env) joinGroup(name string) ([]raw.Member, error) {
	var conns []*raw.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range groupMembers {
		c, err := raw.Dial(e.Broker.Addr)
		if err != nil {
			return nil, err
		}
		conns = append(conns, c)
	}
	if err := conns[0].FindCoordinator(name); err != nil {
		return nil, err
	}
	return raw.JoinTogether(name, e.topic(), conns)
}

func (e *Env) groupLoads(groups [][]raw.Member) (Values, error) {
	var heartbeats, commits [][]byte
	for i, members := range groups {
		for _, m := range members {
			heartbeats = append(heartbeats, raw.HeartbeatRequest(m))
		}
		commits = append(commits, raw.CommitRequest(members[0], e.topic(), int32(i%groupPartition), int64(i)))
	}
	beat, err := e.groupLoad(heartbeats, raw.CheckHeartbeat)
	if err != nil {
		return nil, fmt.Errorf("heartbeats: %w", err)
	}
	commit, err := e.groupLoad(commits, raw.CheckCommit)
	if err != nil {
		return nil, fmt.Errorf("commits: %w", err)
	}
	v, err := e.commitLatency(commits)
	if err != nil {
		return nil, fmt.Errorf("commits at a fixed rate: %w", err)
	}
	v["groups-1000/heartbeats"], v["groups-1000/heartbeat-cpu"] = perSecond(beat.Count, beat.Wall), microsecondsEach(beat)
	v["groups-1000/commits"], v["groups-1000/commit-cpu"] = perSecond(commit.Count, commit.Wall), microsecondsEach(commit)
	return v, nil
}

func microsecondsEach(u Usage) float64 {
	return float64(u.Broker.Microseconds()) / float64(max(u.Count, 1))
}

// groupLoad sends requests as fast as they are answered; each connection has its share of them.
func (e *Env) groupLoad(requests [][]byte, check func([]byte) error) (Usage, error) {
	var answers atomic.Int64
	var loads []func(*atomic.Bool) error
	share := len(requests) / groupConns
	for i := range groupConns {
		c, err := raw.Dial(e.Broker.Addr)
		if err != nil {
			return Usage{}, err
		}
		defer c.Close()
		p := &raw.Pipeline{Conn: c, Cycle: raw.NewCycle(groupInFlight, requests[i*share:(i+1)*share]...), InFlight: groupInFlight, Check: check, Answers: &answers}
		loads = append(loads, p.Run)
	}
	return e.steady(&answers, loads...)
}

// commitLatency is the time from when a commit should be sent to when its answer is here.
func (e *Env) commitLatency(commits [][]byte) (Values, error) {
	c, err := raw.Dial(e.Broker.Addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	res, err := e.openLoop(&raw.OpenLoop{
		Conn: c, Cycle: raw.NewCycle(64, commits...), Interval: time.Second / commitRate, Warm: int(e.Warm.Seconds() * commitRate),
		Count: int(e.Window.Seconds() * commitRate), Check: raw.CheckCommit, Patience: patience,
	}, nil)
	if err != nil {
		return nil, err
	}
	return quantiles("groups-1000/commit", res.Latency), nil
}
