package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// parse turns the text of a value into bool, int64, float64, string or []string. The problem is Kafka's wording, "" when there is none; shown
// is the value as Kafka repeats it in a message.
func (k *key) parse(text string) (v any, shown, problem string) {
	v, problem = parseType(k.typ, text)
	if problem != "" {
		return nil, text, problem
	}
	shown = format(v)
	if k.rule == nil {
		return v, shown, ""
	}
	if bad, p := k.rule.problem(v); p != "" {
		if bad != "" {
			shown = bad
		}
		return nil, shown, p
	}
	return v, shown, ""
}

func parseType(t Type, text string) (any, string) {
	trimmed := strings.TrimSpace(text)
	switch t {
	case Boolean:
		switch strings.ToLower(trimmed) {
		case "true":
			return true, ""
		case "false":
			return false, ""
		}
		return nil, "Expected value to be either true or false"
	case Int:
		return parseInt(trimmed, 32, t)
	case Short:
		return parseInt(trimmed, 16, t)
	case Long:
		return parseInt(trimmed, 64, t)
	case Double:
		f, err := strconv.ParseFloat(trimmed, 64)
		if err != nil || math.IsNaN(f) {
			return nil, "Not a number of type DOUBLE"
		}
		return f, ""
	case List:
		return splitList(trimmed), ""
	}
	return trimmed, ""
}

func parseInt(text string, bits int, t Type) (any, string) {
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return nil, "Not a number of type " + strings.ToUpper(t.String())
	}
	return n, ""
}

// splitList splits at commas, with space around them. An empty text is an empty list.
func splitList(text string) []string {
	if text == "" {
		return []string{}
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// format writes a value as DescribeConfigs shows it.
func format(v any) string {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return formatDouble(v)
	case []string:
		return strings.Join(v, ",")
	case string:
		return v
	}
	return ""
}

// formatDouble writes a double as Java does: 0.5, 7.0, 1.0E20.
func formatDouble(f float64) string {
	if a := math.Abs(f); a != 0 && (a < 1e-3 || a >= 1e7) && !math.IsInf(f, 0) {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		n, err := strconv.Atoi(exponent)
		if err != nil {
			return mantissa
		}
		return mantissa + "E" + strconv.Itoa(n)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.ContainsAny(s, ".In") {
		s += ".0"
	}
	return s
}

// rule is what a value must satisfy beyond its type.
type rule interface {
	// problem returns Kafka's wording of what is wrong, or "", and the part of the value that is, if not all of it.
	problem(v any) (bad, text string)
	// allowed completes "allowed: ".
	allowed() string
}

// between limits a number, both ends included.
type between struct{ min, max int64 }

func atLeast(n int64) rule { return between{n, math.MaxInt64} }

func (r between) problem(v any) (string, string) {
	low, high := false, false
	switch v := v.(type) {
	case int64:
		low, high = v < r.min, v > r.max
	case float64:
		low, high = v < float64(r.min), v > float64(r.max)
	}
	switch {
	case low:
		return "", fmt.Sprintf("Value must be at least %d", r.min)
	case high:
		return "", fmt.Sprintf("Value must be no more than %d", r.max)
	}
	return "", ""
}

func (r between) allowed() string {
	if r.max == math.MaxInt64 {
		return fmt.Sprintf("a number of at least %d", r.min)
	}
	return fmt.Sprintf("a number from %d to %d", r.min, r.max)
}

// oneOf is a choice of words, for a string or for each item of a list.
type oneOf []string

func (r oneOf) has(s string) bool {
	for _, w := range r {
		if w == s {
			return true
		}
	}
	return false
}

func (r oneOf) problem(v any) (string, string) {
	items, isList := v.([]string)
	if !isList {
		items = []string{format(v)}
	}
	for _, item := range items {
		if !r.has(item) {
			return item, "String must be one of: " + strings.Join(r, ", ")
		}
	}
	return "", ""
}

func (r oneOf) allowed() string { return strings.Join(r, ", ") }

// gzipLevel is 1 to 9, or -1 for the codec's default.
type gzipLevel struct{}

func (gzipLevel) problem(v any) (string, string) {
	if n, ok := v.(int64); ok && n != -1 && (n < 1 || n > 9) {
		return "", "Value must be between 1 and 9 or equal to -1"
	}
	return "", ""
}

func (gzipLevel) allowed() string { return "a number from 1 to 9, or -1" }

// throttled is a list of partition:broker pairs, or "*" alone.
type throttled struct{ name string }

func (r throttled) problem(v any) (string, string) {
	items, ok := v.([]string)
	if !ok || len(items) == 1 && items[0] == "*" {
		return "", ""
	}
	for _, item := range items {
		partition, broker, found := strings.Cut(item, ":")
		if !found || !isDigits(partition) || !isDigits(broker) {
			return "[" + strings.Join(items, ", ") + "]", r.name +
				" must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
		}
	}
	return "", ""
}

func (r throttled) allowed() string { return "*, or a list of partition:broker" }

func isDigits(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// formatVersion is a version of Kafka from 0.8.0 to 3.9, with or without an -IV suffix.
type formatVersion struct{}

func (formatVersion) problem(v any) (string, string) {
	text := format(v)
	version, _, _ := strings.Cut(text, "-IV")
	parts := strings.Split(version, ".")
	ok := len(parts) >= 2 && len(parts) <= 4
	for _, p := range parts {
		ok = ok && isDigits(p) && len(p) <= 2
	}
	if ok {
		ok = parts[0] == "0" && (parts[1] == "8" || parts[1] == "9" || parts[1] == "10" || parts[1] == "11") ||
			parts[0] == "1" && parts[1] <= "1" || parts[0] == "2" && parts[1] <= "8" || parts[0] == "3" && len(parts[1]) == 1
	}
	if !ok {
		return "", "Version " + text + " is not a valid version"
	}
	return "", ""
}

func (formatVersion) allowed() string { return "a version of Kafka from 0.8.0 to 3.9" }

// formatMagic is the message format of a valid version.
func formatMagic(version string) int8 {
	switch {
	case strings.HasPrefix(version, "0.8"), strings.HasPrefix(version, "0.9"):
		return 0
	case strings.HasPrefix(version, "0.10"):
		return 1
	}
	return 2
}
