package broker

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const adminFolder = "testdata/admin"

// adminAnswer is the answer to one step at one version.
type adminAnswer struct {
	step    string
	version int16
	name    string
	tree    any
}

func (a *adminAnswer) title() string { return fmt.Sprintf("%s v%d: %s", a.step, a.version, a.name) }

// TestAdminAsKafka plays the scripts of testdata/admin at every version that a version of Kafka has and compares the answers, field by field, with
// those that it gave (testdata/admin/kafka-VERSION, written by TestRecordAdmin). What may differ, and why, is in testdata/admin/differences; an entry that
// nothing needs fails.
func TestAdminAsKafka(t *testing.T) {
	scripts := adminScripts(t)
	allowed := readDifferences(t)
	folders, err := filepath.Glob(adminFolder + "/kafka-*")
	if err != nil || len(folders) != 3 {
		t.Fatalf("folders with answers: %v, %v", folders, err)
	}
	played := 0
	for _, folder := range folders {
		version := strings.TrimPrefix(filepath.Base(folder), "kafka-")
		t.Run(version, func(t *testing.T) {
			b := startBroker(t, t.TempDir(), "broker.id", "1", "offsets.topic.replication.factor", "1", // as Kafka was started
				"transaction.state.log.replication.factor", "1", "transaction.state.log.min.isr", "1")
			ranges := b.servedOf(t, readRanges(t, folder))
			for i := range scripts {
				t.Run(scripts[i].name, func(t *testing.T) {
					played++
					p := newAdminPlay(t, b.Addr(), ranges, false)
					p.others = otherScripts(scripts, i)
					compareAnswers(t, version, &scripts[i], p.run(&scripts[i]), allowed)
				})
			}
		})
	}
	if played < len(scripts)*len(folders) {
		return // a part was asked for
	}
	for _, d := range allowed {
		if !d.used {
			t.Errorf("differences: line %d is not needed any more: %s", d.line, d.text)
		}
	}
}

// TestAdminScriptsAskAll: each admin API was asked at each version that a version of Kafka has.
func TestAdminScriptsAskAll(t *testing.T) {
	keys := []int16{3, 19, 20, 21, 29, 30, 31, 32, 33, 34, 35, 37, 38, 39, 40, 41, 43, 44, 45, 46, 48, 49, 50, 51, 57, 60, 61, 64, 74, 75}
	folders, err := filepath.Glob(adminFolder + "/kafka-*")
	if err != nil || len(folders) != 3 {
		t.Fatalf("folders with answers: %v, %v", folders, err)
	}
	for _, folder := range folders {
		files, err := filepath.Glob(folder + "/*.txt")
		if err != nil {
			t.Fatal(err)
		}
		asked := map[string]bool{}
		for _, file := range files {
			for title := range readAnswers(t, file) {
				step, _, _ := strings.Cut(title, ":")
				asked[step] = true
			}
		}
		ranges := readRanges(t, folder)
		for _, key := range keys {
			span, ok := ranges[key]
			for v := span[0]; ok && v <= span[1]; v++ {
				if step := fmt.Sprintf("%s v%d", kmsg.NameForKey(key), v); !asked[step] {
					t.Errorf("%s: %s was not asked", folder, step)
				}
			}
		}
	}
}

