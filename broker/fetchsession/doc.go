// Package fetchsession remembers which partitions a client fetches, so that its next requests and their answers name only what changed
// (fetch sessions, KIP-227). It does no I/O, starts no goroutine and takes the time as an argument.
//
// One Fetch request is one Context: Cache.Begin merges the request with its session and gives the partitions to read, in order; the caller reads
// them, as often as it likes; Context.Include says of each answer if it must be sent; Context.End ends the request. A request that is answered
// without data because of a quota ends with Throttle, and one whose connection went away with Cancel.
//
// A session serves one request at a time, which is what clients do: they send the next epoch after the answer to the last. A request for a
// session that is in use gets ErrEpoch, as if its epoch were wrong, and the client starts again with a full fetch. A session can be closed or
// evicted while a request uses it; that request goes on undisturbed and the session is gone afterwards.
//
// Locks. Cache.mu guards the table of sessions, their order of use and value, and who uses each. The partitions of a session belong to the Context
// that uses it and are touched without the lock. No lock is held when a method returns, and nothing of the caller's is called under it.
package fetchsession
