package commit

// Source is something with unsynced bytes, in practice a log. The committer calls it from its own goroutine.
type Source interface {
	// BeginSync says what a sync that starts now would cover. The returned value is handed back to EndSync. An ok of false
	// means that there is nothing to sync any more.
	BeginSync() (target Target, ok bool)
	// EndSync reports that everything covered by target is durable, or why it is not. An error is final: the bytes may be
	// lost although a later sync succeeds, so the source must go offline.
	EndSync(target Target, err error)
}

// Target is a point in a source that a sync covers.
type Target struct {
	// Files are to be synced, oldest first: one in nearly every case, more after a segment roll.
	Files []Syncer
	// Offset and Position are the source's own: the log end offset that the sync makes durable, and where it lies.
	Offset   int64
	Segment  int64
	Position int64
}

// Syncer is a file as the committer sees it.
type Syncer interface {
	Sync() error
}
