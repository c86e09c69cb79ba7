// Package commit makes written bytes durable for all logs of one file system, sharing syncs between them (group commit).
//
// A Committer owns one goroutine. A sync starts at once when none is running; whoever reports new bytes meanwhile shares the next.
// With few dirty files each is synced by itself (fdatasync); with many one syncfs covers all. No lock is held during a sync.
package commit
