package clients

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	kcatKeyEnd    = "\x1f"
	kcatRecordEnd = "\x1e"
)

// kcatClient is kcat, that is librdkafka. With fallback it takes the broker for one of that version and does not ask;
// from a fallback of 0.10.0 on it would ask all the same.
type kcatClient struct {
	path     string
	dir      string
	fallback string
}

func (k kcatClient) name() string { return strings.TrimSuffix("kcat "+k.fallback, " ") }

// ability: kcat has no option for a record's time.
func (k kcatClient) ability() ability {
	switch k.fallback {
	case "":
		return ability{magic: 2, codecs: toZstd, fixedTime: true}
	default:
		return ability{codecs: toLz4, fixedTime: true}
	}
}

// set leaves out what a command line cannot carry: bytes of value 0, unless they go by a file, and null beside empty.
func (k kcatClient) set(all []record) []record {
	if k.ability().magic < 2 {
		all = withoutHeaders(all)
	}
	return without(all, func(r record) bool {
		text := bytes.Clone(r.key)
		for _, h := range r.headers {
			text = append(text, h.value...)
		}
		must, mustNot := needsZ(r)
		return bytes.IndexByte(text, 0) >= 0 || must && mustNot
	})
}

func (k kcatClient) args(addr string, more ...string) []string {
	args := []string{"-q", "-b", addr}
	if k.fallback != "" {
		args = append(args, "-X", "broker.version.fallback="+k.fallback, "-X", "api.version.request=false")
	}
	return append(args, more...)
}

func (k kcatClient) produce(ctx context.Context, addr string, topics []*topic) error {
	for _, tp := range topics {
		for i := 0; i < len(tp.set); {
			n := together(tp.set[i:])
			if err := k.send(ctx, addr, tp, i, n); err != nil {
				tp.failure = err.Error()
				break
			}
			i += n
		}
	}
	return nil
}

// byFile tells that a record has a run of its own, with its value in a file: it has headers, which are per run, or
// contains what separates records.
func byFile(r record) bool {
	return len(r.headers) > 0 || bytes.ContainsAny(r.key, kcatKeyEnd+kcatRecordEnd) || bytes.ContainsAny(r.value, kcatKeyEnd+kcatRecordEnd)
}

// needsZ tells whether the record needs -Z, which makes empty keys and values null, or must not have it.
func needsZ(r record) (must, mustNot bool) {
	must = r.key == nil || r.value == nil
	return must, r.key != nil && len(r.key) == 0 || r.value != nil && len(r.value) == 0
}

// together is how many of the records go in one run.
func together(set []record) int {
	if byFile(set[0]) {
		return 1
	}
	must, mustNot := needsZ(set[0])
	for i, r := range set[1:] {
		m, n := needsZ(r)
		must, mustNot = must || m, mustNot || n
		if byFile(r) || r.partition != set[0].partition || must && mustNot {
			return i + 1
		}
	}
	return len(set)
}

// send sends the n records of the topic's set from i on.
func (k kcatClient) send(ctx context.Context, addr string, tp *topic, i, n int) error {
	records := tp.set[i : i+n]
	args := k.args(addr, "-P", "-t", tp.name, "-p", fmt.Sprint(records[0].partition), "-z", tp.codec, "-X", "linger.ms=20")
	var in bytes.Buffer
	if byFile(records[0]) {
		for _, h := range records[0].headers {
			args = append(args, "-H", kcatHeader(h))
		}
		if records[0].key != nil {
			args = append(args, "-k", string(records[0].key))
		}
		value := filepath.Join(k.dir, fmt.Sprintf("%s.%d", tp.name, i))
		if err := os.WriteFile(value, records[0].value, 0o644); err != nil {
			return err
		}
		args = append(args, value)
	} else {
		args = append(args, "-K", kcatKeyEnd, "-D", kcatRecordEnd)
		for _, r := range records {
			if must, _ := needsZ(r); must && args[len(args)-1] != "-Z" {
				args = append(args, "-Z")
			}
			fmt.Fprintf(&in, "%s%s%s%s", r.key, kcatKeyEnd, r.value, kcatRecordEnd)
		}
	}
	cmd := exec.CommandContext(ctx, k.path, args...)
	cmd.Stdin = &in
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%.300q: %w: %s", cmd.Args, err, out)
	}
	return nil
}

func kcatHeader(h header) string {
	if h.value == nil {
		return h.key
	}
	return h.key + "=" + string(h.value)
}

func (k kcatClient) consume(ctx context.Context, addr string, topics []*topic) (view, error) {
	v := newView(topics)
	for _, tp := range topics {
		var stdout, stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, k.path, k.args(addr, "-C", "-t", tp.name, "-o", "beginning", "-e",
			"-X", "fetch.wait.max.ms=50", "-f", `%p\t%o\t%T\t%K\t%S\t%k%s\t%h\n`)...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			v.failures[tp.name] = fmt.Sprintf("%v: %s", err, strings.TrimSpace(stderr.String()))
		}
		if err := kcatParse(v, tp, stdout.Bytes()); err != nil {
			return v, fmt.Errorf("kcat -C -t %s: %w", tp.name, err)
		}
	}
	return v, nil
}

// kcatParse takes apart what the format above prints: five numbers, key and value as they are, headers.
func kcatParse(v view, tp *topic, out []byte) error {
	for len(out) > 0 {
		f := bytes.SplitN(out, []byte("\t"), 6)
		var n [5]int64
		for i := range n {
			var err error
			if n[i], err = strconv.ParseInt(string(f[i]), 10, 64); err != nil {
				return fmt.Errorf("not a record: %.80q: %w", out, err)
			}
		}
		r := record{partition: int32(n[0]), timestamp: n[2]}
		if n[2] == 0 {
			r.timestamp = -1 // what kcat prints where there is none
		}
		rest := f[5]
		r.key, rest = take(rest, n[3])
		r.value, rest = take(rest, n[4])
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return fmt.Errorf("the last record has no end: %.80q", rest)
		}
		r.headers = kcatHeaders(tp, r.partition, n[1], string(rest[1:end]))
		if err := v.add(tp.name, int(r.partition), r.line(n[1])); err != nil {
			return err
		}
		out = rest[end+1:]
	}
	return nil
}

func take(b []byte, n int64) (field, rest []byte) {
	if n < 0 {
		return nil, b
	}
	return b[:n:n], b[n:]
}

// kcatHeaders turns %h into headers. kcat writes them as C strings and null as NULL, which cannot be read back, so what
// it printed is compared with what it should print for the record at that place.
func kcatHeaders(tp *topic, partition int32, offset int64, printed string) []header {
	if printed == "" {
		return nil
	}
	var at int64
	for _, r := range tp.set {
		if r.partition != partition {
			continue
		}
		if at == offset {
			parts := make([]string, len(r.headers))
			for i, h := range r.headers {
				value, _, _ := strings.Cut(string(h.value), "\x00")
				if h.value == nil {
					value = "NULL"
				}
				parts[i] = h.key + "=" + value
			}
			if strings.Join(parts, ",") == printed {
				return r.headers
			}
			break
		}
		at++
	}
	return []header{{"kcat printed", []byte(printed)}}
}
