// Command bench measures gregor beside Apache Kafka on one machine, in one sitting, on a real disk. README.md says how
// to run it and what each figure means.
//
// It is a module of its own, so that its client library never becomes a dependency of the broker. Packages: target runs
// the brokers, raw is the lean client, work holds the workloads, stats the arithmetic, report the table.
package main
