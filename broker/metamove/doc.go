// Package metamove moves what a metadata tree holds into another tree: from the embedded one into ZooKeeper, and back.
//
// Promise. Every node that outlives sessions is moved with its bytes; versions begin anew. The source is only read, but for a mark at the end that says where it
// went, so that no broker goes on with the old one. Nothing in the target is overwritten that says something else: a plan names such nodes before
// anything is written. Only a target of the same cluster that was itself moved away does not count: it is made equal. The cluster's id is written last, so that half a move is not taken for a cluster, and a move that was cut short can be
// repeated.
//
// No goroutine outlives a call, and there are no locks.
package metamove
