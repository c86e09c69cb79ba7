package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gregor/compat/harness"
)

// TestMatrix: every producer × every consumer × every codec × every kind of record, compared record by record.
func TestMatrix(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	all := everyone(t)
	byProducer := make([][]*topic, len(all.producers))
	for i, p := range all.producers {
		byProducer[i] = newTopics(t, b, p, storedFormat{})
		for _, f := range oldFormats()[p.name()] {
			byProducer[i] = append(byProducer[i], newTopics(t, b, p, f)...)
		}
	}
	t.Run("produce", func(t *testing.T) {
		for i, p := range all.producers {
			t.Run(p.name(), func(t *testing.T) {
				t.Parallel()
				produceAll(t, b.Addr(), p, byProducer[i])
			})
		}
	})
	topics := slices.Concat(byProducer...)
	views := make([]view, len(all.consumers))
	t.Run("consume", func(t *testing.T) {
		for i, c := range all.consumers {
			t.Run(c.name(), func(t *testing.T) {
				t.Parallel()
				views[i] = consumeAll(t, b.Addr(), c, topics)
			})
		}
	})
	compare(t, topics, all.consumers, views)
	for _, tp := range topics {
		if got := all.codecs[tp.name]; tp.magic() == 2 && got != tp.codec {
			t.Errorf("%s wrote with %s, the stored batch says %q", tp.label(), tp.codec, got)
		}
	}
}

// oldFormats says who writes into topics of an old message.format.version too, by the producer's name.
func oldFormats() map[string][]storedFormat {
	v08, v09, v010 := storedFormat{"0.8.2", 0}, storedFormat{"0.9.0", 0}, storedFormat{"0.10.0", 1}
	return map[string][]storedFormat{
		"franz-go":      {v08, v010},
		"sarama 2.1":    {v09},
		"sarama 0.10":   {v08},
		"kcat":          {v010},
		"kcat 0.9.0":    {v09},
		"kafka-python":  {v09},
		"java 0.8.2.2":  {v08, v010},
		"java 0.10.2.2": {v09, v010},
		"java 1.1.1":    {v010},
		"java 4.4.0":    {v09, v010},
		"scala 0.8.2.2": {v08},
	}
}

// newTopics makes a producer's topics of a format: one for each codec. An old one stores neither headers nor zstd.
func newTopics(t *testing.T, b *harness.Broker, p producer, f storedFormat) []*topic {
	t.Helper()
	known, set, config := codecs[:p.ability().codecs], p.set(recordSet()), []string(nil)
	if f.version != "" {
		known, set, config = codecs[:min(toLz4, p.ability().codecs)], withoutHeaders(set), []string{"message.format.version=" + f.version}
	}
	var topics []*topic
	var names []string
	for _, codec := range known {
		name := harness.Topic(strings.ReplaceAll(p.name(), " ", "-") + "-" + f.version + codec)
		topics = append(topics, &topic{name: name, codec: codec, producer: p, format: f, set: set})
		names = append(names, name)
	}
	b.Create(t, partitions, config, names...)
	return topics
}

// produceAll runs a producer and checks the offsets it was told.
func produceAll(t *testing.T, addr string, p producer, topics []*topic) {
	start := time.Now()
	if err := p.produce(withLimit(t), addr, topics); err != nil {
		t.Fatalf("%s: %v", p.name(), err)
	}
	for _, tp := range topics {
		if tp.failure != "" {
			t.Errorf("%s with %s: %s", tp.label(), tp.codec, tp.failure)
			continue
		}
		next := make([]int64, partitions)
		if tp.acks == nil {
			continue
		}
		if len(tp.acks) != len(tp.set) {
			t.Errorf("%s with %s: %d acks for %d records", tp.label(), tp.codec, len(tp.acks), len(tp.set))
			continue
		}
		for i, r := range tp.set {
			if tp.acks[i] != next[r.partition] {
				t.Errorf("%s with %s: record %d of partition %d was acked at offset %d, want %d", tp.label(), tp.codec, i, r.partition, tp.acks[i], next[r.partition])
			}
			next[r.partition]++
		}
	}
	t.Logf("%s: %d topics in %v", p.name(), len(topics), time.Since(start).Round(time.Millisecond))
}

// consumeAll has a consumer read what it can read.
func consumeAll(t *testing.T, addr string, c consumer, topics []*topic) view {
	start := time.Now()
	mine := slices.DeleteFunc(slices.Clone(topics), func(tp *topic) bool { return !c.ability().reads(tp) })
	v, err := c.consume(withLimit(t), addr, mine)
	if err != nil { // what came before an error is worth comparing too
		t.Errorf("%s: %v", c.name(), err)
	}
	t.Logf("%s: %d topics in %v", c.name(), len(mine), time.Since(start).Round(time.Millisecond))
	return v
}

// compare checks every cell and prints the matrix: how many pairs of codec and kind of record came through.
func compare(t *testing.T, topics []*topic, consumers []consumer, views []view) {
	cells, order := map[string][]int{}, []string{}
	total := 0
	for _, tp := range topics {
		row, seen := cells[tp.label()]
		if !seen {
			row = make([]int, len(consumers))
			cells[tp.label()] = row
			order = append(order, tp.label())
		}
		for i, c := range consumers {
			if !c.ability().reads(tp) {
				continue
			}
			for kind, diff := range differences(tp, c, views[i], views[0]) {
				if diff != "" {
					t.Errorf("%s with %s, %s, read by %s: %s", tp.label(), tp.codec, kinds[kind], c.name(), diff)
					continue
				}
				row[i]++
				total++
			}
		}
	}
	var table strings.Builder
	for i, c := range consumers {
		fmt.Fprintf(&table, "  [%d] %s", i+1, c.name())
	}
	fmt.Fprintf(&table, "\n%-24s", "")
	for i := range consumers {
		fmt.Fprintf(&table, "%4s", fmt.Sprintf("[%d]", i+1))
	}
	for _, label := range order {
		fmt.Fprintf(&table, "\n%-24s", label)
		for _, n := range cells[label] {
			fmt.Fprintf(&table, "%4d", n)
		}
	}
	t.Logf("producers down, consumers across, in each cell the pairs of codec and kind of record that came through, %d in all:\n%s", total, table.String())
}
