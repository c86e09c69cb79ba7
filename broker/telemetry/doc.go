// Package telemetry is what a broker has to do with the metrics of its clients (KIP-714): it tells a client which ones to send and how often, refuses what
// comes too early, is not what was asked for or is too large, and keeps the last values of each client, so that whoever reads the broker's own metrics sees them.
//
// It does no I/O and knows no time but what it is given. All methods of Clients may be called concurrently; Clients.mu is a leaf.
//
// What clients send is not trusted: the number of clients and of values is bounded, as are names and texts. Beyond the bounds values are dropped and counted; a
// client that has not been heard of for three of its intervals, one minute at least, is forgotten with its values.
package telemetry
