package fetchsession

// Error is a top-level error of a Fetch answer. Such an answer has session id 0 and no partitions; the client starts again with a full fetch.
type Error struct {
	// Code is the error code of the Kafka protocol.
	Code int16
	text string
}

func (e *Error) Error() string { return e.text }

// Errors of Begin.
var (
	// ErrUnknownID is FETCH_SESSION_ID_NOT_FOUND: the session was closed, evicted, or never existed here.
	ErrUnknownID = &Error{70, "fetch session is not known"}
	// ErrEpoch is INVALID_FETCH_SESSION_EPOCH: not the epoch that follows the last request's, or that request is still being served.
	ErrEpoch = &Error{71, "fetch session has another epoch"}
	// ErrTopicIDs is FETCH_SESSION_TOPIC_ID_ERROR: a session of topic ids (v13 and later) used with names, or the reverse.
	ErrTopicIDs = &Error{106, "fetch session names its topics in another way"}
)
