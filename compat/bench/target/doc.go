// Package target brings the brokers that are measured: gregor, built from the module that holds this one, and Apache
// Kafka from Maven, and runs them as processes of their own on fresh directories of a real disk.
//
// A Broker belongs to the goroutine that started it. Each running process has one goroutine that waits for its end.
package target
