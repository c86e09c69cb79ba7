package loglevel

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLevels(t *testing.T) {
	var out bytes.Buffer
	l := New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}), "b", "a")
	a, b := l.Logger("a"), l.Logger("b").With("k", "v").WithGroup("g")
	says := func(want string) {
		t.Helper()
		out.Reset()
		for _, logger := range []*slog.Logger{a, b} {
			for _, level := range []slog.Level{trace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
				logger.Log(t.Context(), level, LevelName(level))
			}
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			_, message, _ := strings.Cut(strings.TrimSpace(line), "msg=")
			got = append(got, message)
		}
		if s := strings.Join(got, ","); s != want {
			t.Errorf("got %s, want %s", s, want)
		}
	}
	if !slices.Equal(l.Names(), []string{"a", "b", "root"}) || !l.Has("a") || !l.Has(Root) || l.Has("c") {
		t.Error(l.Names())
	}
	says("INFO,WARN,ERROR,INFO k=v,WARN k=v,ERROR k=v")
	l.Set("a", trace)
	says("TRACE,DEBUG,INFO,WARN,ERROR,INFO k=v,WARN k=v,ERROR k=v")
	l.Set(Root, slog.LevelError)
	says("TRACE,DEBUG,INFO,WARN,ERROR,ERROR k=v")
	l.Unset("a")
	l.Unset(Root)
	says("ERROR,ERROR k=v")
	l.Set("b", fatal)
	says("ERROR")
	if got := LevelName(l.Level("b")) + LevelName(l.Level("a")) + LevelName(l.Level(Root)); got != "FATALERRORERROR" {
		t.Error(got)
	}
}

func TestLevelNames(t *testing.T) {
	for _, name := range []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"} {
		if level, ok := ParseLevel(name); !ok || LevelName(level) != name {
			t.Errorf("%s is %v, %v", name, level, ok)
		}
	}
	if _, ok := ParseLevel("debug"); ok {
		t.Error("debug is a level")
	}
	if l := New(slog.DiscardHandler); LevelName(l.Level(Root)) != "FATAL" {
		t.Error("a handler that discards everything is asked")
	}
}
