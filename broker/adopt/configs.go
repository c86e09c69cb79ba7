package adopt

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"strings"
)

// Configs are own keys of topics.
type Configs struct {
	Topics map[string]map[string]string
	// Rest are the keys of topics that are not named, nil when the file says nothing about them.
	Rest map[string]string
}

func (c Configs) of(topic string) (map[string]string, bool) {
	if keys, ok := c.Topics[topic]; ok {
		return maps.Clone(keys), true
	}
	return maps.Clone(c.Rest), c.Rest != nil
}

// maxConfigLine bounds a line of the file in bytes.
const maxConfigLine = 1 << 20

// ReadConfigs reads own keys of topics, either as Kafka's kafka-configs.sh --entity-type topics --describe prints them, or as lines
//
//	topic key=value
//
// A line with a topic alone says that it has no keys of its own; the topic * stands for all that are not named. Lines that begin with # do not count.
func ReadConfigs(r io.Reader) (Configs, error) {
	c := Configs{Topics: map[string]map[string]string{}}
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
