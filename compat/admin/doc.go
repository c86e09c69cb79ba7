// Package admin shows that admin clients get what they ask for: Apache Kafka's Admin of 2.8.2 and 4.4.0, sarama's ClusterAdmin, confluent-kafka-go
// (librdkafka) and kafka-python call each of their methods that make sense on one broker and check the results; programs that read the lag of groups
// say the right one.
package admin
