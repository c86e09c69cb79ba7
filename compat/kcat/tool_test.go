package kcat

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gregor/compat/deps"
	"gregor/compat/harness"
)

// runLimit is how long one run of kcat may take.
const runLimit = 60 * time.Second

// tool is kcat aimed at one broker.
type tool struct {
	path   string
	broker *harness.Broker
}

func newTool(t *testing.T) tool {
	t.Helper()
	b := harness.Shared(t, harness.Config{})
	path, err := deps.Kcat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tool{path, b}
}

// topic makes a topic of its own for a test.
func (k tool) topic(t *testing.T, partitions int, config ...string) string {
	t.Helper()
	name := harness.Topic("kcat")
	k.broker.Create(t, partitions, config, name)
	return name
}

// try runs kcat and returns both outputs and the error of its exit code.
func (k tool) try(stdin io.Reader, args ...string) (stdout []byte, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, k.path, append([]string{"-b", k.broker.Addr(), "-m", "20"}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errOut
	err = cmd.Run()
	return out.Bytes(), errOut.String(), err
}

// run is try for what must succeed.
func (k tool) run(t *testing.T, stdin io.Reader, args ...string) []byte {
	t.Helper()
	out, stderr, err := k.try(stdin, args...)
	if err != nil {
		t.Fatalf("kcat %.300q: %v\n%.2000s", args, err, stderr)
	}
	return out
}

// produce sends lines into a partition.
func (k tool) produce(t *testing.T, topic, lines string, args ...string) {
	t.Helper()
	k.run(t, strings.NewReader(lines), append([]string{"-P", "-t", topic}, args...)...)
}

// consume reads a topic to its end.
func (k tool) consume(t *testing.T, topic string, args ...string) string {
	t.Helper()
	all := append([]string{"-q", "-C", "-e", "-t", topic, "-X", "fetch.wait.max.ms=50"}, args...)
	return string(k.run(t, nil, all...))
}
