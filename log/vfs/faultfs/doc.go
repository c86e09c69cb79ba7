// Package faultfs wraps a file system and fails, shortens, delays or records chosen calls, so that failing disks are tests.
//
// Promise. A call that no rule matches reaches the wrapped file system unchanged. A failed call does not reach it at all,
// but for a short write, whose first bytes do. The error that comes back is an *fs.PathError around the rule's.
//
// Locks. FS.mu guards rules and transcript and is not held over a call of the wrapped file system, an observer or a block.
// Goroutines: none.
package faultfs
