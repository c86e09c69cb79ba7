package config

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

func TestDefaults(t *testing.T) {
	s, report, err := NewServer()
	if err != nil || len(report.Notes) != 0 {
		t.Fatal(err, report)
	}
	if s.NodeID != -1 || s.LogDir != "./gregor-data" || len(s.Listeners) != 1 || s.Listeners[0] != (Listener{"PLAINTEXT", "127.0.0.1", 9092}) || s.Advertised != nil {
		t.Errorf("got %+v", s)
	}
	if s.ConnectionsMaxIdle != 10*time.Minute || s.MaxConnections != 0 || s.QueuedMaxRequestBytes != 0 || !s.AutoCreateTopics || !s.DeleteTopics || s.FastBoot {
		t.Errorf("got %+v", s)
	}
	want := Topic{
		SegmentBytes: 1 << 30, SegmentMs: 604800000, SegmentIndexBytes: 10485760, IndexIntervalBytes: 4096, FlushMessages: 1, FlushMs: math.MaxInt64,
		CleanupPolicy: CleanupPolicy{Delete: true}, RetentionMs: 604800000, RetentionBytes: -1, FileDeleteDelayMs: 60000, DeleteRetentionMs: 86400000,
		MaxCompactionLagMs: math.MaxInt64, MinCleanableDirtyRatio: 0.5, MaxMessageBytes: 1048588, MaxDecompressedBytes: 2147483639,
		Compression: Compression{Codec: CodecProducer}, TimestampBeforeMaxMs: math.MaxInt64, TimestampAfterMaxMs: 3600000, MinInsyncReplicas: 1,
		Magic: 2, DownConversion: true,
	}
	if s.Defaults != want {
		t.Errorf("got  %+v\nwant %+v", s.Defaults, want)
	}
}

// Every default must be valid, and every key that another names must exist.
func TestTables(t *testing.T) {
	for _, c := range []catalog{topicCatalog(), brokerCatalog()} {
		for _, k := range c.byName {
			if _, _, problem := k.parse(k.def); problem != "" && !k.null && len(k.from) == 0 {
				t.Errorf("default of %s: %s", k.name, problem)
			}
			for _, from := range k.from {
				if brokerCatalog().byName[from.name] == nil {
					t.Errorf("%s takes its default from %s, which is not there", k.name, from.name)
				}
			}
			if k.doc == "" || len(k.doc) > 400 {
				t.Errorf("%s needs a documentation of at most 400 bytes", k.name)
			}
		}
		if len(c.names) != len(c.byName) {
			t.Errorf("a key is defined twice: %d names, %d keys", len(c.names), len(c.byName))
		}
	}
	for name := range golden(t, "kafka-4.4.0-broker.jsonl") {
		if brokerCatalog().byName[name] == nil {
			t.Errorf("Kafka's %s is not known", name)
		}
	}
}

