package tools

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"gregor/compat/harness"
	"gregor/compat/jars"
	"gregor/compat/peer"
)

var (
	against = flag.String("against", "", "version of Apache Kafka to run the scripts on: its differences are what fails")
	write   = flag.Bool("write", false, "with -against: write what that Apache Kafka prints into the scripts; without: mark in them what this broker prints otherwise")
	only    = flag.String("script", "", "name of the one script to run")
)

// toolVersion is one version of the tools.
type toolVersion struct{ name, release string }

func versions() []toolVersion { return []toolVersion{{"2.8", "2.8.2"}, {"4.4", "4.4.0"}} }

// classes are Kafka's scripts in bin with their classes, of 2.8 and of 4.4; "" is one that 2.8 has not.
func classes() map[string][2]string {
	const old, now = "kafka.admin.", "org.apache.kafka.tools."
	return map[string][2]string{
		"topics":              {old + "TopicCommand", now + "TopicCommand"},
		"configs":             {old + "ConfigCommand", now + "ConfigCommand"},
		"consumer-groups":     {old + "ConsumerGroupCommand", now + "consumer.group.ConsumerGroupCommand"},
		"groups":              {"", now + "GroupsCommand"},
		"log-dirs":            {old + "LogDirsCommand", now + "LogDirsCommand"},
		"delete-records":      {old + "DeleteRecordsCommand", now + "DeleteRecordsCommand"},
		"get-offsets":         {"kafka.tools.GetOffsetShell", now + "GetOffsetShell"},
		"leader-election":     {old + "LeaderElectionCommand", now + "LeaderElectionCommand"},
		"reassign-partitions": {old + "ReassignPartitionsCommand", now + "reassign.ReassignPartitionsCommand"},
		"features":            {old + "FeatureCommand", now + "FeatureCommand"},
		"client-metrics":      {"", now + "ClientMetricsCommand"},
		"cluster":             {"kafka.tools.ClusterTool", now + "ClusterTool"},
		"broker-api-versions": {old + "BrokerApiVersionsCommand", now + "BrokerApiVersionsCommand"},
		"acls":                {old + "AclCommand", now + "AclCommand"},
		"delegation-tokens":   {old + "DelegationTokenCommand", now + "DelegationTokenCommand"},
		"metadata-quorum":     {"", now + "MetadataQuorumCommand"},
		"transactions":        {"", now + "TransactionsCommand"},
	}
}

