// Package clients proves that real clients from 0.8 to 4.4 understand each other through the broker: every producer writes
// one deterministic set of records with every codec it has, every consumer reads all of it, and keys, values, order and
// offsets must be the same for all of them; timestamps and headers too, where producer, stored format and consumer have
// them. The test prints the matrix.
package clients
