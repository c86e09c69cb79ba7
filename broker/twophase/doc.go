// Package twophase has the messages of InitProducerId version 6 (KIP-939, two-phase commit), which kmsg does not have. Up to version 5 they are
// kmsg's own, which Request and Response are built on.
//
// Promise: decoding copies what it keeps, allocates no more than it has read, and refuses what runs past the end. Format: InitProducerIdRequest.json and
// InitProducerIdResponse.json of Apache Kafka 4.4. There are no goroutines and no locks.
package twophase
