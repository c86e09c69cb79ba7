package broker

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	recordFrom = flag.String("record", "", "address of an Apache Kafka whose answers the TestRecord tests are to write down")
	recordTo   = flag.String("record-to", "", "file of testdata/groups and testdata/transactions for them")
)

// played is one request with its answer.
type played struct{ name, answer string }

// play sends requests to a broker and notes the answers, in words that are the same for any two brokers.
type play struct {
	t      *testing.T
	addr   string
	c      *client
	ranges map[int16][2]int16 // versions of the broker
	count  map[string]int     // of answers with a name
	// renamed takes out of an answer, as JSON, what differs between any two brokers.
	renamed func(any) any
	// learn sees an answer before that.
	learn func(kmsg.Response)
	out   []played
}

// playFunc sends all requests of one subject that a broker with these versions knows.
type playFunc func(t *testing.T, addr string, ranges map[int16][2]int16) []played

func newPlay(t *testing.T, addr string, ranges map[int16][2]int16) *play {
	p := &play{t: t, addr: addr, ranges: ranges, count: map[string]int{}}
	p.c = p.dial()
	return p
}

func (p *play) dial() *client {
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(2 * time.Minute))
	return &client{t: p.t, conn: conn, id: "play"}
}

// rangesOf asks a broker for its versions.
func rangesOf(t *testing.T, addr string) map[int16][2]int16 {
	p := newPlay(t, addr, nil)
	ranges := map[int16][2]int16{}
	for _, k := range ask[*kmsg.ApiVersionsResponse](p.c, 0, kmsg.NewPtrApiVersionsRequest()).ApiKeys {
		ranges[k.ApiKey] = [2]int16{k.MinVersion, k.MaxVersion}
	}
	return ranges
}

// knows reports if the broker has a version of a request.
func (p *play) knows(key, version int16) bool {
	span, ok := p.ranges[key]
	return ok && version >= span[0] && version <= span[1]
}

// step sends one request, if the broker has the version, and notes the answer.
func (p *play) step(name string, version int16, r kmsg.Request) kmsg.Response {
	p.t.Helper()
	if !p.knows(r.Key(), version) {
		return nil
	}
	if version == 0 && (r.Key() == 8 || r.Key() == 9) {
		return nil // Kafka has these offsets in ZooKeeper, or does not know them
	}
	r.SetVersion(version)
	p.c.send(r)
	resp := p.c.receive(r, p.c.next)
	p.note(name, resp)
	return resp
}

// upTo sends a request at the version, or the nearest that the broker knows.
func (p *play) upTo(name string, version int16, r kmsg.Request) kmsg.Response {
	p.t.Helper()
	span := p.ranges[r.Key()]
	return p.step(name, min(max(version, span[0]), span[1]), r)
}

func (p *play) note(name string, resp kmsg.Response) {
	p.t.Helper()
	if p.learn != nil {
		p.learn(resp)
	}
	raw, err := json.Marshal(resp)
	if err != nil {
		p.t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		p.t.Fatal(err)
	}
	raw, err = json.Marshal(p.renamed(tree))
	if err != nil {
		p.t.Fatal(err)
	}
	name = fmt.Sprintf("%s v%d: %s", kmsg.NameForKey(resp.Key()), resp.GetVersion(), name)
	if p.count[name]++; p.count[name] > 1 {
		name += fmt.Sprint(" #", p.count[name])
	}
	p.out = append(p.out, played{name, string(raw)})
}

// asKafka plays requests at every version and compares the answers, field by field, with those that Apache Kafka gave to the same ones, in a
// folder of testdata.
func asKafka(t *testing.T, folder string, settings []string, run playFunc, deviates func(file, step string) bool) {
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded answers: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			if n := sameAnswers(t, name, settings, run, deviates); n < 200 {
				t.Fatalf("only %d answers", n)
			}
		})
	}
}

// sameAnswers compares with one file and returns how many answers that has.
func sameAnswers(t *testing.T, name string, settings []string, run playFunc, deviates func(file, step string) bool) int {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b := startBroker(t, t.TempDir(), settings...)
	got := map[string]string{}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var ranges map[int16][2]int16
	if err := json.Unmarshal([]byte(lines[0]), &ranges); err != nil {
		t.Fatal(err)
	}
	lines = lines[1:]
	for _, s := range run(t, b.Addr(), ranges) {
		got[s.name] = s.answer
	}
	for i := 0; i+1 < len(lines); i += 2 {
		if want, is := strings.TrimSpace(lines[i+1]), got[lines[i]]; is != want && !deviates(name, lines[i]) {
			t.Errorf("%s\n got   %s\n Kafka %s", lines[i], is, want)
		}
	}
	return len(lines) / 2
}

// writeDown writes the answers of another broker to a folder of testdata.
func writeDown(t *testing.T, folder string, run playFunc) {
	if *recordFrom == "" {
		t.Skip("needs -record ADDRESS of an Apache Kafka, and -record-to NAME.txt")
	}
	ranges := rangesOf(t, *recordFrom)
	head, err := json.Marshal(ranges)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.Write(append(head, '\n'))
	for _, s := range run(t, *recordFrom, ranges) {
		fmt.Fprintf(&out, "%s\n  %s\n", s.name, s.answer)
	}
	if err := os.WriteFile(filepath.Join("testdata", folder, *recordTo), []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
