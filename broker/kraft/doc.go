// Package kraft reads and writes the metadata of Apache Kafka in KRaft mode: the log and the snapshots (.checkpoint) of __cluster_metadata-0.
// It is for data directories that move between Kafka and this broker; it is no quorum and speaks to none.
//
// Read gives the state at the end of the log: topics with their ids, partitions, configurations, features, producer ids, broker registrations, and
// how many ACLs, quotas and credentials there are. It changes nothing. Records of kinds that are not known are left out, as Kafka does;
// a known kind in a version that is not known is an error, since what it says may matter.
//
// Write appends to the log what makes its state that of this broker, in a segment of its own that is renamed into place: after a crash
// it is there as a whole or not at all. What Kafka had written stays, so ACLs, quotas and credentials survive the way here and back. Without a
// log before, Write makes what `kafka-storage format` makes.
//
// Formats: record frames of KIP-631 (frame version, kind, version, as uvarints, then the message), snapshots of KIP-630, quorum-state of KIP-595.
// Nothing is kept of the bytes that are read. No goroutine is started; values are for one goroutine at a time.
package kraft
