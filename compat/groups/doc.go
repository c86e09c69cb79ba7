// Package groups proves consumer groups from outside: members of many clients, each a process of its own that can be killed, join, lose a member,
// survive the broker's kill -9 and resume; Kafka's kafka-consumer-groups administers them; Kafka's own tools and Burrow read __consumer_offsets.
package groups
