// Package txn proves transactions with real clients: each copies a topic to another, its offsets in the same transactions, every fifth aborted and
// done again, while client and broker are killed and clients are stopped until another has taken their place. A read_committed reader of the
// output sees each input exactly once, in order. franz-go does so too while the broker is restarted every second, and is never told that it was fenced.
package txn
