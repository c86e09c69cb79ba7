// Package stats holds the arithmetic of measurements: quantiles of latency samples and medians of rounds. It does no
// I/O and starts no goroutines; its types are not safe for concurrent use.
package stats
