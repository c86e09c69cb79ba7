// Package raw is a load client that costs as little as possible beside the broker it measures: requests are built once
// and written again and again from one buffer, answers are checked in place, fetched bytes are dropped inside the
// kernel (recv with MSG_TRUNC), and the loops allocate nothing.
//
// A Conn is a blocking TCP socket without deadlines of its own but with a receive timeout, so that a hung broker ends a
// run. One goroutine may write while another reads; nothing else is concurrent. Pipeline and OpenLoop start one
// goroutine for writing that has ended when Run returns. BareServer owns one goroutine per connection; Close ends them.
//
// Formats: record batches of magic 2 (KIP-98), Produce v7, Fetch v12, all as Apache Kafka's message definitions have them.
package raw
