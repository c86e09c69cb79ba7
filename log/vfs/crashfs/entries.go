package crashfs

// change is one name that got a new meaning; a nil to means gone.
type change struct {
	dir  *inode
	name string
	to   *inode
}

// op is a directory operation that is not durable yet: all of its changes or none reach the disk.
type op struct {
	changes []change
	node    *inode // created, removed or moved
	removed bool
}

type entryKey struct {
	dir  *inode
	name string
}

// chain collects names, nodes and directories that operations touch, to find those that depend on each other.
type chain struct {
	names map[entryKey]struct{}
	nodes map[*inode]struct{}
	dirs  map[*inode]struct{} // whose entries changed
	gone  map[*inode]struct{} // removed
}

func newChain() *chain {
	return &chain{
		names: make(map[entryKey]struct{}), nodes: make(map[*inode]struct{}),
		dirs: make(map[*inode]struct{}), gone: make(map[*inode]struct{}),
	}
}

func (c *chain) add(o *op) {
	for _, ch := range o.changes {
		c.names[entryKey{ch.dir, ch.name}] = struct{}{}
		c.dirs[ch.dir] = struct{}{}
	}
	c.nodes[o.node] = struct{}{}
	if o.removed {
		c.gone[o.node] = struct{}{}
	}
}

// touches reports a name or a node in common.
func (c *chain) touches(o *op) bool {
	if _, ok := c.nodes[o.node]; ok {
		return true
	}
	for _, ch := range o.changes {
		if _, ok := c.names[entryKey{ch.dir, ch.name}]; ok {
			return true
		}
	}
	return false
}

// record applies an operation to the entries as they are and remembers it as not durable.
func (f *FS) record(o op) {
	for _, ch := range o.changes {
		if ch.to == nil {
			delete(ch.dir.entries, ch.name)
		} else {
			ch.dir.entries[ch.name] = ch.to
		}
	}
	f.mu.pending = append(f.mu.pending, o)
}

// harden makes the operations of dir durable, and the earlier ones that they stand on.
func (f *FS) harden(dir *inode) {
	need := newChain()
	pending := f.mu.pending
	picked := make([]bool, len(pending))
	any := false
	for i := len(pending) - 1; i >= 0; i-- {
		o := &pending[i]
		if inDir(o, dir) || need.touches(o) || emptied(need, o) {
			picked[i], any = true, true
			need.add(o)
		}
	}
	if !any {
		return
	}
	rest := pending[:0]
	for i := range pending {
		if picked[i] {
			applyDurable(&pending[i])
		} else {
			rest = append(rest, pending[i])
		}
	}
	clear(pending[len(rest):])
	f.mu.pending = rest
}

func inDir(o *op, dir *inode) bool {
	for _, ch := range o.changes {
		if ch.dir == dir {
			return true
		}
	}
	return false
}

// emptied reports that a later operation in need removes a directory that o changed.
func emptied(need *chain, o *op) bool {
	for _, ch := range o.changes {
		if _, ok := need.gone[ch.dir]; ok {
			return true
		}
	}
	return false
}

func (f *FS) hardenAll() {
	for i := range f.mu.pending {
		applyDurable(&f.mu.pending[i])
	}
	clear(f.mu.pending)
	f.mu.pending = f.mu.pending[:0]
}

func applyDurable(o *op) {
	for _, ch := range o.changes {
		if ch.to == nil {
			delete(ch.dir.durable, ch.name)
		} else {
			ch.dir.durable[ch.name] = ch.to
		}
	}
}
