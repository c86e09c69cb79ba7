// Package wire is the Kafka protocol front end: frames, headers, versions, connections and answers. It knows no topic and no log; what a request
// means is the Handler's business. Message bodies are kmsg types.
//
// One goroutine serves a connection: it reads a request, calls the Handler, writes the answer, in request order. A request whose answer is not ready
// (a produce that waits for its sync, a fetch that waits for data) leaves a Pending in the connection's queue; the goroutine then waits for
// either the next frame or Request.Wake (see conn.wake for why no wake is lost). Only requests whose Reply says Pipeline are handled while an
// earlier one is pending; after any other nothing is read until the queue is empty, but a hangup of the peer is noticed.
//
// Answers that are ready go out in one write. All whole frames that a peer sent before it closed are handled, and answered as
// long as no answer that is not ready stands before.
// A frame that is not a supported, parsable request ends the connection without an answer, after the earlier answers, with a log line that
// is limited per reason. ApiVersions at an unknown version is answered here (KIP-511).
//
// Buffers: a frame lives in a pooled buffer that belongs to the connection until Handle returned: whoever wants to keep bytes longer
// copies them. Buffers grow with the bytes that arrive. Those of all frames being received or handled are bounded by Config.QueuedBytes and
// one frame (see budget for why that holds, and why frames that wait for memory do not wait for ever), apart from the chunk of 16 KiB that a
// connection may read into: requests that fit it never wait for memory. What a frame only announces is not counted and hinders nobody.
// An idle connection holds no buffer. Answers are built in pooled buffers; file sections go out by sendfile on plain TCP on Linux
// and by a pooled copy elsewhere or when they are small. A section may also be a Stream, whose bytes are made on the connection's goroutine
// while they are sent: it holds one piece at a time.
//
// Goroutines: Server owns one per listener and one per connection; Shutdown ends and awaits all.
//
// Locks: Server.mu guards the sets of listeners and connections, budget.mu the queue for request memory, limiter.mu the log windows. None is held
// while another is taken, none over a read, a write or a call of the Handler.
package wire
