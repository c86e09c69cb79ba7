// Package peer runs an Apache Kafka of a chosen version, one node in KRaft mode or on a ZooKeeper of its own, as a test's oracle or as the other
// side of an exchange of files. What it starts belongs to the test that started it and ends with it.
package peer
