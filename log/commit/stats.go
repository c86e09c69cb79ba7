package commit

import (
	"sync/atomic"
	"time"
)

// Stats counts since New.
type Stats struct {
	Rounds  uint64 // times that dirty sources were taken together
	Sources uint64 // sources in all rounds; Sources/Rounds is how well syncs are shared
	Files   uint64 // files in all rounds
	// Avoided counts the times that syncfs was given up for a while because another writer made it slow.
	Avoided uint64
	File    Kind // fdatasync calls
	All     Kind // syncfs calls
}

// Kind counts one kind of sync.
type Kind struct {
	Count  uint64
	Errors uint64
	Total  time.Duration
	Max    time.Duration
}

// Plus adds what another committer counted.
func (s Stats) Plus(o Stats) Stats {
	return Stats{Rounds: s.Rounds + o.Rounds, Sources: s.Sources + o.Sources, Files: s.Files + o.Files, Avoided: s.Avoided + o.Avoided,
		File: s.File.plus(o.File), All: s.All.plus(o.All)}
}

func (k Kind) plus(o Kind) Kind {
	return Kind{Count: k.Count + o.Count, Errors: k.Errors + o.Errors, Total: k.Total + o.Total, Max: max(k.Max, o.Max)}
}

// counters are the atomics behind Stats.
type counters struct {
	rounds, sources, files, avoided atomic.Uint64
	file, all                       kindCounters
}

type kindCounters struct {
	count, errors, nanos, max atomic.Uint64
}

func (k *kindCounters) record(took time.Duration, err error) {
	n := uint64(max(took, 0))
	k.nanos.Add(n)
	k.count.Add(1)
	if err != nil {
		k.errors.Add(1)
	}
	for {
		old := k.max.Load()
		if n <= old || k.max.CompareAndSwap(old, n) {
			return
		}
	}
}

func (k *kindCounters) kind() Kind {
	return Kind{
		Count: k.count.Load(), Errors: k.errors.Load(),
		Total: time.Duration(k.nanos.Load()), Max: time.Duration(k.max.Load()),
	}
}

// Stats returns the counters; each is exact, together they may be a round apart.
func (c *Committer) Stats() Stats {
	return Stats{
		Rounds: c.stats.rounds.Load(), Sources: c.stats.sources.Load(), Files: c.stats.files.Load(),
		Avoided: c.stats.avoided.Load(), File: c.stats.file.kind(), All: c.stats.all.kind(),
	}
}
