//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// syncBuffer is written to by one goroutine and read by another.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestReload changes the file of a running broker: what can change does, what cannot is named, and a wrong file changes nothing.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	file, data := filepath.Join(dir, "server.properties"), filepath.Join(dir, "data")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("num.partitions=2\nlog.segment.bytes=2000000\nqueued.max.request.bytes=1000000\n")
	signals, ended := make(chan os.Signal), make(chan int)
	var out, errs syncBuffer
	go func() {
		ended <- run([]string{"serve", "-c", file, "-d", data, "-l", "127.0.0.1:0"}, streams{out: &out, err: &errs, signals: signals})
	}()
	waitFor := func(b *syncBuffer, text string) {
		t.Helper()
		for limit := time.Now().Add(time.Minute); !strings.Contains(b.String(), text); {
			if time.Now().After(limit) {
				t.Fatalf("no %q in\n%s", text, b.String())
			}
		}
	}
	waitFor(&out, "listening on")
	write("num.partitions=2\nlog.segment.bytes=3000000\nqueued.max.request.bytes=2000000\nlog.cleaner.treads=4\n")
	signals <- syscall.SIGHUP
	waitFor(&errs, `"in force"=log.segment.bytes "need a restart"=queued.max.request.bytes "without effect"=log.cleaner.treads`)
	write("log.segment.bytes=big\n")
	signals <- syscall.SIGHUP
	waitFor(&errs, "the settings cannot be used, nothing changes")
	signals <- syscall.SIGTERM
	if code := <-ended; code != 0 {
		t.Errorf("code %d\n%s", code, errs.String())
	}
	code, _, text := call(nil, "reload", "-d", data)
	if code != 1 || !strings.Contains(text, "no broker runs on "+data) {
		t.Errorf("reload after the stop: code %d, %s", code, text)
	}
	if code, _, text := call(nil, "reload", "-d", dir); code != 1 || !strings.Contains(text, "is not the data directory of a broker") {
		t.Errorf("reload elsewhere: code %d, %s", code, text)
	}
}