// TestRecordAdmin writes the answers of another broker down.
func TestRecordAdmin(t *testing.T) {
	if *recordFrom == "" {
		t.Skip("needs -record ADDRESS of an Apache Kafka, and -record-to NAME.txt")
	}
	folder := filepath.Join(adminFolder, strings.TrimSuffix(*recordTo, ".txt"))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	ranges := rangesOf(t, *recordFrom)
	head, err := json.Marshal(ranges)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "versions.json"), append(head, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	scripts := adminScripts(t)
	for i := range scripts {
		t.Run(scripts[i].name, func(t *testing.T) {
			p := newAdminPlay(t, *recordFrom, ranges, true)
			p.others = otherScripts(scripts, i)
			text := transcript(p.run(&scripts[i]))
			if text == "" {
				return // a version without these requests
			}
			if err := os.WriteFile(filepath.Join(folder, scripts[i].name+".txt"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func otherScripts(scripts []adminScript, but int) (names []string) {
	for i := range scripts {
		if i != but {
			names = append(names, scripts[i].name)
		}
	}
	return names
}

func readRanges(t *testing.T, folder string) map[int16][2]int16 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "versions.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ranges map[int16][2]int16
	if err := json.Unmarshal(text, &ranges); err != nil {
		t.Fatal(err)
	}
	return ranges
}

// servedOf takes the keys out that are not built.
func (b *testBroker) servedOf(t *testing.T, ranges map[int16][2]int16) map[int16][2]int16 {
	t.Helper()
	for key, span := range ranges {
		low, high, ok := b.supports(key)
		if !ok {
			delete(ranges, key)
		} else if low > span[0] || high < span[1] {
			t.Errorf("key %d is served from v%d to v%d, by Kafka from v%d to v%d", key, low, high, span[0], span[1])
			ranges[key] = [2]int16{max(low, span[0]), min(high, span[1])}
		}
	}
	return ranges
}

// transcript writes answers down; those of versions that follow each other are written once when they are the same.
func transcript(answers []adminAnswer) string {
	var out strings.Builder
	for i := 0; i < len(answers); {
		a, j := &answers[i], i+1
		for j < len(answers) && answers[j].step == a.step && answers[j].name == a.name && reflect.DeepEqual(answers[j].tree, a.tree) {
			j++
		}
		versions := fmt.Sprint("v", a.version)
		if j > i+1 {
			versions += fmt.Sprint("-v", answers[j-1].version)
		}
		fmt.Fprintf(&out, "%s %s: %s\n  %s\n", a.step, versions, a.name, pretty(a.tree, "  "))
		i = j
	}
	return out.String()
}

// pretty is JSON with short things on one line.
func pretty(tree any, indent string) string {
	raw, err := json.Marshal(tree)
	if err != nil {
		return err.Error()
	}
	if len(raw)+len(indent) < 200 {
		return string(raw)
	}
	var parts []string
	open, end := "[", "]"
	switch x := tree.(type) {
	case []any:
		for _, e := range x {
			parts = append(parts, pretty(e, indent+"  "))
		}
	case map[string]any:
		open, end = "{", "}"
		for k, e := range x {
			parts = append(parts, fmt.Sprintf("%q:%s", k, pretty(e, indent+"  ")))
		}
		sort.Strings(parts)
	default:
		return string(raw)
	}
	return open + "\n" + indent + "  " + strings.Join(parts, ",\n"+indent+"  ") + "\n" + indent + end
}

// readAnswers reads a transcript: title of a step to its tree.
func readAnswers(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	out := map[string]any{}
	heads := regexp.MustCompile(`(?m)^(\w+) v(\d+)(?:-v(\d+))?: (.*)$`)
	at := heads.FindAllStringSubmatchIndex(string(text), -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		var tree any
		if err := json.Unmarshal(text[m[1]:end], &tree); err != nil {
			t.Fatalf("%s: %s: %v", file, text[m[0]:m[1]], err)
		}
		var first, last int16
		fmt.Sscan(string(text[m[4]:m[5]]), &first)
		if last = first; m[6] >= 0 {
			fmt.Sscan(string(text[m[6]:m[7]]), &last)
		}
		for v := first; v <= last; v++ {
			a := adminAnswer{step: string(text[m[2]:m[3]]), version: v, name: string(text[m[8]:m[9]])}
			out[a.title()] = tree
		}
	}
	return out
}

func compareAnswers(t *testing.T, version string, s *adminScript, got []adminAnswer, allowed []*difference) {
	t.Helper()
	want := readAnswers(t, filepath.Join(adminFolder, "kafka-"+version, s.name+".txt"))
	for i := range got {
		a := &got[i]
		kafka, ok := want[a.title()]
		if !ok {
			t.Errorf("%s: Kafka was not asked, run make record", a.title())
			continue
		}
		raw, err := json.Marshal(a.tree)
		if err != nil {
			t.Fatal(err)
		}
		var is any
		if err := json.Unmarshal(raw, &is); err != nil {
			t.Fatal(err)
		}
		for _, d := range unequal("", is, kafka) {
			if !permitted(allowed, [4]string{version, s.name, a.title(), d.path}, d.kinds()) {
				t.Errorf("%s\n  at    %s\n  got   %s\n  Kafka %s", a.title(), d.path, d.got, d.want)
			}
		}
	}
}
