package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write CONFIG.md anew")

const tableFile = "../../CONFIG.md"

// TestTable: CONFIG.md has every key as the code has it. go generate ./broker/config writes it.
func TestTable(t *testing.T) {
	want := table()
	if *update {
		if err := os.WriteFile(tableFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("CONFIG.md is not what the keys are: run go generate ./broker/config")
	}
}

// TestEveryKeyOfKafka: there is none that the table lacks.
func TestEveryKeyOfKafka(t *testing.T) {
	text, err := os.ReadFile("testdata/kafka-broker-keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for name := range strings.Lines(string(text)) {
		if name = strings.TrimSpace(name); name == "" || name[0] == '#' {
			continue
		}
		seen++
		if brokerCatalog().byName[name] == nil {
			t.Errorf("Kafka's %s is not known", name)
		}
	}
	if seen < 400 {
		t.Errorf("only %d keys", seen)
	}
	for section, reason := range map[string]string{"accepted": "", "refused": ""} {
		for _, k := range keysOf(brokerCatalog()) {
			if text, ok := strings.CutPrefix(status(k), section+": "); ok && text == reason {
				t.Errorf("%s is %s without a reason", k.name, section)
			}
		}
	}
}

func table() []byte {
	var b bytes.Buffer
	broker := brokerCatalog()
	groups := map[string][]*key{}
	for _, name := range broker.names {
		k := broker.byName[name]
		kind, _, _ := strings.Cut(status(k), ":")
		groups[kind] = append(groups[kind], k)
	}
	fmt.Fprintf(&b, `# Configuration keys

Every key of Apache Kafka 0.8 to 4.4 and the few of gregor, with what becomes of each. Made from the code by %[1]sgo generate ./broker/config%[1]s; do not edit.

- *scope*: where the key is set. A broker's key is one of server.properties, the environment or a flag; those that change at run time can also be set for one broker or for all
  with %[1]skafka-configs%[1]s. Topics, groups and client metrics have keys of their own.
- *changes*: at run time, without a restart, by %[1]skafka-configs%[1]s or by %[1]sgregor reload%[1]s; or at the next start.
- *here*: honoured; accepted, which is: read, checked, kept, shown, and named in the log at the start, but without effect, with what happens instead; or refused, which is: the start
  fails and says what to do, because records would be lost without what the key asks for.

%[2]d keys of the broker: %[3]d honoured, %[4]d accepted, %[5]d refused. Of topics: %[6]d, of groups: %[7]d, of client metrics: %[8]d.

Loggers (scope broker logger, values TRACE, DEBUG, INFO, WARN, ERROR, FATAL, at run time only and not kept): root, gregor.broker, gregor.controller, gregor.log, gregor.wire.

`, "`", len(broker.names), len(groups["honoured"]), len(groups["accepted"]), len(groups["refused"]), len(topicCatalog().names), len(groupCatalog().names), len(clientMetricsCatalog().names))
	rows(&b, "Broker: honoured", "broker", groups["honoured"])
	rows(&b, "Topic", "topic", keysOf(topicCatalog()))
	rows(&b, "Group", "group", keysOf(groupCatalog()))
	rows(&b, "Client metrics", "client metrics", keysOf(clientMetricsCatalog()))
	rows(&b, "Broker: refused", "broker", groups["refused"])
	rows(&b, "Broker: accepted", "broker", groups["accepted"])
	b.WriteString("Keys whose names are composed: `listener.name.<listener>.max.connections` and `listener.name.<listener>.max.connection.creation.rate` are honoured, at run time too. " +
		"`listener.name.<listener>.<key>` with other keys, `rsm.config.<key>`, `rlmm.config.<key>` and `config.providers.<name>.<key>` are accepted.\n" +
		"Passwords of listeners are refused at run time. A key that nobody knows is named in the log, with the nearest that is known.\n")
	return b.Bytes()
}

func keysOf(c catalog) []*key {
	var all []*key
	for _, name := range c.names {
		all = append(all, c.byName[name])
	}
	return all
}

// status is the last column.
func status(k *key) string {
	switch {
	case k.refused != "":
		return "refused: " + k.refused
	case k.name == "remote.storage.enable":
		return "accepted, true is refused: " + k.idle
	case k.idle != "":
		return "accepted: " + k.idle
	}
	return "honoured: " + k.doc
}

func rows(b *bytes.Buffer, title, scope string, keys []*key) {
	fmt.Fprintf(b, "## %s\n\n| key | type | default | scope | changes | here |\n| --- | --- | --- | --- | --- | --- |\n", title)
	for _, k := range keys {
		changes := "at run time"
		if scope == "broker" && !k.dynamic {
			changes = "next start"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s | %s |\n", k.name, k.typ, shownDefault(k), scope, changes, strings.ReplaceAll(status(k), "|", `\|`))
	}
	b.WriteString("\n")
}

func shownDefault(k *key) string {
	var from []string
	for _, l := range k.from {
		from = append(from, "`"+l.name+"`")
	}
	switch {
	case len(from) > 0:
		return strings.Join(from, ", ")
	case k.null:
		return "none"
	case k.def == "":
		return "empty"
	}
	return "`" + k.def + "`"
}
