package adopt

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"

	"gregor/broker/controller"
)

// Configs is what the directories do not tell of topics.
type Configs struct {
	// Topics are the own keys of each topic that is named.
	Topics map[string]map[string]string
	// Described are the topics whose id and number of partitions are known, too.
	Described map[string]Described
	// Rest are the keys of topics that are not named, nil when the file says nothing about them.
	Rest map[string]string
}

// Described is what kafka-topics.sh says of a topic.
type Described struct {
	ID         [16]byte // zeros for none
	Partitions int32
}

func (c Configs) of(topic string) (map[string]string, bool) {
	if keys, ok := c.Topics[topic]; ok {
		return maps.Clone(keys), true
	}
	return maps.Clone(c.Rest), c.Rest != nil
}

// maxConfigLine bounds a line of the file in bytes.
const maxConfigLine = 1 << 20

// ReadConfigs reads what Kafka's kafka-topics.sh --describe prints (ids and numbers of partitions, too), or kafka-configs.sh --entity-type topics --describe, or lines
//
//	topic key=value
//
// A line with a topic alone says that it has no keys of its own; the topic * stands for all that are not named. Lines that begin with # do not count.
func ReadConfigs(r io.Reader) (Configs, error) {
	c := Configs{Topics: map[string]map[string]string{}, Described: map[string]Described{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxConfigLine)
	described := ""
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), "\r ")
		text := strings.TrimSpace(line)
		topic, rest, _ := strings.Cut(text, " ")
		switch {
		case text == "" || text[0] == '#':
			continue
		case strings.HasPrefix(text, "Topic: "):
			if err := c.describe(text); err != nil {
				return Configs{}, fmt.Errorf("line %d: %w", n, err)
			}
			continue
		case described != "" && line != text: // an indented line under the topic that is described
			topic = described
			rest, _, _ = strings.Cut(text, " sensitive=")
		default:
			described = ""
			if name, ok := describes(text); ok {
				described, topic, rest = name, name, ""
			}
		}
		key, value, ok := strings.Cut(strings.TrimSpace(rest), "=")
		if rest != "" && (!ok || key == "" || strings.ContainsAny(key, " \t")) {
			return Configs{}, fmt.Errorf("line %d: %.200q is not \"topic key=value\"", n, text)
		}
		keys := c.keys(topic)
		if key != "" {
			keys[key] = value
		}
	}
	if err := lines.Err(); err != nil {
		return Configs{}, fmt.Errorf("reading the configurations: %w", err)
	}
	return c, nil
}

func (c *Configs) keys(topic string) map[string]string {
	if topic == "*" {
		if c.Rest == nil {
			c.Rest = map[string]string{}
		}
		return c.Rest
	}
	if c.Topics[topic] == nil {
		c.Topics[topic] = map[string]string{}
	}
	return c.Topics[topic]
}

// describes reads "Dynamic configs for topic NAME are:".
func describes(line string) (topic string, ok bool) {
	rest, ok1 := strings.CutPrefix(line, "Dynamic configs for topic ")
	topic, ok2 := strings.CutSuffix(rest, " are:")
	return topic, ok1 && ok2
}

// describe reads a line of kafka-topics.sh: fields "Name: value", separated by tabs. Lines about one partition do not count.
func (c *Configs) describe(line string) error {
	fields := map[string]string{}
	for f := range strings.SplitSeq(line, "\t") {
		name, value, _ := strings.Cut(strings.TrimSpace(f), ":")
		fields[name] = strings.TrimSpace(value)
	}
	topic := fields["Topic"]
	if _, ok := fields["PartitionCount"]; !ok {
		return nil
	}
	n, err := strconv.ParseInt(fields["PartitionCount"], 10, 32)
	if err != nil || n < 1 || n > maxPartitions || topic == "" {
		return fmt.Errorf("%.200q has no name or no number of partitions", line)
	}
	d := Described{Partitions: int32(n)}
	if id, ok := fields["TopicId"]; ok && id != "" {
		if d.ID, err = controller.ParseID(id); err != nil {
			return fmt.Errorf("topic %s: %w", topic, err)
		}
	}
	c.Described[topic] = d
	keys, last := c.keys(topic), ""
	for kv := range strings.SplitSeq(fields["Configs"], ",") {
		key, value, ok := strings.Cut(kv, "=")
		switch {
		case ok && key != "":
			keys[key], last = value, key
		case last != "": // a value with a comma, such as compact,delete
			keys[last] += "," + kv
		}
	}
	return nil
}
