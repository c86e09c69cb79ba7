// Package zookeeper proves what stands on Apache ZooKeeper beside real Apache Kafka brokers in the same cluster.
package zookeeper
