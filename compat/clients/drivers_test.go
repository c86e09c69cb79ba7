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

var codecs = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// topic is one topic of the matrix: what was written into it, by whom, with which codec.
type topic struct {
	name      string
	codec     string
	producer  string
	keepsTime bool // the producer chose the timestamps
	set       []record
	acks      []int64 // offsets told to the producer, in the order of set; nil when it tells none
}

// producer writes topic.set into every topic of a list; it fills acks when the client reports offsets.
type producer interface {
	name() string
	set(all []record) []record // what of the set this client is able to write
	keepsTime() bool           // false: the client cannot choose timestamps
	produce(ctx context.Context, addr string, topics []*topic) error
}

// consumer reads topics from their beginning to the end they have at the call.
type consumer interface {
	name() string
	consume(ctx context.Context, addr string, topics []*topic) (view, error)
}

// view is what a consumer saw, by topic name and partition.
type view struct {
	lines map[string][][]string // as record.line, in the order of arrival
	spans map[string][]span     // empty when the client has no such calls
}

// span is one partition's answer to ListOffsets.
type span struct{ begin, end, atTime int64 }

func newView(topics []*topic) view {
	v := view{map[string][][]string{}, map[string][]span{}}
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

// program is a client in another language that speaks by the files of java/Matrix.java. run ends with an error that
// carries the program's output when its exit code is not 0.
type program struct {
	label string
	dir   string
	skips func(record) bool // what the client refuses to send; nil: nothing
	run   func(ctx context.Context, args ...string) error
}

func (p program) name() string  { return p.label }
func (program) keepsTime() bool { return true }

func (p program) set(all []record) []record {
	if p.skips == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), p.skips)
}

func (p program) produce(ctx context.Context, addr string, topics []*topic) error {
	var jobs, rows strings.Builder
	for _, tp := range topics {
		fmt.Fprintf(&jobs, "%s\t%s\n", tp.name, tp.codec)
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
	byName := map[string]*topic{}
	for _, tp := range topics {
		byName[tp.name] = tp
	}
	return eachLine(out, func(f []string) error {
		tp := byName[f[0]]
		offset, err := strconv.ParseInt(f[2], 10, 64)
		if tp == nil || err != nil {
			return fmt.Errorf("bad line %q", f)
		}
		tp.acks = append(tp.acks, offset)
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
	if f[0] == "?" {
		var n [3]int64
		for i := range n {
			var err error
			if n[i], err = strconv.ParseInt(f[3+i], 10, 64); err != nil {
				return err
			}
		}
		v.spans[f[1]] = append(v.spans[f[1]], span{n[0], n[1], n[2]})
		return nil
	}
	partition, err := strconv.Atoi(f[1])
	if err != nil {
		return err
	}
	return v.add(f[0], partition, strings.Join(f[1:], "\t"))
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
const clientLimit = 2 * time.Minute

func withLimit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), clientLimit)
	t.Cleanup(cancel)
	return ctx
}