// TestScripts runs each script with the tools of each version.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	shells := map[string]*jars.Shell{}
	for _, v := range versions() {
		shells[v.name] = jars.NewShell(t, v.release)
		shells[v.name].Causes = true
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if *only != "" && *only != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			steps, tail := readScript(t, file)
			printed := make([]map[string][]string, len(steps))
			for i := range printed {
				printed[i] = map[string][]string{}
			}
			for _, v := range versions() {
				t.Run(v.name, func(t *testing.T) { runScript(t, shells[v.name], v, steps, printed) })
			}
			if *write && !t.Failed() {
				for i := range steps {
					if *against != "" {
						steps[i].rewrite(printed[i])
					} else {
						steps[i].mark(printed[i])
					}
				}
				if err := os.WriteFile(file, []byte(scriptText(steps, tail)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// stage is one run of a script.
type stage struct {
	*testing.T
	broker  *harness.Broker
	dir     string
	tmp     string
	client  *kgo.Client
	shell   *jars.Shell
	version toolVersion
}

// brokerFor starts a broker for one run and says what holds for it.
func brokerFor(t *testing.T, dir string) (b *harness.Broker, kinds []string) {
	t.Helper()
	quick := "group.initial.rebalance.delay.ms=0"
	if *against == "" {
		return harness.Start(t, harness.Config{Dir: dir, Set: []string{"broker.id=1", quick}}), []string{"gregor"}
	}
	start := peer.StartOnZooKeeper
	if *against >= "4" {
		start = peer.Start
	}
	return start(t, *against, dir, quick).Broker, []string{"kafka", "kafka-" + (*against)[:1]}
}

func runScript(t *testing.T, shell *jars.Shell, v toolVersion, steps []step, printed []map[string][]string) {
	dir := filepath.Join(t.TempDir(), "data")
	b, now := brokerFor(t, dir)
	now = append(now, v.name)
	s := &stage{T: t, broker: b, dir: dir, tmp: t.TempDir(), shell: shell, version: v}
	s.client = b.Client(t)
	for i := range steps {
		st := &steps[i]
		if !holds(st.only, now) {
			continue
		}
		got := s.do(st)
		printed[i][v.name] = got
		if *write {
			continue
		}
		if missing, extra := differ(st.wanted(now), got); len(missing)+len(extra) > 0 {
			t.Errorf("%s\n  not printed: %s\n  not wanted:  %s", st.text, strings.Join(missing, "\n               "), strings.Join(extra, "\n               "))
		}
	}
}

// do runs one command and returns what it printed, with names for what differs from run to run.
func (s *stage) do(st *step) []string {
	s.Helper()
	words := make([]string, len(st.words))
	for i, w := range st.words {
		words[i] = strings.NewReplacer("{tmp}", s.tmp, "{addr}", s.broker.Addr(), "{dir}", s.dir).Replace(w)
	}
	if own := s.own(words); own {
		return nil
	}
	class := classes()[words[0]][1]
	if s.version.name == "2.8" {
		class = classes()[words[0]][0]
	}
	if class == "" {
		s.Fatalf("%s: tools %s have no such command", st.text, s.version.name)
	}
	args := s.arguments(words)
	var lines []string
	for _, line := range s.shell.Run(class, args...) {
		if line = s.named(line); strings.Contains(line, st.grep) {
			lines = append(lines, line)
		}
	}
	return lines
}

// arguments are those of a command, with the address where the command wants it.
func (s *stage) arguments(words []string) []string {
	server := []string{"--bootstrap-server", s.broker.Addr()}
	switch {
	case words[0] == "get-offsets" && s.version.name == "2.8":
		server[0] = "--broker-list"
	case words[0] == "cluster":
		return append(slices.Clone(words[1:]), server...)
	}
	return append(server, words[1:]...)
}

// named puts names for what differs from run to run into a line.
func (s *stage) named(line string) string {
	host, port, _ := strings.Cut(s.broker.Addr(), ":")
	line = strings.NewReplacer(s.broker.Addr(), "{addr}", s.dir, "{dir}", s.tmp, "{tmp}", "localhost:"+port, "{addr}", host+":"+port, "{addr}", host+" "+port, "{host} {port}",
		"Configs: min.insync.replicas=1,", "Configs: ", "Configs: min.insync.replicas=1", "Configs:"). // which Kafka 4 sets for all brokers
		Replace(line)
	for _, p := range []struct{ pattern, name string }{
		{`(TopicId: |Cluster ID: )[A-Za-z0-9_-]{22}`, "${1}{uuid}"},
		{`(Epoch: )\d+`, "${1}{n}"},
		{`("size":|"totalBytes":|"usableBytes":)\d+`, "${1}{n}"},
		{`(LogDir: )\S+`, "${1}{dir}"},
	} {
		line = regexp.MustCompile(p.pattern).ReplaceAllString(line, p.name)
	}
	return line
}

// own does the steps that are not Kafka's.
func (s *stage) own(words []string) bool {
	s.Helper()
	switch words[0] {
	case "produce": // TOPIC PARTITION COUNT
		n := number(s.T, words[3])
		for i := range n { // one a second, the last now
			rec := &kgo.Record{Timestamp: time.Now().Add(time.Duration(i+1-n) * time.Second), Topic: words[1], Partition: int32(number(s.T, words[2])), Key: []byte("k"), Value: []byte("x")}
			if err := s.client.ProduceSync(s.Context(), rec).FirstErr(); err != nil {
				s.Fatal(err)
			}
		}
	case "commit": // GROUP TOPIC PARTITION OFFSET
		var all kadm.Offsets
		all.Add(kadm.Offset{Topic: words[2], Partition: int32(number(s.T, words[3])), At: int64(number(s.T, words[4])), LeaderEpoch: -1})
		if err := kadm.NewClient(s.client).CommitAllOffsets(context.Background(), words[1], all); err != nil {
			s.Fatal(err)
		}
	case "write": // FILE TEXT
		if err := os.WriteFile(filepath.Join(s.tmp, words[1]), []byte(strings.Join(words[2:], " ")), 0o644); err != nil {
			s.Fatal(err)
		}
	default:
		if _, ok := classes()[words[0]]; !ok {
			s.Fatalf("%q is no command", words[0])
		}
		return false
	}
	return true
}

func number(t *testing.T, word string) int {
	t.Helper()
	n, err := strconv.Atoi(word)
	if err != nil {
		t.Fatal(fmt.Errorf("in a script: %w", err))
	}
	return n
}
