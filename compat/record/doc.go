// Package record refreshes what tests of the broker compare with: the answers of real Apache Kafka, in broker/testdata. `make record` runs it.
package record
