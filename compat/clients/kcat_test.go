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

// kcatClient is kcat, that is librdkafka. It sends one record a run, since key, headers and null-ness are per run.
type kcatClient struct {
	path string
	dir  string
}

func (kcatClient) name() string    { return "kcat" }
func (kcatClient) keepsTime() bool { return false } // it has no option for a record's time

// set leaves out what a command line cannot carry: bytes of value 0.
func (kcatClient) set(all []record) []record {
	var out []record
	for _, r := range all {
		text := r.key
		for _, h := range r.headers {
			text = append(bytes.Clone(text), h.value...)
		}
		if bytes.IndexByte(text, 0) < 0 {
			out = append(out, r)
		}
	}
	return out
}

func (k kcatClient) produce(ctx context.Context, addr string, topics []*topic) error {
	for _, tp := range topics {
		for i, r := range tp.set {
			cmd, err := k.send(ctx, addr, tp, r, i)
			if err != nil {
				return err
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%.300q: %w: %s", cmd.Args, err, out)
			}
		}
	}
	return nil
}

// send prepares the run that sends one record. Values come from a file; since kcat sends nothing for an empty file, empty
// values come as a line of standard input that holds the key and a separator, and -Z makes empty fields null.
func (k kcatClient) send(ctx context.Context, addr string, tp *topic, r record, i int) (*exec.Cmd, error) {
	args := []string{"-q", "-P", "-b", addr, "-t", tp.name, "-p", fmt.Sprint(r.partition), "-z", tp.codec, "-X", "linger.ms=0"}
	for _, h := range r.headers {
		args = append(args, "-H", kcatHeader(h))
	}
	if len(r.value) == 0 {
		args = append(args, "-K", "\x1f")
		if r.value == nil {
			args = append(args, "-Z")
		}
		cmd := exec.CommandContext(ctx, k.path, args...)
		cmd.Stdin = strings.NewReader(string(r.key) + "\x1f\n")
		return cmd, nil
	}
	if r.key != nil {
		args = append(args, "-k", string(r.key))
	}
	value := filepath.Join(k.dir, fmt.Sprintf("%s.%d", tp.name, i))
	return exec.CommandContext(ctx, k.path, append(args, value)...), os.WriteFile(value, r.value, 0o644)
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
		cmd := exec.CommandContext(ctx, k.path, "-q", "-C", "-b", addr, "-t", tp.name, "-o", "beginning", "-e",
			"-X", "fetch.wait.max.ms=50", "-f", `%p\t%o\t%T\t%K\t%S\t%k%s\t%h\n`)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			return v, fmt.Errorf("kcat -C -t %s: %w: %s", tp.name, err, stderr.Bytes())
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
