package old

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"gregor/compat/harness"
	"gregor/compat/jars"
)

// command is one of Kafka's command line classes with what it must print.
type command struct {
	version, class string
	args           string // split at spaces
	stdin          string
	want           string
}

// run runs the command and returns what it printed on both outputs.
func (c command) run(t *testing.T) string {
	t.Helper()
	lib, err := jars.Tools(c.version).Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c.runWith(t, lib+"/*")
}

func (c command) runWith(t *testing.T, classPath string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	cmd := jars.Java(ctx, classPath, c.class, strings.Fields(c.args)...)
	cmd.Stdin = strings.NewReader(c.stdin)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), c.want) {
		t.Errorf("%s of %s with %s: %v, want %q in\n%s", c.class, c.version, c.args, err, c.want, out)
	}
	return string(out)
}

// all runs the commands, each as a test of its own, two at a time.
func all(t *testing.T, name string, commands []command) {
	t.Run(name, func(t *testing.T) {
		for _, c := range commands {
			t.Run(c.version+"/"+c.class, func(t *testing.T) {
				t.Parallel()
				c.run(t)
			})
		}
	})
}

// atOnce is a broker whose new groups do not wait for more members.
func atOnce() harness.Config {
	return harness.Config{Set: []string{"group.initial.rebalance.delay.ms=0"}}
}

// TestConsoleTools: a line that the console producer of each version sent is printed by the console consumers of all, and
// each version's GetOffsetShell counts them. The producer of 0.8.2.2 makes the topic by asking for it.
func TestConsoleTools(t *testing.T) {
	b := harness.Shared(t, atOnce())
	topic := harness.Topic("console")
	producers := consoleProducers(b.Addr(), topic)
	producers[0].run(t)
	all(t, "produce", producers[1:])
	if t.Failed() {
		return // the consumers would wait for what is not there
	}
	n := len(producers)
	t.Run("consume", func(t *testing.T) {
		for _, c := range consoleConsumers(b.Addr(), topic, n) {
			t.Run(c.version+"/"+c.class, func(t *testing.T) {
				t.Parallel()
				out := c.run(t)
				for _, p := range producers {
					if line := strings.TrimSpace(p.stdin); !slices.Contains(strings.Split(out, "\n"), line) {
						t.Errorf("no line %q in\n%s", line, out)
					}
				}
			})
		}
	})
	all(t, "offsets", offsetShells(b.Addr(), topic, n))
}

func consoleProducers(addr, topic string) []command {
	list := []command{{
		version: "0.8.2.2", class: "kafka.tools.ConsoleProducer", stdin: "a line from 0.8.2.2 by the new producer\n",
		args: "--new-producer --broker-list " + addr + " --topic " + topic,
	}}
	codecs := []string{"gzip", "snappy", "lz4"}
	for i, version := range jars.Versions() {
		c := command{version: version, class: "kafka.tools.ConsoleProducer", stdin: "a line from " + version + "\n"}
		server := "--broker-list"
		if version >= "2.8" {
			server = "--bootstrap-server"
		}
		if version >= "4" {
			c.class = "org.apache.kafka.tools.ConsoleProducer"
		}
		c.args = fmt.Sprintf("%s %s --topic %s --compression-codec %s", server, addr, topic, codecs[i%len(codecs)])
		list = append(list, c)
	}
	return list
}

func consoleConsumers(addr, topic string, n int) []command {
	var list []command
	for _, version := range jars.Versions() {
		if version < "2" {
			list = append(list, command{version: version, class: "kafka.tools.SimpleConsumerShell", args: "--broker-list " + addr +
				" --topic " + topic + " --partition 0 --offset -2 --no-wait-at-logend"})
		}
		if version == "0.8.2.2" {
			continue // its other one asks ZooKeeper
		}
		c := command{version: version, class: "kafka.tools.ConsoleConsumer"}
		c.args = fmt.Sprintf("--bootstrap-server %s --topic %s --from-beginning --max-messages %d --timeout-ms 30000", addr, topic, n)
		if version == "0.9.0.1" {
			c.args = "--new-consumer " + c.args
		}
		if version >= "3.9" {
			c.class = "org.apache.kafka.tools.consumer.ConsoleConsumer"
		}
		list = append(list, c)
	}
	return list
}

func offsetShells(addr, topic string, n int) []command {
	var list []command
	for _, version := range jars.Versions() {
		c := command{version: version, class: "kafka.tools.GetOffsetShell", want: fmt.Sprintf("%s:0:%d", topic, n)}
		c.args = fmt.Sprintf("--broker-list %s --topic %s --time -1", addr, topic)
		if version >= "3.9" {
			c.class = "org.apache.kafka.tools.GetOffsetShell"
			c.args = fmt.Sprintf("--bootstrap-server %s --topic %s --time -1", addr, topic)
		}
		list = append(list, c)
	}
	return list
}

