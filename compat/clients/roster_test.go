package clients

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gregor/compat/deps"
	"gregor/compat/harness"
	"gregor/compat/jars"

	"github.com/IBM/sarama"
)

// roster is everyone who takes part. franz-go is first among the consumers: the others' timestamps are compared with its.
type roster struct {
	producers []producer
	consumers []consumer
	codecs    map[string]string // by topic: what franz-go saw in the stored batch
}

func everyone(t *testing.T) roster {
	t.Helper()
	r := roster{codecs: map[string]string{}}
	add := func(c interface {
		producer
		consume(ctx context.Context, addr string, topics []*topic) (view, error)
	},
	) {
		r.producers = append(r.producers, c)
		r.consumers = append(r.consumers, c)
	}
	add(franz{r.codecs})
	for _, v := range []struct {
		label   string
		version sarama.KafkaVersion
	}{
		{"sarama", sarama.MaxVersion},
		{"sarama 2.1", sarama.V2_1_0_0},
		{"sarama 0.11", sarama.V0_11_0_0},
		{"sarama 0.10", sarama.V0_10_0_0},
		{"sarama 0.9", sarama.V0_9_0_0},
		{"sarama 0.8.2", sarama.V0_8_2_0},
	} {
		add(saramaClient{v.label, v.version})
	}
	kcat, err := deps.Kcat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, fallback := range []string{"", "0.9.0", "0.8.2"} {
		add(kcatClient{kcat, t.TempDir(), fallback})
	}
	for _, version := range []string{"", "0.10", "0.9", "0.8.2"} {
		add(python(t, version))
	}
	for _, version := range jars.Versions() {
		add(java(t, version, "java "+version, "Matrix"))
	}
	r.producers = append(r.producers, java(t, "0.8.2.2", "scala 0.8.2.2", "ScalaProducer"))
	return r
}

// python is kafka-python; version, unless empty, is the broker's that it takes for granted.
func python(t *testing.T, version string) program {
	t.Helper()
	interpreter, err := deps.Python(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(harness.CompatDir(t), "clients", "testdata", "matrix.py")
	can := ability{magic: 2, codecs: toZstd}
	switch version {
	case "0.10":
		can = ability{magic: 1, codecs: toLz4}
	case "0.9", "0.8.2":
		can = ability{codecs: toLz4}
	}
	label := strings.TrimSuffix("kafka-python "+version, " ")
	return program{label, can, t.TempDir(), notForPython, func(ctx context.Context, args ...string) error {
		return run(exec.CommandContext(ctx, interpreter, append([]string{script, version}, args...)...))
	}}
}

// notForPython is what kafka-python refuses to send: neither key nor value, and headers with a null value.
func notForPython(r record) bool {
	return r.key == nil && r.value == nil || slices.ContainsFunc(r.headers, func(h header) bool { return h.value == nil })
}

// java is Apache Kafka's own client of one version.
func java(t *testing.T, version, label, class string) program {
	t.Helper()
	classPath, err := jars.Matrix(t.Context(), harness.CompatDir(t), version)
	if err != nil {
		t.Fatal(err)
	}
	can := ability{codecs: toLz4}
	switch {
	case strings.HasPrefix(version, "0.8."), strings.HasPrefix(version, "0.9."):
	case strings.HasPrefix(version, "0.10."):
		can = ability{magic: 1, codecs: toLz4}
	case strings.HasPrefix(version, "0.11."), strings.HasPrefix(version, "1."), strings.HasPrefix(version, "2.0."):
		can = ability{magic: 2, codecs: toLz4}
	default:
		can = ability{magic: 2, codecs: toZstd}
	}
	return program{label, can, t.TempDir(), nil, func(ctx context.Context, args ...string) error {
		return run(jars.Java(ctx, classPath, class, args...))
	}}
}

func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
