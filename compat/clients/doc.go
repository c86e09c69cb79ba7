// Package clients proves that real clients understand each other through the broker: every producer writes one
// deterministic set of records with every codec, every consumer reads all of it, and keys, values, headers, timestamps,
// order and offsets must be the same for all of them. The test prints the matrix.
package clients
