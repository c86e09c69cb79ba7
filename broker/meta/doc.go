// Package meta is the metadata tree: a small tree of versioned nodes whose paths and contents follow Kafka's ZooKeeper schema
// (/brokers/ids, /brokers/topics, /config/topics, /controller, /cluster/id, ...). Two implementations are meant: Local, embedded in the data
// directory, and ZooKeeper. What is above works on either.
//
// Local keeps persistent nodes in one bbolt file and ephemeral ones in memory, so that they end with the process whatever happens to it. A
// Multi is one transaction of the file: all or nothing, on disk when it returns.
//
// Locks of Local, in this order: write (one Multi at a time, held over the sync), state (ephemeral nodes and watchers, held for a few map
// operations). Readers never wait for a sync. No goroutine is started; a watch ends by the context's own callback.
package meta
