package gregor_test

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// Each rule must find what it is against, and let pass what is near it.
func TestRulesFind(t *testing.T) {
	deep := "package p\nfunc f(a bool) {\nfor {\nif a {\nswitch {\ncase a:\nselect {\ndefault:\nif a {\n}\n}\n}\n}\n}\n}\n"
	chain := "package p\nfunc f(a bool) {\nif a {\n} else if a {\n} else if a {\n} else if a {\n} else if a {\n} else if a {\n}\n}\n"
	long := "package p\nfunc f() {\n" + strings.Repeat("println()\n", funcLimit) + "}\n"
	for _, tc := range []struct {
		what, file, text string
		check            func(*source) []violation
		want             int
	}{
		{"wire imports log", "wire/a.go", `package wire; import _ "gregor/log"`, checkArrows, 1},
		{"wire imports broker/config", "wire/a.go", `package wire; import _ "gregor/broker/config"`, checkArrows, 1},
		{"wire imports below itself", "wire/a.go", `package wire; import _ "gregor/wire/x"`, checkArrows, 0},
		{"log imports net", "log/x/a.go", `package x; import _ "net"`, checkArrows, 1},
		{"log imports kmsg in a test", "log/a_test.go", `package x; import _ "github.com/twmb/franz-go/pkg/kmsg"`, checkArrows, 0},
		{"log imports wire in a test", "log/a_test.go", `package x; import _ "gregor/wire"`, checkArrows, 1},
		{"broker imports both", "broker/a.go", `package broker; import (_ "gregor/wire"; _ "gregor/log/batch"; _ "net"; _ "gregor/broker/meta")`, checkArrows, 0},
		{"part of broker imports log, wire and broker", "broker/x/a.go", `package x; import (_ "gregor/wire"; _ "gregor/log/batch"; _ "gregor/broker")`, checkArrows, 3},
		{"part of broker imports net", "broker/x/a.go", `package x; import _ "net"`, checkArrows, 1},
		{"part of broker imports another", "broker/x/a.go", `package x; import _ "gregor/broker/meta"`, checkArrows, 0},
		{"cmd imports wire", "cmd/gregor/a.go", `package main; import _ "gregor/wire"`, checkArrows, 1},
		{"broker imports compat", "broker/a.go", `package broker; import _ "gregor/compat/harness"`, checkArrows, 1},
		{"compat imports broker", "compat/x/a_test.go", `package x; import _ "gregor/broker"`, checkArrows, 1},
		{"new folder", "util/a.go", `package util`, checkArrows, 1},
		{"std log", "broker/a.go", `package broker; import _ "log"`, checkBanned, 1},
		{"slog", "broker/a.go", `package broker; import _ "log/slog"`, checkBanned, 0},
		{"long file", "broker/a.go", "package broker\n" + strings.Repeat("\n", fileSoft), checkFileSize, 1},
		{"long test file", "broker/a_test.go", "package broker\n" + strings.Repeat("\n", fileSoft), checkFileSize, 0},
		{"very long test file", "broker/a_test.go", "package broker\n" + strings.Repeat("\n", fileHard), checkFileSize, 1},
		{"long function", "broker/a.go", long, checkFunctions, 1},
		{"long function of a test", "broker/a_test.go", long, checkFunctions, 0},
		{"deep function", "broker/a.go", deep, checkFunctions, 1},
		{"else if is not deep", "broker/a.go", chain, checkFunctions, 0},
		{"parameters", "broker/a.go", "package p\nfunc f(a, b, c, d, e, f, g int) {}", checkFunctions, 1},
		{"init", "broker/a.go", "package p\nfunc init() {}", checkInit, 1},
		{"method init", "broker/a.go", "package p\nfunc (t) init() {}", checkInit, 0},
		{"variables", "broker/a.go", "package p\nvar a = 1\nvar b map[string]int\nvar c = []int{1}", checkVariables, 3},
		{"constant variables", "broker/a.go", "package p\nvar ErrA = errors.New(``)\nvar _ I = t{}\nvar o = sync.OnceValue(f)\n//go:embed x\nvar e string", checkVariables, 0},
		{"sleep", "broker/a_test.go", "package p\nfunc f() { time.Sleep(1) }", checkSleep, 1},
		{"sleep on a fake clock", "broker/a_test.go", "package p\nimport _ `testing/synctest`\nfunc f() { time.Sleep(1) }", checkSleep, 0},
		{"skip", "broker/a_test.go", "package p\nfunc f() { t.Skip(); t.SkipNow() }", checkSkips, 2},
		{"skip with a reason", "broker/a_test.go", "package p\nfunc f() { t.Skip(`why`) }", checkSkips, 0},
		{"exit", "broker/a.go", "package p\nfunc f() { os.Exit(1) }", checkExit, 1},
		{"exit of main", "cmd/x/main.go", "package main\nfunc f() { os.Exit(1) }", checkExit, 0},
		{"leftover", "broker/a.go", "package p\n// FIX" + "ME: later", checkLeftovers, 1},
		{"no leftover", "broker/a.go", "package p\n// \\uXXXX", checkLeftovers, 0},
	} {
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, tc.file, tc.text, parser.ParseComments)
		if err != nil {
			t.Fatalf("%s: %v", tc.what, err)
		}
		f := &source{name: tc.file, test: strings.HasSuffix(tc.file, "_test.go"), lines: bytes.Count([]byte(tc.text), []byte{'\n'}), syntax: syntax, set: set}
		if got := tc.check(f); len(got) != tc.want {
			t.Errorf("%s: %d violations, want %d: %s", tc.what, len(got), tc.want, fmt.Sprint(got))
		}
	}
}
