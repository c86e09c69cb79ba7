// Package txn is the transaction coordinator's part of one transactional id as a pure state machine. Events with the time come in, what is to
// be done comes out as Effects: answers to requests that wait, records for __transaction_state, and markers to be written. There is no socket,
// log, goroutine, lock or clock inside; the same events give the same effects.
//
// Who drives it:
//
//   - keeps one Txn for each id and gives it one event at a time. An id that does not exist is an event on a New one. When Exists is false after
//     an event, the Txn is dropped.
//   - appends each Write's record to the id's partition, in the order of the writes, and says Stored when they are durable, or failed.
//   - writes Markers to their partitions and says Marked for each when it is durable, when there is no such partition any more, or when it failed: then
//     it is asked for again. A marker that is written twice does no harm.
//   - calls Tick when Next is due.
//   - writes a transactional batch only while Admit allows it and before any later event of the same Txn: so no batch comes after its marker.
//   - reads state back after a restart: ParseKey and Replay for every record, then Loaded, which asks for what was not finished.
//
// A decision is durable before anybody hears of it: PrepareCommit or PrepareAbort is stored, then the client is answered and markers are asked for.
// When all are durable the transaction is complete. The record of that is not waited for: it lies before any later one of the same id, and
// without it the markers are written again.
//
// A request that comes while a transition is under way waits for its end, up to Config.Patience, where Kafka answers CONCURRENT_TRANSACTIONS at
// once; then it is answered so.
//
// Rules and errors are Apache Kafka's: KIP-98, KIP-360 (producers go on after errors), KIP-588 (timeouts), KIP-890 (transaction version 2: an
// epoch for each transaction). One is not: a producer that did not hear how its transaction ended is known by the epoch it had after a
// restart too, where Kafka fences it. Format: keys and values of __transaction_state as kmsg has them; version 1 is written.
package txn
