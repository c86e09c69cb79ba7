package clients

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// codecs are in the order in which clients learned them.
var codecs = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// How many of codecs a client knows.
const (
	toSnappy = 3
	toLz4    = 4
	toZstd   = 5
)

// ability is what a client's protocol level lets it do.
type ability struct {
	magic     int8 // the newest message format that it writes and reads: 1 has timestamps, 2 headers
	codecs    int  // how many of codecs it can write and read
	fixedTime bool // as a producer it cannot choose timestamps: they are those of its clock
	strictLz4 bool // it cannot read lz4 in message format 0, where Kafka's clients make a header checksum of their own
}

// reads tells whether a consumer knows the topic's codec in the format that it gets.
func (a ability) reads(tp *topic) bool {
	if tp.codec == "lz4" && a.strictLz4 && min(a.magic, tp.magic()) == 0 {
		return false
	}
	return slices.Contains(codecs[:a.codecs], tp.codec)
}

// topic is one topic of the matrix: what was written into it, by whom, with which codec.
type topic struct {
	name     string
	codec    string
	producer producer
	format   storedFormat
	set      []record
	acks     []int64 // offsets told to the producer, in the order of set; nil when it tells none
	failure  string  // what the producer said, "" when all went well
}

// storedFormat is a value of message.format.version and the format that it stores; the zero value is the default's.
type storedFormat struct {
	version string
	magic   int8
}

// label names the producer and, when it is not the default, the stored format.
func (tp *topic) label() string {
	if tp.format.version == "" {
		return tp.producer.name()
	}
	return tp.producer.name() + " > " + tp.format.version
}

// magic is the stored format.
func (tp *topic) magic() int8 {
	if tp.format.version == "" {
		return 2
	}
	return tp.format.magic
}

// producer writes topic.set into every topic of a list; it fills acks when the client reports offsets.
type producer interface {
	name() string
	ability() ability
	set(all []record) []record // what of the set this client is able to write
	produce(ctx context.Context, addr string, topics []*topic) error
}

// consumer reads topics from their beginning to the end they have at the call.
type consumer interface {
	name() string
	ability() ability
	consume(ctx context.Context, addr string, topics []*topic) (view, error)
}

// view is what a consumer saw, by topic name and partition.
type view struct {
	lines    map[string][][]string // as record.line, in the order of arrival
	spans    map[string][]span     // empty when the client has no such calls
	failures map[string]string     // what the client said where it could not read on
}

// span is one partition's answer to ListOffsets.
type span struct{ begin, end, atTime int64 }

// notAsked stands for atTime where the protocol level has no question for the offset of a time.
const notAsked = -2

func newView(topics []*topic) view {
	v := view{map[string][][]string{}, map[string][]span{}, map[string]string{}}
	for _, tp := range topics {
		v.lines[tp.name] = make([][]string, partitions)
	}
	return v
}

func (v view) add(topic string, partition int, line string) error {
	parts, ok := v.lines[topic]
	if !ok || partition < 0 || partition >= len(parts) {
		return fmt.Errorf("record of %s-%d, which nobody asked for", topic, partition)
	}
	parts[partition] = append(parts[partition], line)
	return nil
}

// program is a client in another language that speaks by the files of java/Lines.java. run ends with an error that
// carries the program's output when its exit code is not 0.
type program struct {
	label   string
	can     ability
	dir     string
	refuses func(record) bool // what the client refuses to send; nil: nothing
	run     func(ctx context.Context, args ...string) error
}

func (p program) name() string     { return p.label }
func (p program) ability() ability { return p.can }

func (p program) set(all []record) []record {
	if p.can.magic < 2 {
		all = withoutHeaders(all)
	}
	if p.refuses == nil {
		return all
	}
	return without(all, p.refuses)
}

func (p program) produce(ctx context.Context, addr string, topics []*topic) error {
	var jobs, rows strings.Builder
	byName := map[string]*topic{}
	for _, tp := range topics {
		byName[tp.name] = tp
		fmt.Fprintf(&jobs, "%s\t%s\t%t\n", tp.name, tp.codec, tp.magic() == 2)
	}
	for _, r := range topics[0].set {
		rows.WriteString(r.row() + "\n")
	}
	jobsPath, rowsPath, out := p.path("jobs"), p.path("rows"), p.path("acks")
	if err := writeFiles(map[string]string{jobsPath: jobs.String(), rowsPath: rows.String()}); err != nil {
		return err
	}
	if err := p.run(ctx, "produce", addr, jobsPath, rowsPath, out); err != nil {
		return err
	}
	return eachLine(out, func(f []string) error {
		if f[0] == "!" {
			byName[f[1]].failure = f[2]
			return nil
		}
		offset, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return err
		}
		byName[f[0]].acks = append(byName[f[0]].acks, offset)
		return nil
	})
}

func (p program) consume(ctx context.Context, addr string, topics []*topic) (view, error) {
	v := newView(topics)
	var names strings.Builder
	for _, tp := range topics {
		names.WriteString(tp.name + "\n")
	}
	list, out := p.path("topics"), p.path("records")
	if err := writeFiles(map[string]string{list: names.String()}); err != nil {
		return v, err
	}
	if err := p.run(ctx, "consume", addr, list, out, strconv.FormatInt(queryTime, 10)); err != nil {
		return v, err
	}
	return v, eachLine(out, v.parse)
}

// parse takes one line that a program wrote while consuming.
func (v view) parse(f []string) error {
	switch f[0] {
	case "!":
		v.failures[f[1]] = f[2]
		return nil
	case "?":
		return v.parseSpan(f)
	}
	partition, err := strconv.Atoi(f[1])
	if err != nil {
		return err
	}
	return v.add(f[0], partition, strings.Join(f[1:], "\t"))
}

func (v view) parseSpan(f []string) error {
	n := [3]int64{2: notAsked}
	for i := range n {
		if i == 2 && f[5] == "-" {
			break
		}
		var err error
		if n[i], err = strconv.ParseInt(f[3+i], 10, 64); err != nil {
			return err
		}
	}
	v.spans[f[1]] = append(v.spans[f[1]], span{n[0], n[1], n[2]})
	return nil
}

func (p program) path(name string) string {
	return filepath.Join(p.dir, strings.ReplaceAll(p.label, " ", "-")+"."+name)
}

func writeFiles(files map[string]string) error {
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// eachLine hands the tab-separated fields of every line of a file to do.
func eachLine(path string, do func(fields []string) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		if err := do(strings.Split(lines.Text(), "\t")); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
	return lines.Err()
}

// clientLimit is how long one client may take for all its topics.
const clientLimit = 3 * time.Minute

func withLimit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), clientLimit)
	t.Cleanup(cancel)
	return ctx
}
