package telemetry

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

// Parts of protobuf messages.
func message(n int, parts ...[]byte) []byte {
	var body []byte
	for _, p := range parts {
		body = append(body, p...)
	}
	out := binary.AppendUvarint(nil, uint64(n)<<3|2)
	return append(binary.AppendUvarint(out, uint64(len(body))), body...)
}

func text(n int, s string) []byte { return message(n, []byte(s)) }

func number(n int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n)<<3), v)
}

func fixed(n int, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(nil, uint64(n)<<3|1), v)
}

func attribute(n int, name, value string) []byte {
	return message(n, text(1, name), message(2, text(1, value)))
}

func metricsOf(metrics ...[]byte) []byte {
	return message(1, message(1, attribute(1, "group_id", "g")), message(2, metrics...))
}

func gauge(name string, v float64, attributes ...[]byte) []byte {
	return message(2, text(1, name), message(5, message(1, append([][]byte{fixed(4, math.Float64bits(v))}, attributes...)...)))
}

func sum(name string, v int64, temporality uint64) []byte {
	return message(2, text(1, name), message(7, message(1, fixed(6, uint64(v))), number(2, temporality), number(3, 1)))
}

func TestRead(t *testing.T) {
	data := metricsOf(
		gauge("org.apache.kafka.producer.record.queue.time.avg", 1.5, attribute(7, "Node.Id", "3"), attribute(7, "group_id", "other"), attribute(7, "1st", "x")),
		sum("org.apache.kafka.producer.connection.creation.total", 7, 2),
		sum("since.the.last.push", 7, 1),
		gauge("", 1),
		gauge(strings.Repeat("n", 300), 1),
		message(2, text(1, "a.histogram"), message(9, message(1, fixed(4, 1)))),
	)
	g := Label{"group_id", "g"}
	want := []Sample{
		{"producer_record_queue_time_avg", []Label{g, {"node_id", "3"}, {"_1st", "x"}}, 1.5, false},
		{"producer_connection_creation_total", []Label{g}, 7, true},
	}
	got, dropped, err := Read(data)
	if err != nil || dropped != 2 || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %d dropped, %v", got, dropped, err)
	}
}

// TestReadMany: of more values than are kept of one client the rest is counted.
func TestReadMany(t *testing.T) {
	var all [][]byte
	for range MaxClientValues + 7 {
		all = append(all, gauge("g", 1))
	}
	if got, dropped, err := Read(metricsOf(all...)); err != nil || len(got) != MaxClientValues || dropped != 7 {
		t.Errorf("%d values, %d dropped, %v", len(got), dropped, err)
	}
}

func TestReadDamaged(t *testing.T) {
	for name, data := range map[string][]byte{
		"length beyond the end": {1<<3 | 2, 200, 1},
		"length of 2^63":        {1<<3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"field 0":               {0, 1},
		"a group":               {1<<3 | 3},
		"number cut off":        {1 << 3, 0x80},
		"64 bits cut off":       message(1, []byte{4<<3 | 1, 1, 2}),
		"32 bits cut off":       {4<<3 | 5, 1},
		"in an attribute":       metricsOf(gauge("g", 1, message(7, []byte{2<<3 | 2, 9}))),
		"in the resource":       message(1, message(1, []byte{1<<3 | 2, 9})),
	} {
		if got, _, err := Read(data); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// FuzzRead: whatever is pushed, values stay within the bounds and have names that Prometheus takes.
func FuzzRead(f *testing.F) {
	f.Add(metricsOf(gauge("a.b", 2, attribute(7, "topic", "t")), sum("c", 1, 2)))
	f.Add(message(1, message(2, message(2, text(1, "x"), message(5, message(1))))))
	f.Fuzz(func(t *testing.T, data []byte) {
		samples, _, err := Read(data)
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		if len(samples) > MaxClientValues {
			t.Fatalf("%d values", len(samples))
		}
		for _, s := range samples {
			if s.Name == "" || len(s.Name) > maxName || strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || len(s.Labels) > maxLabels {
				t.Fatalf("%+v", s)
			}
			for i, l := range s.Labels {
				if strings.Trim(l.Name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || l.Name[0] <= '9' || len(l.Value) > 3*maxText {
					t.Fatalf("%+v", l)
				}
				for _, other := range s.Labels[:i] {
					if other.Name == l.Name {
						t.Fatalf("%s is there twice", l.Name)
					}
				}
			}
		}
	})
}
