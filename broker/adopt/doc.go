// Package adopt takes over the data directories of a stopped Apache Kafka, and hands them back. Inspect looks at the directories and makes a Plan:
// the topics with their ids, configurations and leader epochs, the first producer id that is free, what is in the internal topics, what
// cannot be carried, and what stands in the way (Plan.Blockers). It changes nothing; acting on a Plan is for the broker, which writes it
// into its metadata tree in one step.
//
// Where things are known from. Kafka in KRaft mode: __cluster_metadata-0 says all, and is only read. Kafka with ZooKeeper: the directories say which
// topics and partitions are here (partition.metadata, 2.8 and newer, has the ids), how far compaction came, and which epochs and producers wrote; the
// topics' configurations are in ZooKeeper. They come from a file (ReadConfigs), or else nothing may be deleted by a guess: such a topic
// keeps everything until it is configured.
//
// Export is the way back: for KRaft it appends what changed to Kafka's metadata log, for ZooKeeper it prints the nodes as commands of Kafka's own
// zookeeper-shell. Both work on the directory of a stopped broker.
//
// No goroutine is started; no value is shared.
package adopt