func TestEveryWrongKeyIsReported(t *testing.T) {
	_, report, err := NewServer(
		Layer{Origin: "server.properties", Lines: map[string]int{"num.partitions": 3, "log.segment.bytes": 9}, Values: map[string]string{
			"num.partitions": "0", "log.segment.bytes": "12x", "delete.topic.enable": "yes", "log.dirs": "/a,/a", "listeners": "SSL://:9093",
			"node.id": "1", "broker.id": "2", "log.cleaner.min.compaction.lag.ms": "5", "log.cleaner.max.compaction.lag.ms": "4", "num.io.threads": "9",
		}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"num.partitions=0 (server.properties line 3): value must be at least 1; allowed: a number of at least 1",
		"log.segment.bytes=12x (server.properties line 9): not a number of type INT; allowed: a number of at least 14",
		"delete.topic.enable=yes (server.properties): expected value to be either true or false",
		"log.dirs=/a,/a (server.properties): has /a twice",
		"listeners=SSL://:9093 (server.properties): listener SSL is SSL, which is not built yet; only PLAINTEXT is",
		"node.id=1 (server.properties): must be the same as broker.id, which is 2",
		"log.cleaner.min.compaction.lag.ms=5 (server.properties): is greater than log.cleaner.max.compaction.lag.ms, which is 4",
	} {
		if !strings.Contains(err.Error()+"\n", want+"\n") {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
	var one *ValueError
	if !errors.As(err, &one) {
		t.Error("no *ValueError")
	}
	if len(report.Notes) != 1 {
		t.Errorf("report %v", report.Notes)
	}
}

func TestNotes(t *testing.T) {
	_, report, err := NewServer(Layer{Origin: "f", Repeated: []string{"num.partitions"}, Values: map[string]string{
		"num.partitions": "2", "log.retention.hour": "1", "zookeeper.sync.time.ms": "2001", "retention.ms": "5", "offsets.topic.replication.factor": "2", "transaction.state.log.min.isr": "1",
		"group.initial.rebalance.delay.ms": "3000", "listener.name.internal.ssl.keystore.location": "k", "frobnicate": "1",
	}})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, n := range report.Notes {
		lines = append(lines, n.String())
	}
	want := `frobnicate: is not a key of Kafka or gregor and is ignored
listener.name.internal.ssl.keystore.location: has no effect: ` + noListenerKey + `
log.retention.hour: is not a key of Kafka or gregor and is ignored; did you mean log.retention.hours?
num.partitions: is given more than once; the last value counts
offsets.topic.replication.factor: has no effect: ` + noReplicas + `
retention.ms: is a topic's key and is ignored here; the broker's default for it is log.retention.ms
zookeeper.sync.time.ms: has no effect: ` + noZooKeeper
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The file that Kafka ships starts a broker with few words.
func TestStockProperties(t *testing.T) {
	s, report, err := NewServer(Layer{Origin: "f", Values: map[string]string{
		"broker.id": "0", "num.network.threads": "3", "num.io.threads": "8", "socket.send.buffer.bytes": "102400", "socket.receive.buffer.bytes": "102400",
		"socket.request.max.bytes": "104857600", "log.dirs": "/tmp/kafka-logs", "num.partitions": "1", "num.recovery.threads.per.data.dir": "1",
		"offsets.topic.replication.factor": "1", "transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1",
		"log.retention.hours": "168", "log.retention.check.interval.ms": "300000", "zookeeper.connect": "localhost:2181",
		"zookeeper.connection.timeout.ms": "18000", "group.initial.rebalance.delay.ms": "0",
	}})
	if err != nil || s.LogDir != "/tmp/kafka-logs" || s.ZooKeeper.Connect != "localhost:2181" || s.ZooKeeper.ConnectionTimeout != 18*time.Second {
		t.Fatal(s, err)
	}
	var lines []string
	for _, n := range report.Grouped() {
		lines = append(lines, n.String())
	}
	want := ""
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPrecedence(t *testing.T) {
	flags, err := Settings("--set", []string{"num.partitions=5", "log.dir = /d"})
	if err != nil {
		t.Fatal(err)
	}
	env, unknown := Environment([]string{"GREGOR_NUM_PARTITIONS=4", "GREGOR_MESSAGE_MAX_BYTES=7", "GREGOR_FAST_BOOT=true", "GREGOR_NOPE=1", "HOME=/home/u"})
	if len(unknown) != 1 || unknown[0] != "GREGOR_NOPE" {
		t.Errorf("unknown %v", unknown)
	}
	file := Layer{Origin: "f", Values: map[string]string{"num.partitions": "3", "message.max.bytes": "6", "fetch.max.bytes": "5000"}}
	s, _, err := NewServer(flags, env, file)
	if err != nil {
		t.Fatal(err)
	}
	if s.NumPartitions != 5 || s.Defaults.MaxMessageBytes != 7 || s.FetchMaxBytes != 5000 || s.LogDir != "/d" || !s.FastBoot {
		t.Errorf("got %+v", s)
	}
	merged := Merge(flags, env, file)
	again, _, err := NewServer(Layer{Values: merged})
	if err != nil || again.NumPartitions != 5 || again.Defaults != s.Defaults {
		t.Errorf("merged %v: %+v, %v", merged, again, err)
	}
	for _, bad := range []string{"x", "=1", " =1"} {
		if _, err := Settings("--set", []string{bad}); err == nil {
			t.Errorf("--set %q was taken", bad)
		}
	}
	twins, _, err := NewServer(Layer{Values: map[string]string{"log.dir": "/strong", "node.id": "7", "log.retention.hours": "1"}},
		Layer{Values: map[string]string{"log.dirs": "/weak", "broker.id": "3", "log.retention.ms": "5"}})
	if err != nil || twins.LogDir != "/strong" || twins.NodeID != 7 || twins.Defaults.RetentionMs != 3600000 {
		t.Errorf("%+v, %v", twins, err)
	}
	env.Values["num.partitions"] = "none"
	if _, _, err := NewServer(env); err == nil || !strings.Contains(err.Error(), "num.partitions=none (environment)") {
		t.Errorf("error %v", err)
	}
}

func TestListeners(t *testing.T) {
	for _, tc := range []struct{ listeners, advertised, protocols, want, wrong string }{
		{"PLAINTEXT://:0", "", "", "PLAINTEXT://:0", ""},
		{"plaintext://[::1]:9092", "", "", "PLAINTEXT://[::1]:9092", ""},
		{"IN://h:1, OUT://h:2", "OUT://public:99", "IN:PLAINTEXT,OUT:PLAINTEXT", "IN://h:1 OUT://h:2 | OUT://public:99", ""},
		{"localhost:9092", "", "", "", "not of the form"},
		{"PLAINTEXT://::1:9092", "", "", "", "brackets"},
		{"PLAINTEXT://h:70000", "", "", "", "0 to 65535"},
		{"PLAINTEXT://h", "", "", "", "not of the form"},
		{"OTHER://h:1", "", "", "", "OTHER:PLAINTEXT"},
		{"SASL_SSL://h:1", "", "", "", "not built yet"},
		{"PLAINTEXT://a:1,PLAINTEXT://a:2", "", "", "", "twice"},
		{"A://a:1,B://a:1", "", "A:PLAINTEXT,B:PLAINTEXT", "", "same address"},
		{"", "", "", "", "no address"},
		{"PLAINTEXT://:1", "", "PLAINTEXT", "", "NAME:PROTOCOL"},
		{"PLAINTEXT://:1", "", "PLAINTEXT:TLS", "", "not a security protocol"},
		{"PLAINTEXT://:1", "PLAINTEXT://0.0.0.0:1", "", "", "cannot connect"},
		{"PLAINTEXT://:1", "PLAINTEXT://h:0", "", "", "port 0"},
		{"PLAINTEXT://:1", "X://h:1", "X:PLAINTEXT", "", "not among listeners"},
	} {
		settings := map[string]string{"listeners": tc.listeners}
		if tc.advertised != "" {
			settings["advertised.listeners"] = tc.advertised
		}
		if tc.protocols != "" {
			settings["listener.security.protocol.map"] = tc.protocols
			if !strings.Contains(tc.protocols, "PLAINTEXT:") && strings.Contains(tc.protocols, ":PLAINTEXT") {
				settings["listener.security.protocol.map"] += ",PLAINTEXT:PLAINTEXT"
			}
		}
		s, _, err := NewServer(Layer{Values: settings})
		if tc.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("%q: error %v, want %q", tc.listeners, err, tc.wrong)
			}
			continue
		}
		var got []string
		for _, l := range s.Listeners {
			got = append(got, l.String())
		}
		for i, l := range s.Advertised {
			if i == 0 {
				got = append(got, "|")
			}
			got = append(got, l.String())
		}
		if err != nil || strings.Join(got, " ") != tc.want {
			t.Errorf("%q: %v, %v, want %s", tc.listeners, got, err, tc.want)
		}
	}
}

// A server.properties made for a Kafka with KRaft starts a broker.
func TestKRaftProperties(t *testing.T) {
	s, _, err := NewServer(Layer{Values: map[string]string{
		"process.roles": "broker,controller", "node.id": "1", "controller.quorum.voters": "1@h:9093", "controller.listener.names": "CONTROLLER",
		"listeners": "PLAINTEXT://h:9092,CONTROLLER://h:9093", "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
	}})
	if err != nil || len(s.Listeners) != 1 || s.Listeners[0].Port != 9092 || s.NodeID != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestTopicErrorsAsKafka(t *testing.T) {
	b, err := os.ReadFile("testdata/kafka-topic-errors.tsv")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		key, value, want := f[0], f[1], f[2]
		if want == "ok" {
			want = ""
		}
		got := ""
		if err := ValidateTopic(map[string]string{key: value}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s=%q\n got %q\nwant %q", key, value, got, want)
		}
		n++
	}
	if n < 200 {
		t.Errorf("only %d cases", n)
	}
}

func TestTopic(t *testing.T) {
	s, _, err := NewServer(Layer{Values: map[string]string{"log.retention.hours": "-1", "log.roll.jitter.hours": "1", "log.flush.interval.messages": "9223372036854775807"}})
	if err != nil {
		t.Fatal(err)
	}
	top, err := s.Topic(map[string]string{"cleanup.policy": "compact,delete", "compression.type": "zstd", "compression.zstd.level": "7",
		"message.timestamp.type": "LogAppendTime", "message.timestamp.difference.max.ms": "50", "message.timestamp.after.max.ms": "60", "segment.bytes": "100"})
	if err != nil {
		t.Fatal(err)
	}
	if !top.CleanupPolicy.Compact || !top.CleanupPolicy.Delete || top.Compression != (Compression{CodecZstd, 7}) || top.TimestampType != LogAppendTime {
		t.Errorf("got %+v", top)
	}
	if top.RetentionMs != -1 || top.SegmentJitterMs != 3600000 || top.FlushMessages != math.MaxInt64 || top.SegmentBytes != 100 {
		t.Errorf("got %+v", top)
	}
	if top.TimestampBeforeMaxMs != 50 || top.TimestampAfterMaxMs != 60 {
		t.Errorf("got %+v", top)
	}
	empty, err := s.Topic(map[string]string{"cleanup.policy": ""})
	if err != nil || empty.CleanupPolicy != (CleanupPolicy{}) {
		t.Errorf("empty policy: %+v, %v", empty.CleanupPolicy, err)
	}
	_, err = s.Topic(map[string]string{"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})
	if err == nil || err.Error() != "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)" {
		t.Errorf("error %v", err)
	}
	var te *TopicError
	if err := ValidateTopic(map[string]string{"retention.ms": "x", "zz": "1"}); !errors.As(err, &te) || te.Key != "zz" {
		t.Errorf("unknown names come first: %v", err)
	}
}

// TestTimestampDifference: the key of Kafka before 3.6 counts for the topic before the broker's newer keys, and for the broker after them.
func TestTimestampDifference(t *testing.T) {
	for _, tc := range []struct {
		broker, topic map[string]string
		before, after int64
	}{
		{nil, nil, math.MaxInt64, 3600000},
		{map[string]string{"log.message.timestamp.difference.max.ms": "5"}, nil, 5, 5},
		{map[string]string{"log.message.timestamp.difference.max.ms": "5", "log.message.timestamp.after.max.ms": "6"}, nil, 5, 6},
		{map[string]string{"log.message.timestamp.difference.max.ms": "5"}, map[string]string{"message.timestamp.before.max.ms": "7"}, 7, 5},
		{map[string]string{"log.message.timestamp.before.max.ms": "6"}, map[string]string{"message.timestamp.difference.max.ms": "8"}, 8, 8},
	} {
		s, report, err := NewServer(Layer{Values: tc.broker})
		if err != nil || len(report.Notes) > 0 {
			t.Fatal(report, err)
		}
		top, err := s.Topic(tc.topic)
		if err != nil || top.TimestampBeforeMaxMs != tc.before || top.TimestampAfterMaxMs != tc.after {
			t.Errorf("%v, %v: %d and %d, %v", tc.broker, tc.topic, top.TimestampBeforeMaxMs, top.TimestampAfterMaxMs, err)
		}
	}
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{"listener": "listeners", "num.partition": "num.partitions", "log.segment.byte": "log.segment.bytes",
		"zookeeper.conect": "zookeeper.connect", "gregor.fastboot": "gregor.fast.boot", "qqqqqq": "", strings.Repeat("x", 5000): ""} {
		if got := Nearest(name); got != want {
			t.Errorf("%.20s: %q, want %q", name, got, want)
		}
	}
}

func FuzzValidateTopic(f *testing.F) {
	for _, name := range topicCatalog().names {
		f.Add(name, "1")
	}
	f.Add("cleanup.policy", "compact,,x")
	f.Add("min.cleanable.dirty.ratio", "1e400")
	s, _, err := NewServer()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		own := map[string]string{name: value}
		if err := s.ValidateTopic(own); err != nil {
			return
		}
		if _, err := s.Topic(own); err != nil {
			t.Fatal(err)
		}
		e := s.DescribeTopic(own, []string{name})
		if len(e) != 1 || e[0].Source != SourceTopic || e[0].Value == nil {
			t.Fatalf("%s=%q is described as %+v", name, value, e)
		}
		// What is shown can be set again and shows the same.
		again := s.DescribeTopic(map[string]string{name: *e[0].Value}, []string{name})
		if err := ValidateTopic(map[string]string{name: *e[0].Value}); err != nil || *again[0].Value != *e[0].Value {
			t.Fatalf("%s=%q shows %q, which shows %q, %v", name, value, *e[0].Value, *again[0].Value, err)
		}
	})
}

func TestMessageFormat(t *testing.T) {
	for version, want := range map[string]int8{"0.8.0": 0, "0.8.2.2": 0, "0.9.0.1": 0, "0.10.0": 1, "0.10.2-IV0": 1, "0.11.0": 2, "0.11.0-IV2": 2, "1.0": 2, "2.8": 2, "3.9": 2} {
		s := newServer(t, map[string]string{"log.message.format.version": version})
		if got := s.Defaults.Magic; got != want {
			t.Errorf("broker %s: magic %d, want %d", version, got, want)
		}
		topic, err := newServer(t, nil).Topic(map[string]string{"message.format.version": version, "message.downconversion.enable": "false"})
		if err != nil || topic.Magic != want || topic.DownConversion {
			t.Errorf("topic %s: %+v, %v; want magic %d", version, topic, err, want)
		}
	}
}
