package admin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"gregor/compat/deps"
	"gregor/compat/harness"
)

// scraper is one of the exporters.
type scraper struct {
	name    string
	command func(ctx context.Context, path, broker, listen string) *exec.Cmd
	// lag is a pattern for one partition's value, with group, topic and partition.
	lag string
}

func scrapers() []scraper {
	return []scraper{
		{"kafka_exporter", func(ctx context.Context, path, broker, listen string) *exec.Cmd {
			return exec.CommandContext(ctx, path, "--kafka.server="+broker, "--web.listen-address="+listen, "--kafka.version=2.8.0", "--log.enable-sarama")
		}, `kafka_consumergroup_lag\{consumergroup="%s",partition="%[3]d",topic="%[2]s"\} (\S+)`},
		{"kminion", func(ctx context.Context, path, broker, listen string) *exec.Cmd {
			host, port, _ := strings.Cut(listen, ":")
			cmd := exec.CommandContext(ctx, path)
			cmd.Env = append(os.Environ(), "KAFKA_BROKERS="+broker, "EXPORTER_HOST="+host, "EXPORTER_PORT="+port, "TELEMETRY_HOST="+host, "TELEMETRY_PORT="+port)
			return cmd
		}, `kminion_kafka_consumer_group_topic_partition_lag\{[^}]*group_id="%s",partition_id="%[3]d",topic_name="%[2]s"\} (\S+)`},
	}
}

// TestLag: programs that people watch groups with see the right lag, and see it change.
func TestLag(t *testing.T) {
	b := harness.Shared(t, harness.Config{})
	for _, s := range scrapers() {
		t.Run(s.name, func(t *testing.T) {
			path, err := deps.Exporter(t.Context(), s.name)
			if err != nil {
				t.Skipf("%s cannot be had: %v", s.name, err)
			}
			topic := harness.Topic("lag")
			group := topic + "-group"
			b.Create(t, 2, nil, topic)
			cl := b.Client(t)
			produceTo(t, cl, topic, 10, 5)
			commit(t, cl, group, topic, 4, 5)
			page := s.start(t, path, b.Addr())
			s.shows(t, page, group, topic, 6, 0)
			produceTo(t, cl, topic, 0, 3)
			commit(t, cl, group, topic, 10, 6)
			s.shows(t, page, group, topic, 0, 2)
		})
	}
}

// produceTo writes so many records to each partition.
func produceTo(t *testing.T, cl *kgo.Client, topic string, counts ...int) {
	t.Helper()
	for partition, n := range counts {
		for range n {
			r := &kgo.Record{Topic: topic, Partition: int32(partition), Value: []byte("v")}
			if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// commit commits an offset for each partition.
func commit(t *testing.T, cl *kgo.Client, group, topic string, offsets ...int64) {
	t.Helper()
	all := kadm.Offsets{}
	for partition, at := range offsets {
		all.AddOffset(topic, int32(partition), at, -1)
	}
	if err := kadm.NewClient(cl).CommitAllOffsets(t.Context(), group, all); err != nil {
		t.Fatal(err)
	}
}

// start runs the program and returns the address of its metrics.
func (s *scraper) start(t *testing.T, path, broker string) string {
	t.Helper()
	listen := harness.FreeAddr(t)
	cmd := s.command(t.Context(), path, broker, listen)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", s.name, said.String())
		}
	})
	return "http://" + listen + "/metrics"
}

// shows waits until the lag of each partition is as it should be.
func (s *scraper) shows(t *testing.T, page, group, topic string, lags ...int) {
	t.Helper()
	var text string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		text = scrape(page)
		right := 0
		for partition, lag := range lags {
			m := regexp.MustCompile(fmt.Sprintf(s.lag, group, topic, partition)).FindStringSubmatch(text)
			if m != nil && m[1] == fmt.Sprint(lag) {
				right++
			}
		}
		if right == len(lags) {
			return
		}
	}
	var about []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, group) {
			about = append(about, line)
		}
	}
	t.Fatalf("lags should be %v; %s says of the group:\n%s", lags, page, strings.Join(about, ""))
}

// scrape is the page, empty when there is none yet.
func scrape(page string) string {
	resp, err := http.Get(page)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	return string(text)
}
