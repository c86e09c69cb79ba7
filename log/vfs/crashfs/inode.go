package crashfs

import "time"

// inode is a file or a directory, reachable by any number of names and handles.
type inode struct {
	isDir bool
	mtime time.Time

	// Of a directory: entries as they are, and as they are on the disk.
	entries, durable map[string]*inode

	// Of a file: content as it is and as of the last sync, what was written since, and the smallest size since.
	now, synced content
	dirty       map[int]struct{}
	minSize     int64
	changed     bool
}

func newFile() *inode { return &inode{mtime: time.Now(), dirty: make(map[int]struct{})} }

func newDir() *inode {
	return &inode{isDir: true, mtime: time.Now(), entries: make(map[string]*inode), durable: make(map[string]*inode)}
}

func (n *inode) writeAt(p []byte, off int64) {
	if end := off + int64(len(p)); end > n.now.size {
		n.now.resize(end)
	}
	for done := 0; done < len(p); {
		i, at := int((off+int64(done))/pageSize), int((off+int64(done))%pageSize)
		done += copy(n.now.writable(i).b[at:], p[done:])
		n.dirty[i] = struct{}{}
	}
	n.changed = true
	n.mtime = time.Now()
}

func (n *inode) truncate(size int64) {
	n.now.resize(size)
	n.minSize = min(n.minSize, size)
	if size%pageSize != 0 {
		n.dirty[pagesFor(size)-1] = struct{}{}
	}
	n.changed = true
	n.mtime = time.Now()
}

// sync makes the content durable, at the cost of the pages written since the last time.
func (n *inode) sync() {
	if !n.changed {
		return
	}
	if n.minSize < n.synced.size { // pages dropped meanwhile are not in dirty
		n.synced.resize(n.minSize)
	}
	n.synced.resize(n.now.size)
	for i := range n.dirty {
		if i < len(n.now.pages) {
			n.synced.pages[i] = n.now.pages[i].share()
		}
	}
	clear(n.dirty)
	n.minSize = n.now.size
	n.changed = false
}
