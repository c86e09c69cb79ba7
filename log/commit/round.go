package commit

import (
	"errors"
	"fmt"
	"time"

	"gregor/log/vfs"
)

// round is what one sync covers; its memory is used again.
type round struct {
	sources []Source
	items   []item
	files   int
}

type item struct {
	source Source
	target Target
	err    error
}

func (r *round) reset() {
	clear(r.sources)
	clear(r.items)
	r.sources, r.items, r.files = r.sources[:0], r.items[:0], 0
}

// sync makes the round's sources durable and tells them. c.round.sources is filled.
func (c *Committer) sync() {
	for _, s := range c.round.sources {
		target, ok := s.BeginSync()
		if !ok {
			continue
		}
		c.round.items = append(c.round.items, item{source: s, target: target})
		c.round.files += len(target.Files)
	}
	if len(c.round.items) == 0 {
		return
	}
	c.stats.rounds.Add(1)
	c.stats.sources.Add(uint64(len(c.round.items)))
	c.stats.files.Add(uint64(c.round.files))
	if c.round.files >= syncAllFrom && !c.noAll && !c.avoided() {
		if c.syncAll() {
			return
		}
	}
	c.syncFiles()
}

// fileTime is what the round would take without syncfs.
func (c *Committer) fileTime() time.Duration { return time.Duration(c.round.files) * c.perFile }

// avoided says that syncfs was slow just now and would be slower for this round than its files by themselves.
func (c *Committer) avoided() bool {
	return c.slowAll > c.fileTime() && time.Now().Before(c.avoidUntil)
}

// syncAll covers the round by one syncfs. False means that nothing was synced since there is no such call here.
func (c *Committer) syncAll() bool {
	start := time.Now()
	err := c.fsys.SyncAll(c.dir)
	took := time.Since(start)
	if errors.Is(err, vfs.ErrUnsupported) {
		c.noAll = true
		c.log.Debug("no syncfs here, syncing each file by itself", "dir", c.dir, "error", err)
		return false
	}
	c.stats.all.record(took, err)
	if err != nil {
		err = fmt.Errorf("syncing the file system of %s: %w", c.dir, err)
		c.failed(err)
	} else {
		c.judge(took)
	}
	for i := range c.round.items {
		it := &c.round.items[i]
		it.source.EndSync(it.target, err)
	}
	return true
}

// judge stops using syncfs for small rounds for a while when it did far more work than the round's.
func (c *Committer) judge(took time.Duration) {
	if took < slowFloor || took < slowFactor*c.fileTime() {
		c.slowAll = 0
		return
	}
	c.slowAll = took
	pause := min(slowPause*took, maxPause)
	c.avoidUntil = time.Now().Add(pause)
	c.stats.avoided.Add(1)
	c.log.Debug("syncfs took long for so few files, small rounds sync each by itself for a while",
		"dir", c.dir, "took", took, "files", c.round.files, "pause", pause)
}

// learn keeps what a file costs when the files of a round are synced by themselves.
func (c *Committer) learn(took time.Duration) {
	if c.round.files > 0 {
		c.perFile = (3*c.perFile + took/time.Duration(c.round.files)) / 4
	}
}

// failed gives up syncfs: see the package comment.
func (c *Committer) failed(err error) {
	c.noAll = true
	c.log.Error("sync failed, the bytes may be lost", "dir", c.dir, "error", err)
}

// syncFiles syncs each file by itself, several sources at a time.
func (c *Committer) syncFiles() {
	start := time.Now()
	items := c.round.items
	if len(items) == 1 {
		c.syncItem(&items[0])
		c.learn(time.Since(start))
		c.endItem(&items[0])
		return
	}
	next := make(chan *item, len(items))
	for i := range items {
		next <- &items[i]
	}
	close(next)
	ended := make(chan *item, len(items))
	for range min(maxParallel, len(items)) {
		go func() {
			for it := range next {
				c.syncItem(it)
				ended <- it
			}
		}()
	}
	for range items {
		c.endItem(<-ended)
	}
	c.learn(time.Since(start))
}

// syncItem syncs the files of one source in order, stopping at the first error: what comes after would leave a hole.
func (c *Committer) syncItem(it *item) {
	for _, f := range it.target.Files {
		start := time.Now()
		err := f.Sync()
		c.stats.file.record(time.Since(start), err)
		if err != nil {
			it.err = err
			return
		}
	}
}

func (c *Committer) endItem(it *item) {
	if it.err != nil {
		c.failed(it.err)
	}
	it.source.EndSync(it.target, it.err)
}