// TestPerformanceTools: the load generators of several versions, which read what they wrote to the last message.
func TestPerformanceTools(t *testing.T) {
	b := harness.Shared(t, atOnce())
	topic, latency := harness.Topic("perf"), harness.Topic("latency")
	b.Create(t, 1, nil, topic, latency)
	newer := "--topic " + topic + " --num-records 3000 --record-size 100 --throughput -1 --producer-props bootstrap.servers=" + b.Addr()
	older := "--broker-list " + b.Addr() + " --topics " + topic + " --messages 3000 --message-size 100 --request-num-acks -1"
	all(t, "produce", []command{
		{version: "0.8.2.2", class: "kafka.tools.ProducerPerformance", args: older + " --compression-codec 1", want: ", 3000,"},
		{version: "0.11.0.3", class: "kafka.tools.ProducerPerformance", args: older + " --new-producer", want: ", 3000,"},
		{version: "2.8.2", class: "org.apache.kafka.tools.ProducerPerformance", args: newer, want: "3000 records sent"},
		{version: "4.4.0", class: "org.apache.kafka.tools.ProducerPerformance", args: newer, want: "3000 records sent"},
	})
	read := " --topic " + topic + " --messages 12000 --timeout 30000"
	all(t, "consume", []command{
		{version: "0.8.2.2", class: "kafka.tools.SimpleConsumerPerformance", args: "--server kafka://" + b.Addr() + " --topic " + topic + " --partition 0 --from-latest", want: "MB.sec"},
		{version: "0.9.0.1", class: "kafka.tools.ConsumerPerformance", args: "--new-consumer --broker-list " + b.Addr() + " --topic " + topic + " --messages 12000", want: ", 12000,"},
		{version: "0.10.2.2", class: "kafka.tools.ConsumerPerformance", args: "--new-consumer --broker-list " + b.Addr() + " --topic " + topic + " --messages 12000", want: ", 12000,"},
		{version: "2.4.1", class: "kafka.tools.ConsumerPerformance", args: "--broker-list " + b.Addr() + read, want: ", 12000,"},
		{version: "4.4.0", class: "org.apache.kafka.tools.ConsumerPerformance", args: "--bootstrap-server " + b.Addr() + read, want: ", 12000,"},
	})
	for _, version := range []string{"0.9.0.1", "2.4.1"} { // one after the other: each waits for its own messages
		command{version: version, class: "kafka.tools.EndToEndLatency", args: b.Addr() + " " + latency + " 200 all 100", want: "Avg latency"}.run(t)
	}
}

// TestVerifiableTools: the programs of Kafka's own system tests, which tell each message that was acked and read. The
// consumer of 0.10 does not count beyond one poll, so that of 1.1 reads what either producer wrote.
func TestVerifiableTools(t *testing.T) {
	b := harness.Shared(t, atOnce())
	for _, version := range []string{"0.10.2.2", "1.1.1"} {
		topic := harness.Topic("verifiable")
		b.Create(t, 1, nil, topic)
		args := "--broker-list " + b.Addr() + " --topic " + topic + " --max-messages 200"
		for _, c := range []command{
			{version: version, class: "org.apache.kafka.tools.VerifiableProducer", args: args, want: `"acked":200`},
			{version: "1.1.1", class: "org.apache.kafka.tools.VerifiableConsumer", args: args + " --reset-policy earliest --group-id " + topic, want: `"name":"shutdown_complete"`},
		} {
			lib, err := jars.SystemTests(c.version).Ensure(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c.runWith(t, lib+"/*")
		}
	}
}

// TestAdminTools: what administers topics over the wire, from the first version that could.
func TestAdminTools(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	var versions []command
	for _, version := range []string{"0.10.2.2", "0.11.0.3", "1.1.1", "2.0.1", "2.4.1", "2.8.2"} {
		versions = append(versions, command{version: version, class: "kafka.admin.BrokerApiVersionsCommand", args: "--bootstrap-server " + b.Addr(), want: "Produce(0): 0 to"})
	}
	all(t, "versions", versions)
	for version, class := range map[string]string{"2.4.1": "kafka.admin.TopicCommand", "4.4.0": "org.apache.kafka.tools.TopicCommand"} {
		t.Run("topics/"+version, func(t *testing.T) {
			t.Parallel()
			topic := harness.Topic("topics")
			server := "--bootstrap-server " + b.Addr()
			for _, c := range []command{
				{args: "--create --partitions 3 --replication-factor 1 --config retention.ms=12345678 --topic " + topic},
				{args: "--list", want: topic},
				{args: "--describe --topic " + topic, want: "retention.ms=12345678"},
				{args: "--alter --partitions 5 --topic " + topic},
				{args: "--describe --topic " + topic, want: "Partition: 4"},
				{args: "--delete --topic " + topic},
			} {
				command{version: version, class: class, args: server + " " + c.args, want: c.want}.run(t)
			}
		})
	}
	for _, version := range []string{"0.11.0.3", "1.1.1", "2.0.1", "2.4.1", "2.8.2"} {
		t.Run("AdminClient/"+version, func(t *testing.T) {
			t.Parallel()
			classPath, err := jars.Tools(version).Compile(t.Context(), filepath.Join(harness.CompatDir(t), "java", "Admin.java"))
			if err != nil {
				t.Fatal(err)
			}
			command{version: version, class: "Admin", args: b.Addr() + " " + harness.Topic("admin"),
				want: "nodes 1\nlisted true\npartitions 3 internal false\nretention 12345678\nlisted false\n"}.runWith(t, classPath)
		})
	}
	t.Run("DeleteRecordsCommand/0.11.0.3", func(t *testing.T) {
		topic := harness.Topic("records")
		b.Create(t, 1, nil, topic)
		fill(t, b, topic, kgo.NoCompression(), 10, 80)
		file := filepath.Join(t.TempDir(), "offsets.json")
		text := fmt.Sprintf(`{"partitions":[{"topic":%q,"partition":0,"offset":4}],"version":1}`, topic)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		command{version: "0.11.0.3", class: "kafka.admin.DeleteRecordsCommand", args: "--bootstrap-server " + b.Addr() + " --offset-json-file " + file, want: "low_watermark: 4"}.run(t)
		command{version: "0.8.2.2", class: "kafka.tools.GetOffsetShell", args: "--broker-list " + b.Addr() + " --topic " + topic + " --time -2", want: topic + ":0:4"}.run(t)
	})
}
