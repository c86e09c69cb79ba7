package wire

// Stats are the counters of a Server since it was made.
type Stats struct {
	Connections   int64            // open now
	Accepted      int64            // connections accepted
	Closed        map[string]int64 // connections ended, by reason
	Requests      map[int16]int64  // requests handed to the Handler, by key
	BytesIn       int64            // bytes read from sockets
	BytesOut      int64            // bytes written to sockets, SendfileBytes included
	SendfileBytes int64            // bytes that went out by sendfile
	QueuedBytes   int64            // bytes of requests in memory now
}
