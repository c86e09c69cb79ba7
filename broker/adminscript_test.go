package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"gregor/log/batch"
)

// Scripts are the files testdata/admin/NAME.txt: comments (#), directives (!) and steps.
//
//	! topic NAME PARTITIONS [key=value…]    a topic that the steps need
//	! records NAME PARTITION COUNT          batches of one record in it
//	! producer NAME PARTITION COUNT         the same, by an idempotent producer
//	DeleteRecords v1-v2: below the start    request, versions (all when there are none, newest), name of the step
//	  {Topics: [{Topic: "$s-a"}]}           the request's fields as JSON; keys need no quotes
//
// $s is the script's name, which all that it makes begins with; $v the version; $dir the log directory; $x(N) is N letters. A topic id is given by
// the topic's name.

// adminScript is one file.
type adminScript struct {
	name  string
	steps []adminStep
}

// adminStep is a directive or a request at several versions.
type adminStep struct {
	directive   []string
	key         int16
	first, last int16 // versions; -1 is the newest
	name, body  string
}

func adminScripts(t *testing.T) []adminScript {
	t.Helper()
	files, err := filepath.Glob("testdata/admin/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	var out []adminScript
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s := adminScript{name: strings.TrimSuffix(filepath.Base(name), ".txt")}
		if err := s.parse(string(text)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, s)
	}
	return out
}

func (s *adminScript) parse(text string) error {
	key := regexp.MustCompile(`([{,]\s*)([A-Z]\w*):`)
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "" || line[0] == '#':
		case line[0] == '!':
			s.steps = append(s.steps, adminStep{directive: strings.Fields(strings.ReplaceAll(line[1:], "$s", s.name))})
		case line[0] == ' ' && len(s.steps) > 0:
			s.steps[len(s.steps)-1].body += key.ReplaceAllString(line, `$1"$2":`) + "\n"
		default:
			step, err := parseStep(line)
			if err != nil {
				return fmt.Errorf("line %d: %w", i+1, err)
			}
			s.steps = append(s.steps, step)
		}
	}
	return nil
}

func parseStep(line string) (adminStep, error) {
	head, name, ok := strings.Cut(line, ": ")
	s := adminStep{key: -1, name: name, last: 99}
	words := strings.Fields(head)
	for k := int16(0); k <= kmsg.MaxKey; k++ {
		if len(words) > 0 && kmsg.NameForKey(k) == words[0] {
			s.key = k
		}
	}
	if !ok || s.key < 0 || len(words) > 2 {
		return s, fmt.Errorf("%q is no step", line)
	}
	if len(words) == 1 {
		return s, nil
	}
	if words[1] == "newest" {
		s.first, s.last = -1, -1
		return s, nil
	}
	from, to, ranged := strings.Cut(words[1], "-")
	if !ranged {
		to = from
	}
	for at, word := range map[*int16]string{&s.first: from, &s.last: to} {
		n, err := strconv.Atoi(strings.TrimPrefix(word, "v"))
		if err != nil {
			return s, fmt.Errorf("%q: %w", line, err)
		}
		*at = int16(n)
	}
	return s, nil
}

// adminPlay runs scripts against one broker.
type adminPlay struct {
	t      *testing.T
	addr   string
	c      *client
	ranges map[int16][2]int16 // versions that are asked
	slow   bool               // it is Kafka, whose changes take a moment until they are seen
	dirty  bool               // something was changed since the last look
	dir    string             // the log directory
	others []string           // names of the other scripts
}

func newAdminPlay(t *testing.T, addr string, ranges map[int16][2]int16, slow bool) *adminPlay {
	p := &adminPlay{t: t, addr: addr, ranges: ranges, slow: slow}
	p.c = newPlay(t, addr, ranges).c
	r := kmsg.NewPtrDescribeLogDirsRequest()
	p.dir = ask[*kmsg.DescribeLogDirsResponse](p.c, 1, r).Dirs[0].Dir
	return p
}

// run plays one script.
func (p *adminPlay) run(s *adminScript) (out []adminAnswer) {
	p.t.Helper()
	for i := range s.steps {
		step := &s.steps[i]
		if step.directive != nil {
			p.prepare(step.directive)
			continue
		}
		span, ok := p.ranges[step.key]
		first, last := max(step.first, span[0]), min(step.last, span[1])
		if step.last < 0 {
			first, last = span[1], span[1]
		}
		for v := first; ok && v <= last; v++ {
			a := adminAnswer{step: kmsg.NameForKey(step.key), version: v, name: step.name}
			a.tree = p.ask(s, step, v)
			out = append(out, a)
		}
	}
	return out
}

