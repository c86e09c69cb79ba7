// Package commit makes written bytes durable for all logs of one file system, sharing syncs between them (group commit).
//
// Promise. A sync starts at once when none is running; whoever reports new bytes meanwhile shares the next. With one dirty
// file it is synced by itself (fdatasync); with more one syncfs covers all, unless another writer made it slow just now.
// EndSync(nil) means that everything that BeginSync named is durable.
//
// Failures. An error goes to every source that the failed call covered. After the first one each file is synced by itself
// for ever: the kernel reports a write error once per descriptor, so a later syncfs would say success for bytes that a
// source outside the failed round lost, while each file's own descriptor still reports them.
//
// Goroutines. A Committer owns one, which calls BeginSync and EndSync; while many files are synced one by one it has up
// to 32 more that end with the round. Nothing runs when nothing is dirty.
//
// Locks. Committer.mu is a leaf: Dirty takes it below the log's lock, and nothing is called under it.
package commit
