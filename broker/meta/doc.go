// Package meta is the metadata tree: a small tree of versioned nodes whose paths and contents follow Kafka's ZooKeeper schema
// (/brokers/ids, /brokers/topics, /config/topics, /controller, /cluster/id, ...). Two implementations are meant: Local, embedded in the data
// directory, and ZooKeeper. What is above works on either.
package meta
