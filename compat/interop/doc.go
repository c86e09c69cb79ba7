// Package interop proves that data directories go both ways: partitions that gregor wrote are opened, checked and read
// by Apache Kafka, and partitions that Apache Kafka wrote are opened, checked and read by gregor.
package interop
