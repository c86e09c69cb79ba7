// Package kcat proves what people do first: a log file in with kcat and out again, listing, queries by time, offsets from
// the end and by timestamp, keys, headers, codecs, big records and the error for too big ones. kcat is librdkafka, so
// this speaks for all clients built on that.
package kcat
