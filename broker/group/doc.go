// Package group is the coordinator of one consumer group (the classic protocol) as a pure state machine. Events with the time come in, what is
// to be done comes out as Effects: answers to requests that wait, and records for __consumer_offsets. There is no socket, log, goroutine, lock or
// clock inside; the same events give the same effects.
//
// Who drives it:
//
//   - keeps one Group for each id and gives it one event at a time. A group that does not exist is an event on a New one: the group itself knows
//     the answer to that. When Exists is false after an event, the Group is dropped.
//   - appends each Write's records to the group's partition, in the order of the writes, and says Stored when they are durable, or
//     when they failed; in that order too. Answers that depend on a write are given then, never before.
//   - calls Tick when Next is due.
//   - reads state back after a restart: ParseKey and Replay for every record, then Loaded.
//
// What is seen of a group: offsets as OffsetFetch sees them change when they are durable. Members, generations and states change at
// once, as they do in Apache Kafka.
//
// Rules and errors are Apache Kafka's: KIP-62 (rebalance timeout), KIP-134 (initial delay), KIP-211 (expiry), KIP-345 (static members), KIP-389
// (size limit), KIP-394 (member ids), KIP-429 (cooperative: nothing here), KIP-559 (protocol type), KIP-814 (skipped assignments), KAFKA-12890
// (members that do not sync). Beyond Kafka: a connection that ends while its JoinGroup or SyncGroup waits is an event, so that clients that
// went away without knowing their member id leave no ghosts.
//
// Formats: keys and values of __consumer_offsets as kmsg has them; offsets are written as value version 3, or 1 when the commit had an
// expiry of its own, groups as version 3; all versions are read.
package group