// ask sends one request and returns the answer as a tree.
func (p *adminPlay) ask(s *adminScript, step *adminStep, v int16) any {
	p.t.Helper()
	r := kmsg.RequestForKey(step.key)
	if v > r.MaxVersion() {
		p.t.Fatalf("kmsg has key %d up to v%d only", step.key, r.MaxVersion())
	}
	body := strings.NewReplacer("$s", s.name, "$v", fmt.Sprint("_v", v), "$dir", p.dir).Replace(step.body)
	body = regexp.MustCompile(`\$x\((\d+)\)`).ReplaceAllStringFunc(body, func(x string) string {
		n, _ := strconv.Atoi(x[3 : len(x)-1])
		return strings.Repeat("x", n)
	})
	if err := p.fillRequest(r, body); err != nil {
		p.t.Fatalf("%s: step %q: %v", s.name, step.name, err)
	}
	r.SetVersion(v)
	p.settle(step.key)
	resp, err := p.exchange(r)
	if err != nil {
		p.c = newPlay(p.t, p.addr, p.ranges).c
		return err.Error()
	}
	tree := (&normaliser{script: s.name, dir: p.dir, others: p.others}).tree(resp)
	p.dirty = p.dirty && !allRefused(tree)
	return tree
}

// allRefused reports if an answer's results all have errors.
func allRefused(tree any) bool {
	m, _ := tree.(map[string]any)
	if m["ErrorCode"] != nil {
		return true
	}
	for _, field := range m {
		list, _ := field.([]any)
		for _, e := range list {
			if result, _ := e.(map[string]any); result["ErrorCode"] == nil {
				return false
			}
		}
	}
	return true
}

// settle waits until Kafka shows what was changed.
func (p *adminPlay) settle(key int16) {
	changes := false
	switch key {
	case 19, 20, 21, 30, 31, 33, 34, 37, 43, 44, 45, 49, 51, 57:
		changes = true
	}
	if p.slow && (p.dirty || changes) {
		<-time.After(100 * time.Millisecond)
	}
	p.dirty = changes
}

// exchange sends a request and reads the answer.
func (p *adminPlay) exchange(r kmsg.Request) (kmsg.Response, error) {
	p.t.Helper()
	p.c.send(r)
	limit := time.Minute
	if p.slow {
		limit = 5 * time.Second // some versions of Kafka never answer some requests
	}
	if err := p.c.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(p.c.conn, size[:]); errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, errors.New("no answer")
	} else if err != nil {
		return nil, errors.New("connection closed")
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(p.c.conn, frame); err != nil {
		return nil, err
	}
	in := kbin.Reader{Src: frame}
	if got := in.Int32(); got != p.c.next {
		p.t.Fatalf("correlation id is %d, want %d", got, p.c.next)
	}
	if r.IsFlexible() {
		kmsg.SkipTags(&in)
	}
	resp := r.ResponseKind()
	return resp, resp.ReadFrom(in.Src)
}

// prepare does what a directive says.
func (p *adminPlay) prepare(words []string) {
	p.t.Helper()
	n := func(i int) int32 {
		v, err := strconv.Atoi(words[i])
		if err != nil {
			p.t.Fatalf("%v: %v", words, err)
		}
		return int32(v)
	}
	switch words[0] {
	case "topic":
		p.makeTopic(words[1], n(2), words[3:])
	case "records":
		p.produce(words[1], n(2), n(3), noProducer())
	case "producer":
		r := kmsg.NewPtrInitProducerIDRequest()
		var got *kmsg.InitProducerIDResponse
		waitFor(p.t, func() bool {
			got = ask[*kmsg.InitProducerIDResponse](p.c, 1, r)
			return got.ErrorCode == 0
		})
		p.produce(words[1], n(2), n(3), batch.Producer{ID: got.ProducerID, Epoch: got.ProducerEpoch})
	default:
		p.t.Fatalf("no directive %q", words[0])
	}
}

// produce writes batches of one record.
func (p *adminPlay) produce(topic string, partition, count int32, as batch.Producer) {
	p.t.Helper()
	for i := range count {
		b := producerBatch(p.t, 0, as.ID, as.Epoch, i, record{"k", "v", time.Now().UnixMilli()})
		waitFor(p.t, func() bool {
			r := produceRequest(topic, partition, -1, b)
			return ask[*kmsg.ProduceResponse](p.c, 7, r).Topics[0].Partitions[0].ErrorCode == 0
		})
	}
}

func (p *adminPlay) makeTopic(name string, partitions int32, configs []string) {
	p.t.Helper()
	r := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
	for _, kv := range configs {
		key, value, _ := strings.Cut(kv, "=")
		topic.Configs = append(topic.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: key, Value: &value})
	}
	r.Topics, r.TimeoutMillis = append(r.Topics, topic), 10_000
	if got := ask[*kmsg.CreateTopicsResponse](p.c, 4, r).Topics[0]; got.ErrorCode != 0 {
		p.t.Fatalf("topic %s is not made: error %d", name, got.ErrorCode)
	}
	waitFor(p.t, func() bool {
		found := p.lookUp(name)
		return found.ErrorCode == 0 && len(found.Partitions) == int(partitions) && found.Partitions[0].Leader >= 0
	})
	p.dirty = true
}

// lookUp asks for a topic's metadata.
func (p *adminPlay) lookUp(name string) kmsg.MetadataResponseTopic {
	p.t.Helper()
	m := kmsg.NewPtrMetadataRequest()
	m.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
	return ask[*kmsg.MetadataResponse](p.c, min(10, p.ranges[3][1]), m).Topics[0]
}
