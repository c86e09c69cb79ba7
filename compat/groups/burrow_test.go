package groups

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"gregor/compat/deps"
	"gregor/compat/harness"
	"gregor/compat/peer"

	"github.com/twmb/franz-go/pkg/kadm"
)

// TestBurrow: Burrow reads groups, offsets and lag from __consumer_offsets. (Deleted groups stay there: it drops tombstones.)
func TestBurrow(t *testing.T) {
	b := oneOffsetsPartition(t)
	path, err := deps.Burrow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	topic, group := harness.Topic("watched"), harness.Topic("watched-group")
	b.Create(t, 1, nil, topic)
	fillTopic(t, b, topic, recordsEach)
	api := startBurrow(t, path, b.Addr(), peer.ZooKeeper(t))
	adm := kadm.NewClient(b.Client(t))
	// It wants several commits of a group and knows a topic's end only after a while: commit until it says what it should.
	await(t, func() string {
		var all kadm.Offsets
		all.Add(kadm.Offset{Topic: topic, Partition: 0, At: 4, LeaderEpoch: -1})
		if err := adm.CommitAllOffsets(t.Context(), group, all); err != nil {
			return err.Error()
		}
		var got struct {
			Status struct {
				Status     string
				TotalLag   int64 `json:"totallag"`
				Partitions []struct {
					Topic string
					End   struct{ Offset, Lag int64 }
				}
			}
		}
		if err := fetchJSON(api+"/consumer/"+group+"/lag", &got); err != nil {
			return err.Error()
		}
		s := got.Status
		if s.TotalLag != 6 || len(s.Partitions) != 1 || s.Partitions[0].Topic != topic || s.Partitions[0].End.Offset != 4 || s.Partitions[0].End.Lag != 6 {
			return fmt.Sprintf("Burrow says %+v", got)
		}
		return ""
	})
}

// await waits until cond says "".
func await(t *testing.T, cond func() string) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		said := cond()
		if said == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(said)
		}
	}
}

// startBurrow runs Burrow and returns the address of its cluster's API.
func startBurrow(t *testing.T, path, kafka, zookeeper string) string {
	t.Helper()
	dir, listen := t.TempDir(), harness.FreeAddr(t)
	config := fmt.Sprintf(`
[general]
pidfile=%q
[logging]
level="info"
[zookeeper]
servers=[%q]
root-path="/burrow"
[client-profile.p]
client-id="burrow"
kafka-version="1.0.0"
[cluster.local]
class-name="kafka"
servers=[%q]
client-profile="p"
topic-refresh=1
offset-refresh=1
[consumer.local]
class-name="kafka"
cluster="local"
servers=[%q]
client-profile="p"
[httpserver.default]
address=%q
[storage.default]
class-name="inmemory"
workers=2
intervals=2
min-distance=0
`, filepath.Join(dir, "burrow.pid"), zookeeper, kafka, kafka, listen)
	if err := os.WriteFile(filepath.Join(dir, "burrow.toml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	var out lockedBuffer
	cmd := exec.Command(path, "--config-dir", dir)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("end of Burrow's log:\n%s", out.end())
		}
	})
	return "http://" + listen + "/v3/kafka/local"
}

func fetchJSON(url string, into any) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w: %.200s", url, err, text)
	}
	return nil
}
