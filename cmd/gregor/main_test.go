package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call runs a command line that ends by itself.
func call(environ []string, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(args, streams{out: &o, err: &e, environ: environ})
	return code, o.String(), e.String()
}

func TestCommands(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(file, []byte("num.partitions=2\nlog.segment.bytes=big\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		env  []string
		code int
		want string
	}{
		{args: []string{"version"}, want: "gregor 0.1.0-dev"},
		{args: []string{"help"}, want: "gregor serve"},
		{args: nil, want: "Available Commands"},
		{args: []string{"help", "serve"}, want: "--data-dir"},
		{args: []string{"serv"}, code: 1, want: `gregor: "serv" is not a command; did you mean serve?`},
		{args: []string{"serve", "extra"}, code: 1, want: "gregor: "},
		{args: []string{"serve", "--nope"}, code: 1, want: "gregor: unknown flag: --nope"},
		{args: []string{"serve", "--set", "x"}, code: 1, want: `gregor: --set "x": must be key=value`},
		{args: []string{"serve", "--log-level", "loud"}, code: 1, want: `gregor: --log-level "loud": must be`},
		{args: []string{"serve", "--config", filepath.Join(dir, "none")}, code: 1, want: filepath.Join(dir, "none")},
		{args: []string{"serve", "--config", file}, code: 1, want: "gregor: log.segment.bytes=big (" + file + " line 2): not a number of type INT; allowed: a number of at least 14\n"},
		{args: []string{"serve", "--listen", "localhost"}, code: 1, want: "gregor: listeners=PLAINTEXT://localhost (flags): "},
		{args: []string{"serve", "--set", "num.partitions=0"}, code: 1, want: "gregor: num.partitions=0 (--set): value must be at least 1"},
		{args: []string{"serve"}, env: []string{"GREGOR_NUM_PARTITIONS=many"}, code: 1, want: "gregor: num.partitions=many (environment): not a number"},
	} {
		code, out, errs := call(tc.env, tc.args...)
		if code != tc.code || !strings.Contains(out+errs, tc.want) {
			t.Errorf("gregor %s: code %d, want %d and %q; printed\n%s%s", strings.Join(tc.args, " "), code, tc.code, tc.want, out, errs)
		}
	}
}

// served is a broker that runs in this process.
type served struct {
	line    string
	signals chan os.Signal
	code    chan int
	log     *bytes.Buffer // read it after the end
}

func startServe(t *testing.T, environ []string, args ...string) *served {
	t.Helper()
	r, w := io.Pipe()
	s := &served{signals: make(chan os.Signal, 4), code: make(chan int, 1), log: &bytes.Buffer{}}
	go func() {
		s.code <- run(append([]string{"serve"}, args...), streams{out: w, err: s.log, environ: environ, signals: s.signals})
		w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("no ready line (%v); code %d, log:\n%s", err, <-s.code, s.log)
	}
	s.line = line
	return s
}

func (s *served) end(t *testing.T, want int) {
	t.Helper()
	s.signals <- syscall.SIGTERM
	if code := <-s.code; code != want {
		t.Errorf("code %d, want %d; log:\n%s", code, want, s.log)
	}
}

func TestServe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := startServe(t, []string{"GREGOR_NUM_PARTITIONS=2", "GREGOR_NONSENSE=1"}, "--data-dir", dir, "--listen", "127.0.0.1:0", "--set", "no.such.key=1")
	m := regexp.MustCompile(`^gregor 0\.1\.0-dev listening on (127\.0\.0\.1:\d+), data in (.*), metadata in .*; try: echo hello \| kcat -b (127\.0\.0\.1:\d+) -t test -P\n$`).FindStringSubmatch(s.line)
	if m == nil || m[1] != m[3] || m[2] != dir {
		t.Fatalf("ready line %q", s.line)
	}
	conn, err := net.Dial("tcp", m[1])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	// A second broker on the same data is refused, and on the same address, each in one line that names it.
	code, _, errs := call(nil, "serve", "--data-dir", dir, "--listen", "127.0.0.1:0")
	if code != 1 || strings.Count(lastLines(errs), "\n") != 1 || !strings.Contains(lastLines(errs), dir) {
		t.Errorf("same directory: code %d\n%s", code, errs)
	}
	code, _, errs = call(nil, "serve", "--data-dir", filepath.Join(t.TempDir(), "other"), "--listen", m[1])
	if code != 1 || strings.Count(lastLines(errs), "\n") != 1 || !strings.Contains(lastLines(errs), m[1]) {
		t.Errorf("same address: code %d\n%s", code, errs)
	}

	s.signals <- syscall.SIGHUP
	s.end(t, 0)
	for _, want := range []string{"GREGOR_NONSENSE", "no.such.key", "SIGHUP", "stopped"} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, s.log)
		}
	}
	startServe(t, nil, "--data-dir", dir, "--listen", "127.0.0.1:0").end(t, 0)
}

// lastLines are the lines that the program itself printed, without the log.
func lastLines(errs string) string {
	var b strings.Builder
	for line := range strings.Lines(errs) {
		if strings.HasPrefix(line, "gregor: ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestStartErrorsNameThePath(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{file, filepath.Join(file, "below")} {
		code, _, errs := call(nil, "serve", "--data-dir", data, "--listen", "127.0.0.1:0")
		if code != 1 || !strings.Contains(lastLines(errs), file) {
			t.Errorf("%s: code %d\n%s", data, code, errs)
		}
	}
}

func TestReadyLine(t *testing.T) {
	for addr, want := range map[string]string{"[::]:9092": "kcat -b localhost:9092", "0.0.0.0:1": "kcat -b localhost:1", "10.0.0.1:2": "kcat -b 10.0.0.1:2"} {
		if got := readyLine([]string{addr}, "/d", "/d/m"); !strings.Contains(got, "listening on "+addr+", data in /d, metadata in /d/m; try") || !strings.Contains(got, want) {
			t.Errorf("%s: %s", addr, got)
		}
	}
	if got := readyLine([]string{"10.0.0.1:2", "10.0.0.2:3"}, "/d", "ZooKeeper at z:1"); !strings.Contains(got, "listening on 10.0.0.1:2, 10.0.0.2:3, data") {
		t.Errorf("two listeners: %s", got)
	}
}
