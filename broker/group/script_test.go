package group

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var rewrite = flag.Bool("rewrite", false, "write what the scripts give into them")

// TestScripts runs the scenarios of testdata. Each line is an event; the indented lines below it are its effects. testdata/README.md has the words.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 20 {
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
	g    *Group
	now  Instant
	hold bool // writes are not durable by themselves
	open []Write
	log  []logged // durable
	out  []string
}

func newPlayer(t *testing.T) *player {
	p := &player{t: t, now: Instant{Wall: 1_000_000}}
	p.conf = Config{MinSession: 6 * time.Second, MaxSession: 30 * time.Minute, MaxSize: math.MaxInt32, Retention: 7 * 24 * time.Hour}
	p.g = New("g", &p.conf)
	return p
}

// logged is what is in the log: a record, in a producer's transaction if it has one, or the marker that ends that.
type logged struct {
	Record
	producer *Producer
	marker   bool
	commit   bool
}

// args are key=value words.
type args map[string]string

func (a args) duration(t *testing.T, key string, def time.Duration) time.Duration {
	s, ok := a[key]
	if !ok {
		return def
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

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

func (a args) pointer(key string) *string {
	if s, ok := a[key]; ok {
		return &s
	}
	return nil
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
		p.conf.InitialDelay = a.duration(p.t, "delay", p.conf.InitialDelay)
		p.conf.Retention = a.duration(p.t, "retention", p.conf.Retention)
		p.conf.MaxSize = int(a.number(p.t, "max", int64(p.conf.MaxSize)))
	case "after":
		p.after(who)
	case "join":
		p.show(p.g.Join(p.now, who, Caller{ClientID: "c", Host: "/h", Unique: who}, p.joinRequest(a)))
	case "sync":
		p.show(p.g.Sync(p.now, who, p.syncRequest(a)))
	case "heartbeat":
		r := kmsg.NewPtrHeartbeatRequest()
		r.MemberID, r.Generation, r.InstanceID = a["id"], int32(a.number(p.t, "gen", 0)), a.pointer("instance")
		p.show(p.g.Heartbeat(p.now, who, r))
	case "leave":
		p.show(p.g.Leave(p.now, who, p.leaveRequest(a)))
	case "commit":
		p.show(p.g.Commit(p.now, who, p.commit(a)))
	case "cancel":
		p.show(p.g.Cancel(p.now, who))
	default:
		p.playMore(words[0], who, plain, a)
	}
	if p.g.Next() <= p.now.Timer { // as the driver does
		p.show(p.g.Tick(p.now))
	}
}

func (p *player) playMore(verb, who string, plain []string, a args) {
	switch verb {
	case "txn-commit":
		c := &TxnCommit{Commit: *p.commit(a), Producer: Producer{ID: a.number(p.t, "producer", 7)}}
		p.show(p.g.CommitTxn(p.now, who, c))
	case "txn-end":
		m := logged{producer: &Producer{ID: a.number(p.t, "producer", 7)}, marker: true, commit: who == "commit"}
		p.log = append(p.log, m)
		p.show(p.g.EndTxn(p.now, m.producer.ID, m.commit))
	case "hold":
		p.hold = true
	case "stored":
		p.settle(nil)
	case "failed":
		p.settle(kerr.KafkaStorageError)
	case "state":
		p.state()
	case "offsets":
		p.offsets()
	case "restart":
		p.restart()
	case "delete":
		p.show(p.g.Delete(p.now, who))
	case "delete-offsets":
		if err := p.g.CheckOffsetDelete(); err != nil {
			p.say("%s", err.Message)
			return
		}
		for _, name := range plain[1:] {
			at := partitionOf(p.t, name)
			if p.g.Subscribed(at.Topic) {
				p.say("%s %s", name, kerr.GroupSubscribedToTopic.Message)
				continue
			}
			p.show(p.g.DeleteOffsets(p.now, who, []Partition{at}))
		}
	case "remove-topic":
		p.show(p.g.RemoveTopic(p.now, who))
	case "unload":
		p.show(p.g.Unload(p.now))
	case "expire":
		p.show(p.g.Expire(p.now))
	default:
		p.t.Fatalf("unknown word %q", verb)
	}
}

// after lets time pass, timer by timer.
func (p *player) after(d string) {
	wait, err := time.ParseDuration(d)
	if err != nil {
		p.t.Fatal(err)
	}
	end := p.now.Timer + wait
	for p.g.Next() <= end {
		at := max(p.g.Next(), p.now.Timer)
		p.pass(at)
		before := len(p.out)
		p.show(p.g.Tick(p.now))
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

// show prints effects and carries writes out.
func (p *player) show(e Effects) {
	for _, r := range e.Replies {
		p.say("%v <- %s", r.To, answerText(r))
	}
	for _, w := range e.Writes {
		in := ""
		if w.Producer != nil {
			in = fmt.Sprintf(" in transaction of %d", w.Producer.ID)
		}
		for _, r := range w.Records {
			p.say("write %s%s", recordText(p.t, r), in)
		}
		p.open = append(p.open, w)
	}
	if !p.hold {
		p.settle(nil)
	}
}

// settle reports all open writes.
func (p *player) settle(err *kerr.Error) {
	open := p.open
	p.open = nil
	for _, w := range open {
		if err == nil {
			for _, r := range w.Records {
				p.log = append(p.log, logged{Record: r, producer: w.Producer})
			}
		}
		p.show(p.g.Stored(p.now, w.Seq, err))
	}
}

// restart begins anew with what is in the log.
func (p *player) restart() {
	p.g, p.open = New("g", &p.conf), nil
	for _, r := range p.log {
		if r.marker {
			p.g.EndTxn(p.now, r.producer.ID, r.commit)
			continue
		}
		k, err := ParseKey(r.Key)
		switch {
		case err == nil && r.producer != nil:
			err = p.g.ReplayTxn(r.producer.ID, k, r.Value)
		case err == nil:
			err = p.g.Replay(k, r.Value)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
	p.show(p.g.Loaded(p.now))
}

func (p *player) state() {
	g := p.g
	d := g.Describe()
	p.say("%s generation=%d type=%q protocol=%q leader=%q", d.State, g.generation, d.ProtocolType, d.Protocol, g.leader)
	for _, m := range d.Members {
		p.say("member %s%s metadata=%q assignment=%q", m.MemberID, instanceText(m.InstanceID), m.ProtocolMetadata, m.MemberAssignment)
	}
	for _, id := range slices.Sorted(mapKeys(g.pending)) {
		p.say("pending %s", id)
	}
}

func (p *player) offsets() {
	var all []string
	for at, o := range p.g.AllCommitted {
		all = append(all, fmt.Sprintf("%s/%d=%d epoch=%d metadata=%q", at.Topic, at.Number, o.Offset, o.LeaderEpoch, o.Metadata))
	}
	for at := range p.g.AllUnstable {
		all = append(all, fmt.Sprintf("%s/%d unstable", at.Topic, at.Number))
	}
	slices.Sort(all)
	p.out = append(p.out, all...)
	if len(all) == 0 {
		p.say("none")
	}
}
