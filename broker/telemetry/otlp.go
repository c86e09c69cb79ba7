package telemetry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Sample is one value of a client.
type Sample struct {
	// Name has only the characters a-z, 0-9 and _: org.apache.kafka.producer.record.send.total is producer_record_send_total.
	Name string
	// Labels are what it is about, by name: a topic, a partition, a node.
	Labels []Label
	Value  float64
	Total  bool // counts up from the client's start
}

// Label is a name, of the same characters, and any text.
type Label struct{ Name, Value string }

// ErrDamaged is a push that is no MetricsData of OpenTelemetry [INVALID_RECORD].
var ErrDamaged = errors.New("not metrics of OpenTelemetry")

// Limits of what one value may be called, in bytes and labels.
const maxName, maxText, maxLabels = 200, 250, 16

// Read reads metrics as clients send them, protobuf MetricsData v1 of OpenTelemetry: gauges and cumulative sums, up to MaxClientValues. dropped counts the
// values that are left out because there are too many or because their names are too long. Histograms and sums since the last push are skipped. Nothing of data is
// kept.
func Read(data []byte) (samples []Sample, dropped int, err error) {
	r := reader{}
	err = fields(data, func(n int, f field) error {
		if n == 1 {
			return r.resource(f.bytes)
		}
		return nil
	})
	return r.samples, r.dropped, err
}

// reader collects values. base are the labels of the resource, prefix is cut off names.
type reader struct {
	base    []Label
	samples []Sample
	dropped int
}

// field is the value of one field of a message.
type field struct {
	number uint64 // of a varint, and of 32 and 64 bits
	bytes  []byte // of a message or text
}

// fields calls f with each field of a message.
func fields(data []byte, f func(n int, v field) error) error {
	for len(data) > 0 {
		tag, size := binary.Uvarint(data)
		if size <= 0 || tag>>3 == 0 || tag>>3 > math.MaxInt32 {
			return damaged("a field has no number")
		}
		data = data[size:]
		var v field
		switch tag & 7 {
		case 0:
			if v.number, size = binary.Uvarint(data); size <= 0 {
				return damaged("a number is cut off")
			}
		case 1:
			if size = 8; len(data) < size {
				return damaged("64 bits are cut off")
			}
			v.number = binary.LittleEndian.Uint64(data)
		case 2:
			length, n := binary.Uvarint(data)
			if n <= 0 || length > uint64(len(data)-n) {
				return damaged("a length is beyond the end")
			}
			size = n + int(length)
			v.bytes = data[n:size]
		case 5:
			if size = 4; len(data) < size {
				return damaged("32 bits are cut off")
			}
			v.number = uint64(binary.LittleEndian.Uint32(data))
		default:
			return damaged("a field is of no known kind")
		}
		data = data[size:]
		if err := f(int(tag>>3), v); err != nil {
			return err
		}
	}
	return nil
}

func damaged(what string) error { return fmt.Errorf("%w: %s", ErrDamaged, what) }

// resource reads ResourceMetrics: what the client says of itself, then its metrics.
func (r *reader) resource(data []byte) error {
	r.base = nil
	err := fields(data, func(n int, f field) error {
		if n != 1 {
			return nil
		}
		return fields(f.bytes, func(n int, f field) error {
			if n != 1 {
				return nil
			}
			var err error
			r.base, err = label(r.base, f.bytes)
			return err
		})
	})
	if err != nil {
		return err
	}
	return fields(data, func(n int, f field) error {
		if n != 2 { // ScopeMetrics
			return nil
		}
		return fields(f.bytes, func(n int, f field) error {
			if n != 2 {
				return nil
			}
			return r.metric(f.bytes)
		})
	})
}

// Fields of Metric.
const metricName, metricGauge, metricSum = 1, 5, 7

func (r *reader) metric(data []byte) error {
	var name string
	var points []byte
	sum := false
	err := fields(data, func(n int, f field) error {
		switch n {
		case metricName:
			name = metricText(string(f.bytes[:min(len(f.bytes), 2*maxName)]))
		case metricGauge, metricSum:
			points, sum = f.bytes, n == metricSum
		}
		return nil
	})
	if err != nil {
		return err
	}
	total, delta := false, false
	if sum {
		err = fields(points, func(n int, f field) error {
			switch n {
			case 2:
				delta = f.number == 1
			case 3:
				total = f.number != 0
			}
			return nil
		})
	}
	if err != nil || delta {
		return err
	}
	return fields(points, func(n int, f field) error {
		if n != 1 {
			return nil
		}
		return r.point(name, total, f.bytes)
	})
}

// point reads NumberDataPoint.
func (r *reader) point(name string, total bool, data []byte) error {
	s := Sample{Name: name, Labels: r.base[:len(r.base):len(r.base)], Total: total}
	err := fields(data, func(n int, f field) (err error) {
		switch n {
		case 4:
			s.Value = math.Float64frombits(f.number)
		case 6:
			s.Value = float64(int64(f.number))
		case 7:
			s.Labels, err = label(s.Labels, f.bytes)
		}
		return err
	})
	if err != nil {
		return err
	}
	if name == "" || len(name) > maxName || len(r.samples) >= MaxClientValues {
		r.dropped++
		return nil
	}
	r.samples = append(r.samples, s)
	return nil
}

// label appends a KeyValue, unless there are enough or its name is there: whoever says it first is right.
func label(to []Label, data []byte) ([]Label, error) {
	var l Label
	err := fields(data, func(n int, f field) error {
		switch n {
		case 1:
			if l.Name = labelText(string(f.bytes[:min(len(f.bytes), maxName)])); l.Name != "" && l.Name[0] <= '9' {
				l.Name = "_" + l.Name
			}
		case 2:
			return fields(f.bytes, func(n int, f field) error {
				l.Value = anyText(n, f)
				return nil
			})
		}
		return nil
	})
	if err != nil || l.Name == "" || len(to) >= maxLabels {
		return to, err
	}
	for _, other := range to {
		if other.Name == l.Name {
			return to, nil
		}
	}
	return append(to, l), nil
}

// anyText is an AnyValue as text; lists and the like are none.
func anyText(n int, f field) string {
	switch n {
	case 1:
		return strings.ToValidUTF8(string(f.bytes[:min(len(f.bytes), maxText)]), "?")
	case 2:
		return strconv.FormatBool(f.number != 0)
	case 3:
		return strconv.FormatInt(int64(f.number), 10)
	case 4:
		return strconv.FormatFloat(math.Float64frombits(f.number), 'g', -1, 64)
	}
	return ""
}

// metricText is a metric's name in what Prometheus allows.
func metricText(name string) string { return labelText(strings.TrimPrefix(name, "org.apache.kafka.")) }

func labelText(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, name)
}
