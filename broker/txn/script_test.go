package txn

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

var rewrite = flag.Bool("rewrite", false, "write what the scripts give into them")

// TestScripts runs the scenarios of testdata. Each line is an event; the indented lines below it are its effects. testdata/README.md has the words.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) { runScript(t, name) })
	}
}

func runScript(t *testing.T, name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	p := newPlayer(t)
	for _, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
		if strings.HasPrefix(line, "  ") {
			continue // an effect
		}
		got.WriteString(line + "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		p.play(strings.Fields(line))
		for _, out := range p.out {
			got.WriteString("  " + out + "\n")
		}
		p.out = nil
	}
	if got.String() == string(text) {
		return
	}
	if *rewrite {
		if err := os.WriteFile(name, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s gives something else (go test -run TestScripts -rewrite, and look at the difference):\n%s", name, firstDifference(string(text), got.String()))
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\n want %s\n got  %s", i+1, w[i], g[i])
		}
	}
	return "one is longer"
}

// player plays one script.
type player struct {
	t    *testing.T
	conf Config
	x    *Txn
	now  Instant
	hold bool // writes are not durable, and markers not written, by themselves
	open []Write
	mark []Markers
	log  []Record // durable
	next int64    // producer id
	out  []string
}

func newPlayer(t *testing.T) *player {
	p := &player{t: t, now: Instant{Wall: 1_000_000}, next: 100}
	p.conf = Config{MaxTimeout: 15 * time.Minute, AbortEvery: 10 * time.Second, ExpireAfter: 7 * 24 * time.Hour, ExpireEvery: time.Hour,
		Patience: 100 * time.Millisecond, MarkerRetry: 200 * time.Millisecond}
	p.x = New("t", &p.conf)
	return p
}

// args are key=value words.
type args map[string]string

