// Package compact has Apache Kafka's own tools judge the broker's compaction: LogCompactionTester of kafka-tools, which writes keys many times
// over, deletes some, and compares what a consumer finds with what it wrote; and DumpLogSegments, of two versions, which reads the compacted
// segments and their indexes.
package compact
