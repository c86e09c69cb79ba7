package config

import (
	"fmt"
	"strings"
)

// Layer is a set of values from one place. Keys are Kafka's names.
type Layer struct {
	// Origin is for messages: a file name, "environment", "--set".
	Origin string
	// Source is what DescribeConfigs says of these values: SourceDynamicBroker, SourceDynamicDefault, or, also for 0, SourceStatic.
	Source Source
	Values map[string]string
	// Lines has the line of each key in a file, for messages; may be nil.
	Lines map[string]int
	// Repeated are keys that the file gives more than once.
	Repeated []string
}

func (l Layer) where(key string) string {
	if line, ok := l.Lines[key]; ok {
		return fmt.Sprintf("%s line %d", l.Origin, line)
	}
	return l.Origin
}

const environmentPrefix = "GREGOR_"

// Environment makes a layer of those of os.Environ's variables whose names are GREGOR_ and a key in upper case with "_" for ".":
// GREGOR_LOG_RETENTION_MS is log.retention.ms. Keys that begin with "gregor." do not repeat it: GREGOR_FAST_BOOT. Variables that begin so and
// match no key are returned as unknown.
func Environment(environ []string) (layer Layer, unknown []string) {
	layer = Layer{Origin: "environment", Values: map[string]string{}}
	names := map[string]string{}
	for _, name := range brokerCatalog().names {
		names[variable(name)] = name
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, environmentPrefix) {
			continue
		}
		if key, ok := names[name]; ok {
			layer.Values[key] = value
		} else {
			unknown = append(unknown, name)
		}
	}
	return layer, unknown
}

func variable(name string) string {
	name = strings.TrimPrefix(name, "gregor.")
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

// Settings makes a layer of key=value texts, as given to a flag. The last one of a key counts.
func Settings(origin string, pairs []string) (Layer, error) {
	layer := Layer{Origin: origin, Values: map[string]string{}}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return layer, fmt.Errorf("%s %q: must be key=value", origin, pair)
		}
		layer.Values[name] = strings.TrimSpace(value)
	}
	return layer, nil
}

// Merge returns the values of static layers, the strongest first, as one map. Where keys stand in for each other (log.dir and log.dirs,
// log.retention.ms and log.retention.hours), one in a stronger layer takes the place of all in weaker ones.
func Merge(layers ...Layer) map[string]string {
	merged := map[string]string{}
	for i := len(layers) - 1; i >= 0; i-- {
		if !layers[i].isStatic() {
			continue
		}
		for name := range layers[i].Values {
			for _, other := range alternatives(name) {
				delete(merged, other)
			}
		}
		for name, value := range layers[i].Values {
			merged[name] = value
		}
	}
	return merged
}

// alternatives are the keys that say the same as a key, itself among them.
func alternatives(name string) []string {
	switch name {
	case "log.dir", "log.dirs":
		return []string{"log.dir", "log.dirs"}
	case "broker.id", "node.id":
		return []string{"broker.id", "node.id"}
	}
	return fallbacks(name)
}

func (l Layer) isStatic() bool { return l.Source == 0 || l.Source == SourceStatic }
