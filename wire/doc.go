// Package wire is the Kafka protocol front end: frames, headers, versions, connections and answers. It knows no topic and no log; what a request
// means is the Handler's business. Message bodies are kmsg types.
//
// One goroutine serves a connection: it reads a request, calls the Handler, writes the answer, in request order. A request whose answer is not ready
// (a produce that waits for its sync, a fetch that waits for data) leaves a Pending in the connection's queue; the goroutine then waits for
// either the next frame or Request.Wake. Only requests whose Reply says Pipeline are handled while an earlier one is pending; after any other
// the connection is not read until the queue is empty.
//
// Buffers: a frame lives in a pooled buffer that belongs to the connection until the Handler's Reply is complete and, for a Pending, until Handle
// returned: whoever wants to keep bytes longer copies them. Answers are built in pooled buffers; file sections go out by sendfile on plain TCP on
// Linux and by a pooled copy elsewhere.
//
// Goroutines: Server owns one per listener and one per connection; Shutdown ends and awaits all.
package wire