func (a args) number(t *testing.T, key string, def int64) int64 {
	s, ok := a[key]
	if !ok {
		return def
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (a args) duration(t *testing.T, key string, def time.Duration) time.Duration {
	s, ok := a[key]
	if !ok || s == "none" {
		return def
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// producer is id/epoch.
func (a args) producer(t *testing.T, key string) Producer {
	s, ok := a[key]
	if !ok {
		return none()
	}
	return producerOf(t, s)
}

func producerOf(t *testing.T, s string) Producer {
	id, epoch, _ := strings.Cut(s, "/")
	n, err := strconv.ParseInt(id, 10, 64)
	e, err2 := strconv.ParseInt(epoch, 10, 16)
	if err != nil || err2 != nil {
		t.Fatalf("%q is no producer", s)
	}
	return Producer{n, int16(e)}
}

func (p *player) play(words []string) {
	a := args{}
	var plain []string
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			a[k] = v
		} else {
			plain = append(plain, w)
		}
	}
	who := ""
	if len(plain) > 0 {
		who = plain[0]
	}
	switch words[0] {
	case "config":
		p.conf.Patience = a.duration(p.t, "patience", p.conf.Patience)
		p.conf.ExpireAfter = a.duration(p.t, "expire", p.conf.ExpireAfter)
		p.next = a.number(p.t, "next-id", p.next)
	case "after":
		p.after(who)
	case "init":
		r := Init{Timeout: int32(a.duration(p.t, "timeout", time.Minute).Milliseconds()), Expected: a.producer(p.t, "as"), Fresh: p.fresh()}
		r.TwoPhase, r.Keep = a["timeout"] == "none", slices.Contains(plain, "keep")
		p.show(p.x.Init(p.now, who, r))
	case "add":
		p.show(p.x.Add(p.now, who, a.producer(p.t, "as"), partitionsOf(p.t, plain[1:]), int16(a.number(p.t, "tv", 0))))
	case "admit":
		for _, at := range partitionsOf(p.t, plain) {
			p.say("%s/%d %s", at.Topic, at.Number, nameOf(p.x.Admit(a.producer(p.t, "as"), at)))
		}
	case "commit", "abort":
		r := End{Producer: a.producer(p.t, "as"), Commit: words[0] == "commit", Bump: a.number(p.t, "tv", 0) == 2, Fresh: p.fresh()}
		p.show(p.x.End(p.now, who, r))
	default:
		p.playMore(words[0], a, plain)
	}
}

func (p *player) playMore(verb string, a args, plain []string) {
	switch verb {
	case "hold":
		p.hold = true
	case "release":
		p.hold = false
		p.settle(nil)
	case "stored":
		p.stored(nil)
	case "failed":
		p.stored(kerr.KafkaStorageError)
	case "marked":
		p.marked(partitionsOf(p.t, plain), nil)
	case "unmarked":
		p.marked(partitionsOf(p.t, plain), kerr.KafkaStorageError)
	case "state":
		p.state()
	case "unload":
		p.show(p.x.Unload(p.now))
	case "restart":
		p.restart()
	case "value": // a record that another coordinator wrote
		m := meta{producer: a.producer(p.t, "as"), lastEpoch: -1, previousID: -1, nextID: -1, nextEpoch: -1, timeout: 60_000, started: p.now.Wall, updated: p.now.Wall}
		m.partitions, m.client = union(nil, partitionsOf(p.t, plain)), int16(a.number(p.t, "tv", 0))
		m.state = State(slices.IndexFunc(States(), func(s State) bool { return s.String() == a["state"] }))
		p.log = append(p.log, Record{keyOf("t"), valueOf(&m)})
	default:
		p.t.Fatalf("unknown word %q", verb)
	}
}

// fresh is a producer id when one may be needed, as the driver gives it.
func (p *player) fresh() int64 {
	if !p.x.NeedsID() {
		return -1
	}
	p.next++
	return p.next - 1
}

func partitionsOf(t *testing.T, words []string) []Partition {
	var all []Partition
	for _, s := range words {
		topic, number, _ := strings.Cut(s, "/")
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Partition{topic, int32(n)})
	}
	return all
}

// after lets time pass, timer by timer.
func (p *player) after(d string) {
	wait, err := time.ParseDuration(d)
	if err != nil {
		p.t.Fatal(err)
	}
	end := p.now.Timer + wait
	for p.x.Next() <= end {
		at := max(p.x.Next(), p.now.Timer)
		p.pass(at)
		before := len(p.out)
		p.show(p.x.Tick(p.now))
		if len(p.out) > before {
			p.out = slices.Insert(p.out, before, fmt.Sprintf("at %v", at))
		}
	}
	p.pass(end)
}

func (p *player) pass(to time.Duration) {
	p.now.Wall += (to - p.now.Timer).Milliseconds()
	p.now.Timer = to
}

func (p *player) say(format string, a ...any) { p.out = append(p.out, fmt.Sprintf(format, a...)) }

// show prints effects and carries them out.
func (p *player) show(e Effects) {
	for _, r := range e.Replies {
		text := nameOf(r.Err)
		if r.Err == nil {
			text = fmt.Sprintf("NONE %d/%d", r.Producer.ID, r.Producer.Epoch)
			if r.Ongoing != nil {
				text += fmt.Sprintf(" ongoing %d/%d", r.Ongoing.ID, r.Ongoing.Epoch)
			}
		}
		p.say("%v <- %s", r.To, text)
	}
	for _, w := range e.Writes {
		for _, r := range w.Records {
			p.say("write %s", recordText(p.t, r))
		}
		p.open = append(p.open, w)
	}
	for _, m := range e.Markers {
		kind := "ABORT"
		if m.Commit {
			kind = "COMMIT"
		}
		p.say("markers %s %d/%d tv=%d to %s", kind, m.Producer.ID, m.Producer.Epoch, m.Version, partitionsText(m.Partitions))
		p.mark = append(p.mark, m)
	}
	if !p.hold {
		p.settle(nil)
	}
}

// settle lets everything end that is on its way.
func (p *player) settle(err *kerr.Error) {
	for len(p.open) > 0 || len(p.mark) > 0 {
		p.stored(err)
		for len(p.mark) > 0 {
			p.marked(p.mark[len(p.mark)-1].Partitions, nil)
		}
	}
}

// stored reports all open writes.
func (p *player) stored(err *kerr.Error) {
	open := p.open
	p.open = nil
	for _, w := range open {
		if err == nil {
			p.log = append(p.log, w.Records...)
		}
		p.show(p.x.Stored(p.now, w.Seq, err))
	}
}

// marked reports markers of the newest round.
func (p *player) marked(all []Partition, err *kerr.Error) {
	if len(p.mark) == 0 {
		p.t.Fatal("no marker was asked for")
	}
	all = slices.Clone(all)
	m := &p.mark[len(p.mark)-1]
	round := m.Round
	m.Partitions = slices.DeleteFunc(m.Partitions, func(at Partition) bool { return slices.Contains(all, at) })
	if len(m.Partitions) == 0 {
		p.mark = p.mark[:len(p.mark)-1]
	}
	for _, at := range all {
		p.show(p.x.Marked(p.now, round, at, err))
	}
}

// restart begins anew with what is in the log.
func (p *player) restart() {
	p.x, p.open, p.mark = New("t", &p.conf), nil, nil
	for _, r := range p.log {
		if id, ok, err := ParseKey(r.Key); err != nil || !ok || id != "t" {
			p.t.Fatal(id, ok, err)
		}
		if err := p.x.Replay(r.Value); err != nil {
			p.t.Fatal(err)
		}
	}
	p.show(p.x.Loaded(p.now))
}

func (p *player) state() {
	d := p.x.Describe()
	p.say("%s %d/%d timeout=%dms started=%d %s", d.State, d.ProducerID, d.ProducerEpoch, d.TimeoutMillis, d.StartTimestamp, partitionsText(p.x.meta.partitions))
}

func nameOf(err *kerr.Error) string {
	if err == nil {
		return "NONE"
	}
	return err.Message
}

func partitionsText(all []Partition) string {
	words := []string{}
	for _, p := range all {
		words = append(words, fmt.Sprintf("%s/%d", p.Topic, p.Number))
	}
	return "[" + strings.Join(words, " ") + "]"
}

func recordText(t *testing.T, r Record) string {
	if _, ok, err := ParseKey(r.Key); err != nil || !ok {
		t.Fatal(err)
	}
	if r.Value == nil {
		return "tombstone"
	}
	m, err := parseValue(r.Value)
	if err != nil {
		t.Fatal(err)
	}
	out := fmt.Sprintf("%s %d/%d", m.state, m.producer.ID, m.producer.Epoch)
	if m.kept() {
		out += fmt.Sprintf(" next=%d/%d", m.nextID, m.nextEpoch)
	} else if m.nextID >= 0 {
		out += fmt.Sprintf(" next=%d", m.nextID)
	}
	if len(m.partitions) > 0 {
		out += " " + partitionsText(m.partitions)
	}
	return out
}
