package config

import "time"

// Server is the configuration of one broker, typed and checked. It is made by NewServer and never changes.
type Server struct {
	// NodeID is broker.id or node.id, -1 when neither was given.
	NodeID int32
	// LogDir is the one data directory, as it was given.
	LogDir    string
	Listeners []Listener
	// Advertised is empty when clients are told the address that they came in on.
	Advertised []Listener

	NumPartitions            int32
	DefaultReplicationFactor int16
	AutoCreateTopics         bool
	DeleteTopics             bool

	SocketRequestMaxBytes int32
	// QueuedMaxRequestBytes is -1 for no limit of the operator's.
	QueuedMaxRequestBytes int64
	ConnectionsMaxIdle    time.Duration // 0 or less: never
	MaxConnections        int32
	MaxConnectionsPerIP   int32
	FetchMaxBytes         int32
	FetchSessionSlots     int32

	RetentionCheckInterval            time.Duration
	FlushOffsetCheckpointInterval     time.Duration
	HighWatermarkCheckpointInterval   time.Duration
	ProducerIDExpiration              time.Duration
	ProducerIDExpirationCheckInterval time.Duration
	RecoveryThreads                   int32

	OffsetsTopicPartitions     int32
	OffsetsTopicReplication    int16
	OffsetsTopicSegmentBytes   int32
	TransactionTopicPartitions int32
	TransactionReplication     int16
	TransactionSegmentBytes    int32
	TransactionMinISR          int32

	// FastBoot is gregor.fast.boot: logs are opened without checking them.
	FastBoot bool

	// Defaults is the configuration of a topic without keys of its own.
	Defaults Topic

	layers []Layer
}

// Listener is one address that is listened on, or advertised.
type Listener struct {
	Name string // PLAINTEXT
	Host string // "" is every address, when listening
	Port int32  // 0 chooses a free one, when listening
}

// Layer is a set of values from one place. Keys are Kafka's names.
type Layer struct {
	// Origin is for messages: a file name, "environment", "--set".
	Origin string
	// Source is what DescribeConfigs says of these values; 0 means SourceStatic.
	Source Source
	Values map[string]string
	// Lines has the line of each key in a file, for messages; may be nil.
	Lines map[string]int
}

// Report is what is not wrong but must be said at the start, each list sorted by name.
type Report struct {
	Notes []Note
}

// Note is one key that was given and has no effect, or not the one that Kafka gives it.
type Note struct {
	Key    string
	Origin string
	// Unknown says that Kafka never had the key.
	Unknown bool
	// Text says what happens instead.
	Text string
}

// NewServer makes a configuration from layers, the strongest first: NewServer(Layer{Values: settings}) for one map. The error
// names every wrong key with its value and what is allowed. The report is valid with an error as well.
func NewServer(layers ...Layer) (*Server, Report, error) {
	return &Server{layers: layers}, Report{}, nil
}

// Topic returns the effective configuration of a topic with the given keys of its own. The error is that of ValidateTopic.
func (s *Server) Topic(overrides map[string]string) (Topic, error) {
	return s.Defaults, ValidateTopic(overrides)
}

// ValidateTopic checks the keys of a topic. The error's text is Kafka's and belongs to INVALID_CONFIG.
func ValidateTopic(overrides map[string]string) error { return nil }

// DescribeTopic returns the entries of a topic with the given keys of its own, in Kafka's order: those named, or all for nil names.
// Unknown names are left out.
func (s *Server) DescribeTopic(overrides map[string]string, names []string) []Entry { return nil }

// DescribeBroker returns the broker's entries: those named, or all for nil names. Unknown names are left out.
func (s *Server) DescribeBroker(names []string) []Entry { return nil }
