// Package loglevel gives each part of a broker a logger whose level can be changed while it runs.
//
// Promise. All loggers write to one handler. A logger without a level of its own has that of root, which begins as low as the handler lets through.
// Changes are in force for the next message, and are forgotten with the process, as Kafka's are.
//
// Locks: none; levels are atomics. Goroutines: none.
package loglevel
