package crashfs

import "math/rand/v2"

// Policy is how kind a power cut is. All values are chances from 0 to 1.
type Policy struct {
	// Entry is the chance that an unsynced directory change survives.
	Entry float64
	// Whole is the chance that all unsynced changes of a file survive, Partial that some do; else none does.
	Whole, Partial float64
}

// LoseAll is the disk with what was synced and nothing else.
func LoseAll() Policy { return Policy{} }

// KeepAll is the disk after a killed process: the operating system writes everything in its own time.
func KeepAll() Policy { return Policy{Entry: 1, Whole: 1} }

// Random is a power cut.
func Random() Policy { return Policy{Entry: 0.5, Whole: 0.25, Partial: 0.5} }

// CrashClone returns the disk after a power cut now: everything in it is durable, no file is open, no lock is held. The
// file system itself goes on. Equal rng states and histories give equal disks.
func (f *FS) CrashClone(rng *rand.Rand, p Policy) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := cloner{rng: rng, policy: p, entries: f.survivingEntries(rng, p), done: make(map[*inode]*inode)}
	fresh := New()
	fresh.mu.root = c.dir(f.mu.root)
	return fresh
}

// survivingEntries returns the entries of the directories that a surviving, not yet durable operation changes.
func (f *FS) survivingEntries(rng *rand.Rand, p Policy) map[*inode]map[string]*inode {
	lost := newChain()
	entries := make(map[*inode]map[string]*inode)
	for i := range f.mu.pending {
		o := &f.mu.pending[i]
		survives := rng.Float64() < p.Entry
		if _, nonEmpty := lost.dirs[o.node]; !survives || lost.touches(o) || o.removed && nonEmpty {
			lost.add(o)
			continue
		}
		for _, ch := range o.changes {
			m := entries[ch.dir]
			if m == nil {
				m = make(map[string]*inode, len(ch.dir.durable)+1)
				for name, n := range ch.dir.durable {
					m[name] = n
				}
				entries[ch.dir] = m
			}
			if ch.to == nil {
				delete(m, ch.name)
			} else {
				m[ch.name] = ch.to
			}
		}
	}
	return entries
}

type cloner struct {
	rng     *rand.Rand
	policy  Policy
	entries map[*inode]map[string]*inode
	done    map[*inode]*inode
}

func (c *cloner) dir(n *inode) *inode {
	fresh := newDir()
	fresh.mtime = n.mtime
	c.done[n] = fresh
	from := n.durable
	if m, ok := c.entries[n]; ok {
		from = m
	}
	for _, name := range sortedNames(from) { // in order, so that the rng gives the same each time
		child := c.node(from[name])
		fresh.entries[name], fresh.durable[name] = child, child
	}
	return fresh
}

func (c *cloner) node(n *inode) *inode {
	if fresh, ok := c.done[n]; ok {
		return fresh
	}
	if n.isDir {
		return c.dir(n)
	}
	fresh := newFile()
	fresh.mtime = n.mtime
	fresh.now = n.survivor(c.rng, c.policy)
	fresh.synced = fresh.now.clone()
	fresh.minSize = fresh.now.size
	c.done[n] = fresh
	return fresh
}

// survivor returns the content that the disk has after a cut.
func (n *inode) survivor(rng *rand.Rand, p Policy) content {
	if !n.changed {
		return n.synced.clone()
	}
	switch r := rng.Float64(); {
	case r < p.Whole:
		return n.now.clone()
	case r < p.Whole+p.Partial:
		return n.partly(rng)
	}
	return n.synced.clone()
}

// partly mixes old and new: first whether a truncation reached the disk, then how much of what was written after it.
func (n *inode) partly(rng *rand.Rand) content {
	out := n.synced.clone()
	if n.minSize < n.synced.size {
		if rng.IntN(2) == 0 {
			return out
		}
		out.resize(n.minSize)
	}
	base := out.size
	switch rng.IntN(3) {
	case 0: // a prefix: what was written below a cut
		size := base + rng.Int64N(n.now.size-base+1)
		n.overlay(&out, func(i int) bool { return int64(i)*pageSize < size })
		out.resize(size)
	case 1: // the size and any choice of pages
		n.overlay(&out, func(int) bool { return rng.IntN(2) == 0 })
	default: // the size alone
		out.resize(n.now.size)
	}
	return out
}

// overlay grows out to the present size and takes the dirty pages that keep approves, in order of position.
func (n *inode) overlay(out *content, keep func(page int) bool) {
	out.resize(n.now.size)
	for i := range n.now.pages {
		if _, ok := n.dirty[i]; ok && keep(i) {
			out.pages[i] = n.now.pages[i].share()
		}
	}
}
