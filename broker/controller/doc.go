// Package controller keeps the cluster's topics in the metadata tree: it registers the broker, takes the controller's seat, plans and writes
// new topics and partitions, deletes topics in steps that survive a crash, keeps configurations, raises leader epochs and hands out producer
// ids. Paths and contents are those of Kafka's ZooKeeper schema, so the same code runs on the embedded tree and on ZooKeeper. It knows no log and
// no socket: whoever owns replicas acts on what it returns.
//
// Promise. What a method reports as done is durable. A change is one Multi, so that a crash leaves all of it or nothing; in a shared tree a big one is several,
// and an error may leave the first of them made. Each Multi also checks /controller_epoch, so that a controller that lost its seat changes nothing and
// gets ErrNotController; but in a shared tree any broker changes configurations, and takes producer ids, without a seat. The exception is deletion, which has three
// steps: DeleteTopics marks the topic, the owners of its replicas remove them, CompleteDelete forgets it. Load shows the marked ones.
//
// Errors that belong to one topic are *Error with Kafka's code and Kafka's text; errors of the tree fail the whole call.
//
// Locks. Controller.mu serialises changes and is held over the tree's I/O, which is fine for administration and for nothing else. Load takes no lock.
//
// Goroutines: those that Load reads with, ended before it returns.
package controller
