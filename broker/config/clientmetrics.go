package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// ClientMetrics is what a subscription of client metrics asks clients for (KIP-714).
type ClientMetrics struct {
	// Metrics are prefixes of the names that are wanted, "*" for all; empty is none.
	Metrics  []string
	Interval time.Duration
	// Match are patterns by the name of what they are compared with. A client is meant when each matches the whole of it; without any all are.
	Match map[string]*regexp.Regexp
}

// Names of what a client may be chosen by.
const (
	MatchInstanceID      = "client_instance_id"
	MatchClientID        = "client_id"
	MatchSoftwareName    = "client_software_name"
	MatchSoftwareVersion = "client_software_version"
	MatchSourceAddress   = "client_source_address"
	MatchSourcePort      = "client_source_port"
)

// Matches says whether a client with the given attributes, by the names above, is meant.
func (m *ClientMetrics) Matches(attribute func(name string) string) bool {
	for name, pattern := range m.Match {
		if !pattern.MatchString(attribute(name)) {
			return false
		}
	}
	return true
}

// ResourceError is a key of a group or of client metrics that was refused. Its text is Kafka's.
type ResourceError struct {
	Key string
	// Request says that Kafka answers INVALID_REQUEST, not INVALID_CONFIG.
	Request bool
	text    string
}

func (e *ResourceError) Error() string { return e.text }

// Bounds of interval.ms.
const leastPushInterval, mostPushInterval = 100, 60 * minute

func clientMetricsKeys() []key {
	return []key{
		{name: "metrics", typ: List, def: "", doc: "Prefixes of the names of the metrics that clients are to send; * is all, empty is none."},
		{name: "interval.ms", typ: Int, def: "300000", doc: "Milliseconds between a client's pushes, from 100 to 3600000."},
		{name: "match", typ: List, def: "",
			doc: "Clients that are meant, as NAME=PATTERN with regular expressions for client_instance_id, client_id, client_software_name, " +
				"client_software_version, client_source_address and client_source_port. All patterns must match; empty is every client."},
	}
}

// NewClientMetrics reads the keys of a subscription. The error is a *ResourceError.
func NewClientMetrics(own map[string]string) (ClientMetrics, error) {
	c := clientMetricsCatalog()
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if c.byName[name] == nil {
			return ClientMetrics{}, &ResourceError{Key: name, Request: true, text: "Unknown client metrics configuration: " + name}
		}
	}
	interval, err := resourceValue(c, own, "interval.ms")
	if err != nil {
		return ClientMetrics{}, err
	}
	ms, _ := interval.(int64)
	if ms < leastPushInterval || ms > mostPushInterval {
		return ClientMetrics{}, &ResourceError{Key: "interval.ms", Request: true,
			text: fmt.Sprintf("Invalid value %d for interval.ms, interval must be between %d and %d (1 hour)", ms, leastPushInterval, mostPushInterval)}
	}
	m := ClientMetrics{Interval: time.Duration(ms) * time.Millisecond, Metrics: distinct(splitList(strings.TrimSpace(own["metrics"])))}
	m.Match, err = clientPatterns(splitList(strings.TrimSpace(own["match"])))
	return m, err
}

// clientPatterns reads the items of match. Of two for one name the last counts.
func clientPatterns(items []string) (map[string]*regexp.Regexp, error) {
	patterns := make(map[string]*regexp.Regexp, len(items))
	for _, item := range items {
		name, text, _ := strings.Cut(item, "=")
		name, text = strings.TrimSpace(name), strings.TrimSpace(text)
		switch name {
		case MatchInstanceID, MatchClientID, MatchSoftwareName, MatchSoftwareVersion, MatchSourceAddress, MatchSourcePort:
		default:
			return nil, illegalPattern(item)
		}
		pattern, err := regexp.Compile(`\A(?:` + text + `)\z`)
		if err != nil || text == "" || strings.Contains(text, "=") {
			return nil, illegalPattern(item)
		}
		patterns[name] = pattern
	}
	return patterns, nil
}

func illegalPattern(item string) error {
	return &ResourceError{Key: "match", text: "Illegal client matching pattern: " + item}
}

// resourceValue is the own value of a key, or its default.
func resourceValue(c catalog, own map[string]string, name string) (any, error) {
	k := c.byName[name]
	text, ok := own[name]
	if !ok {
		text = k.def
	}
	v, shown, problem := k.parse(text)
	if problem != "" {
		return nil, &ResourceError{Key: name, text: fmt.Sprintf("Invalid value %s for configuration %s: %s", shown, name, problem)}
	}
	return v, nil
}

// distinct leaves out what was there before.
func distinct(items []string) []string {
	var out []string
	for _, item := range items {
		if !slices.Contains(out, item) {
			out = append(out, item)
		}
	}
	return out
}

// DescribeClientMetrics returns the entries of a subscription with the given keys of its own, sorted by name: those named, or all for nil names.
func DescribeClientMetrics(own map[string]string, names []string) []Entry {
	c := clientMetricsCatalog()
	var entries []Entry
	for _, name := range selected(c, names) {
		k := c.byName[name]
		e := Entry{Name: name, Value: &k.def, Type: k.typ, Documentation: k.doc, Source: SourceDefault}
		if text, ok := own[name]; ok {
			if v, _, problem := k.parse(text); problem == "" {
				if list, isList := v.([]string); isList {
					v = distinct(list)
				}
				text = format(v)
			}
			e.Value, e.Source = &text, SourceClientMetrics
			e.Synonyms = []Synonym{{Name: name, Value: e.Value, Source: e.Source}}
		}
		entries = append(entries, e)
	}
	return entries
}
