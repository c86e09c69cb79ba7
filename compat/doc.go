// Package compat is the proof of gregor from outside: real clients on real sockets against the real binary, kill -9
// under load, Apache Kafka's own tools on the files, hostile peers and bad disks. Nothing imports it, and it is a Go
// module of its own, so that the clients it uses never become dependencies of the broker. README.md says how to run it.
//
// Folders: harness builds, starts, kills and restarts the binary; jars and deps bring the Java, Python and C clients;
// clients, kcat, tools, crash, dump, interop, hostile and disk hold the tests; peer runs an Apache Kafka beside them.
package compat
