// Package zk is the metadata tree on Apache ZooKeeper: meta.Tree over one session, below a chroot if there is one, so that Kafka's tools, and Kafka
// itself, find what is kept where they look for it.
//
// Promise. A call waits while the connection is down, until its context ends; what was read before is not asked again. A change whose answer
// was lost with the connection is not made twice: it is looked up whether it was made, and made if not. A watch is set before its event is given, so
// that who reads after an event, or after Watch, misses nothing; a session that expires counts as a change of everything that is watched. Ephemeral
// nodes end with the session: Expired tells.
//
// Goroutines: one for each watch, ended by its context or by Close, one for each call, which ends with the answer or the connection also when the caller
// waits no longer, those of the library, and one that follows its events; Close waits for ours.
// Locks: Tree.mu is a leaf.
package zk
