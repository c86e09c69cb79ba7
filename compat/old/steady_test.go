package old

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"testing"
	"time"

	"gregor/compat/harness"
	"gregor/compat/jars"
)

// TestKillUnderOldProducers: the producers of 0.8.2.2 send on with retries while the broker is killed and comes back. What
// they were told is stored is there, in order; a number may be there twice, since those producers cannot tell.
func TestKillUnderOldProducers(t *testing.T) {
	for _, kind := range []string{"scala", "new"} {
		t.Run(kind, func(t *testing.T) {
			b := harness.Start(t, harness.Config{})
			topic := harness.Topic("steady")
			b.Create(t, 1, nil, topic)
			acked := steady(t, b, kind, topic, 600)
			got := matrix(t, "0.8.2.2", "consume", b.Addr(), []string{topic}, "0")
			if got.failures[topic] != "" {
				t.Fatal(got.failures[topic])
			}
			numbers := make([]int, len(got.values[topic]))
			for i, v := range got.values[topic] {
				numbers[i] = number(t, v)
			}
			if !slices.IsSorted(numbers) {
				t.Errorf("the numbers are out of order: %v", numbers)
			}
			distinct := slices.Compact(slices.Clone(numbers))
			if !slices.Equal(distinct, acked) {
				t.Errorf("stored are %d different numbers %v, acknowledged were %v", len(distinct), distinct, acked)
			}
			t.Logf("%d acknowledged, %d stored", len(acked), len(numbers))
		})
	}
}

// steady runs java/era/v08/Steady.java, kills the broker twice on the way and returns what was acknowledged.
func steady(t *testing.T, b *harness.Broker, kind, topic string, n int) []int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	classPath, err := jars.Matrix(ctx, harness.CompatDir(t), "0.8.2.2")
	if err != nil {
		t.Fatal(err)
	}
	cmd := jars.Java(ctx, classPath, "Steady", kind, b.Addr(), topic, strconv.Itoa(n))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var acked []int
	for lines := bufio.NewScanner(out); lines.Scan(); {
		i, err := strconv.Atoi(lines.Text())
		if err != nil {
			continue // a word of its logger
		}
		acked = append(acked, i)
		if len(acked) == n/3 || len(acked) == 2*n/3 {
			b.Kill(t)
			time.Sleep(300 * time.Millisecond) // so that it meets a port that refuses
			b.Up(t)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("Steady %s: %v\n%s", kind, err, stderr.Bytes())
	}
	if len(acked) != n {
		t.Fatalf("%d numbers acknowledged, want %d\n%s", len(acked), n, stderr.Bytes())
	}
	return acked
}

// number undoes "=" and base64.
func number(t *testing.T, field string) int {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(field[1:])
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
