// Package dump hands the broker's files to Apache Kafka's own DumpLogSegments, of two versions, after clients with
// different codecs wrote over several segments, after a clean stop, and after SIGKILL and recovery. The tool must
// report nothing, and the offsets, timestamps and sizes it prints must be those that Kafka's client reads.
package dump
