package groups

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gregor/compat/harness"
)

// oneOffsetsPartition is a broker whose groups are all in one log.
func oneOffsetsPartition(t *testing.T) *harness.Broker {
	t.Helper()
	cfg := settings()
	cfg.Set = append(cfg.Set, "offsets.topic.num.partitions=1")
	return harness.Start(t, cfg)
}

// TestStored: Kafka's DumpLogSegments and the formatter of its console consumer read __consumer_offsets.
func TestStored(t *testing.T) {
	for _, tools := range []struct {
		version, dump, consumer, formatter string
		dumped, consumed                   []string
	}{
		{
			"2.8.2", "kafka.tools.DumpLogSegments", "kafka.tools.ConsoleConsumer", "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter",
			[]string{
				"key: offset_commit::group={group},partition={topic}-0 payload: offset=4",
				`key: group_metadata::group={group} payload: {"protocolType":"consumer","protocol":"range","generationId":1,"assignment":"{{member}=[{topic}-0, {topic}-1]}"}`,
				`key: group_metadata::group={group} payload: {"protocolType":"consumer","protocol":null,"generationId":2,"assignment":"{}"}`,
				"key: offset_commit::group={idle},partition={topic}-1 payload: <DELETE>",
				"key: group_metadata::group={group} payload: <DELETE>",
			},
			[]string{"[{group},{topic},0]::OffsetAndMetadata(offset=4, leaderEpoch=Optional.empty, metadata=, commitTimestamp=", "[{idle},{topic},1]::NULL"},
		},
		{
			"4.4.0", "org.apache.kafka.tools.DumpLogSegments", "org.apache.kafka.tools.consumer.ConsoleConsumer", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter",
			[]string{
				`key: {"type":"1","data":{"group":"{group}","topic":"{topic}","partition":0}} payload: {"version":"3","data":{"offset":4,"leaderEpoch":-1,"metadata":"","commitTimestamp":`,
				`key: {"type":"2","data":{"group":"{group}"}} payload: {"version":"3","data":{"protocolType":"consumer","generation":1,"protocol":"range","leader":"{member}",`,
				`"subscription":{"topics":["{topic}"],`, `"assignment":{"assignedPartitions":[{"topic":"{topic}","partitions":[0,1]}],"userData":null}`,
				`key: {"type":"2","data":{"group":"{group}"}} payload: {"version":"3","data":{"protocolType":"consumer","generation":2,"protocol":null,"leader":null,`,
				`key: {"type":"1","data":{"group":"{idle}","topic":"{topic}","partition":1}} payload: <DELETE>`,
				`key: {"type":"2","data":{"group":"{group}"}} payload: <DELETE>`,
			},
			[]string{`{"key":{"type":1,"data":{"group":"{group}","topic":"{topic}","partition":0}},"value":{"version":3,"data":{"offset":4,"leaderEpoch":-1,"metadata":"","commitTimestamp":`,
				`{"key":{"type":1,"data":{"group":"{idle}","topic":"{topic}","partition":1}},"value":null}`},
		},
	} {
		t.Run(tools.version, func(t *testing.T) {
			c := newCommandTest(t, oneOffsetsPartition(t), tools.version)
			c.live().LeaveGroup()
			if _, err := c.adm.DeleteGroups(t.Context(), c.group, c.idle); err != nil {
				t.Fatal(err)
			}
			dumped := c.shell.Run(tools.dump, "--offsets-decoder", "--files", filepath.Join(c.broker.Dir(), "__consumer_offsets-0", "00000000000000000000.log"))
			c.contains(dumped, tools.dumped)
			c.contains(c.shell.Run(tools.consumer, "--bootstrap-server", c.broker.Addr(), "--topic", "__consumer_offsets", "--partition", "0", "--offset", "earliest",
				"--formatter", tools.formatter, "--max-messages", fmt.Sprint(c.end("__consumer_offsets"))), tools.consumed)
		})
	}
}

// end is the end of partition 0 of a topic.
func (c *commandTest) end(topic string) int64 {
	c.Helper()
	ends, err := c.adm.ListEndOffsets(context.Background(), topic)
	if err != nil {
		c.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	return end.Offset
}

func (c *commandTest) contains(lines, want []string) {
	c.Helper()
	text := strings.Join(lines, "\n")
	fill := strings.NewReplacer("{topic}", c.topic, "{group}", c.group, "{idle}", c.idle, "{member}", c.member)
	for _, w := range want {
		if w = fill.Replace(w); !strings.Contains(text, w) {
			c.Errorf("%s\nis not in\n%.6000s", w, text)
		}
	}
}
