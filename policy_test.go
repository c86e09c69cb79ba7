// Package gregor_test checks rules that hold for the whole tree. Each failure says how to put it right; an exception is one line in the tables
// below, with its reason.
package gregor_test

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Limits, in lines, levels and names.
const (
	fileSoft, fileHard     = 400, 700
	funcLimit, testLimit   = 80, 150
	depthLimit, paramLimit = 4, 6
)

// mayImport says which of the module's packages a part may import; a part is a folder and all below it, the longest match counts.
func mayImport() map[string][]string {
	return map[string][]string{
		"wire":   {"wire"},
		"log":    {"log"},
		"broker": {"broker", "wire", "log"}, // the one place where both meet
		"cmd":    {"broker"},
		"compat": {"compat"},
		// Plays the controller of a real Kafka with the parts that a controller uses, which have no binary of their own.
		"compat/zookeeper": {"compat", "broker/peers", "broker/meta"},
		// Parts of the broker see neither sockets nor files unless they are named here.
		"broker/":      {"broker/"},
		"broker/kraft": {"broker/", "log/batch", "log/vfs"}, // reads and writes files of Kafka's metadata
		"broker/adopt": {"broker/", "log"},                  // looks into data directories
	}
}

// mustNotImport names packages that a part keeps away from, beyond the arrows.
func mustNotImport() map[string][]string {
	return map[string][]string{
		"log":     {"net", "net/http", "github.com/twmb/franz-go/pkg/kmsg"},
		"wire":    {"go.etcd.io/bbolt"},
		"broker/": {"net", "net/http", "os/exec"},
		// It is connections that it is about.
		"broker/peers":   {"net/http", "os/exec"},
		"broker/meta/zk": {"net/http", "os/exec"},
	}
}

// bannedImports are wrong everywhere, with what to use instead.
func bannedImports() map[string]string {
	return map[string]string{
		"log":                   "use log/slog with a logger that is handed in",
		"math/rand":             "use math/rand/v2, or crypto/rand where an outsider must not guess",
		"io/ioutil":             "use io and os",
		"github.com/pkg/errors": "use errors and fmt with %w",
	}
}

// exceptions are "rule file[:name]" with the reason.
func exceptions() map[string]string {
	return map[string]string{
		"import broker/config/listener.go:net": "takes host and port apart; opens nothing",
		"import broker/meta/brokernode.go:net": "puts host and port together; opens nothing",

		"variable compat/deps/deps.go:pythonPackages": "a list that nothing assigns",
	}
}

func TestPolicy(t *testing.T) {
	files := scan(t)
	if len(files) < 30 {
		t.Fatalf("only %d files were found", len(files))
	}
	used := map[string]bool{}
	excepted := func(key string) bool {
		_, ok := exceptions()[key]
		used[key] = used[key] || ok
		return ok
	}
	rules := []struct {
		name  string
		check func(*source) []violation
		fix   string
	}{
		{"imports", checkArrows, "move the code to a part that may import it; only package broker sees both wire and log"},
		{"banned imports", checkBanned, "use what is named"},
		{"file size", checkFileSize, "split the file by what its parts are about, or name it in exceptions (over 700 lines: no exception)"},
		{"functions", checkFunctions, "take steps out into functions with names of their own, or parameters into a struct"},
		{"no init", checkInit, "do it where the value is made, or in sync.OnceValue"},
		{"no package variables", checkVariables, "use a constant, a function that returns the value, a field, or sync.OnceValue"},
		{"no sleeping tests", checkSleep, "wait for a channel, or use testing/synctest"},
		{"skips have reasons", checkSkips, "give Skip the reason"},
		{"no exit", checkExit, "return an error; only main of a command may exit"},
		{"nothing left to do", checkLeftovers, "do it, or file an issue and take the comment out"},
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, f := range files {
				for _, v := range r.check(f) {
					if !excepted(v.key) {
						t.Errorf("%s:%d: %s\n\tfix: %s\n\tor, with a reason, except %q", f.name, v.line, v.text, r.fix, v.key)
					}
				}
			}
		})
	}
	t.Run("package comments", func(t *testing.T) { checkDocs(t, files) })
	t.Run("exceptions are needed", func(t *testing.T) {
		for key := range exceptions() {
			if !used[key] {
				t.Errorf("%q is not needed any more\n\tfix: take it out of exceptions", key)
			}
		}
	})
}

// violation is one breach; key is what would except it.
type violation struct {
	line int
	text string
	key  string
}

// part finds the entry of a table for a file: that of its folder, else of the top one; "broker/" stands for the folders below broker.
func part[V any](table map[string]V, name string) (V, bool) {
	if v, ok := table[path.Dir(name)]; ok {
		return v, true
	}
	top, rest, _ := strings.Cut(name, "/")
	if strings.Contains(rest, "/") {
		if v, ok := table[top+"/"]; ok {
			return v, true
		}
	}
	v, ok := table[top]
	return v, ok
}

func checkArrows(f *source) []violation {
	if path.Dir(f.name) == "." {
		return nil
	}
	allowed, known := part(mayImport(), f.name)
	if !known {
		return []violation{{1, "this folder is in no arrow", "import " + f.name}}
	}
	forbidden, _ := part(mustNotImport(), f.name)
	var found []violation
	for _, imp := range f.syntax.Imports {
		target := importPath(imp)
		own, ours := strings.CutPrefix(target, "gregor/")
		ok := f.test || !slices.Contains(forbidden, target) // tests may open sockets
		if ours {
			ok = slices.ContainsFunc(allowed, func(a string) bool { return own == a || strings.HasPrefix(own, strings.TrimSuffix(a, "/")+"/") })
		}
		if !ok {
			found = append(found, violation{f.line(imp), "must not import " + target, "import " + f.name + ":" + target})
		}
	}
	return found
}

func importPath(imp *ast.ImportSpec) string {
	p, err := strconv.Unquote(imp.Path.Value)
	if err != nil {
		return imp.Path.Value
	}
	return p
}

func checkBanned(f *source) []violation {
	var found []violation
	for _, imp := range f.syntax.Imports {
		if instead, banned := bannedImports()[importPath(imp)]; banned {
			found = append(found, violation{f.line(imp), importPath(imp) + ": " + instead, "banned " + f.name + ":" + importPath(imp)})
		}
	}
	return found
}

func checkFileSize(f *source) []violation {
	switch {
	case f.lines > fileHard:
		return []violation{{1, strconv.Itoa(f.lines) + " lines, at most " + strconv.Itoa(fileHard), "(none) " + f.name}}
	case f.lines > fileSoft && !f.test:
		return []violation{{1, strconv.Itoa(f.lines) + " lines, should be at most " + strconv.Itoa(fileSoft), "size " + f.name}}
	}
	return nil
}

func checkFunctions(f *source) []violation {
	limit := funcLimit
	if f.test || strings.HasPrefix(f.name, "compat/") {
		limit = testLimit
	}
	var found []violation
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		key := f.name + ":" + fn.Name.Name
		if n := f.line(end{fn}) - f.line(fn) + 1; n > limit {
			found = append(found, violation{f.line(fn), fn.Name.Name + " has " + strconv.Itoa(n) + " lines, at most " + strconv.Itoa(limit), "length " + key})
		}
		if n := fn.Type.Params.NumFields(); n > paramLimit {
			found = append(found, violation{f.line(fn), fn.Name.Name + " has " + strconv.Itoa(n) + " parameters, at most " + strconv.Itoa(paramLimit), "parameters " + key})
		}
		if n := depth(fn.Body); n > depthLimit && limit == funcLimit {
			found = append(found, violation{f.line(fn), fn.Name.Name + " is nested " + strconv.Itoa(n) + " deep, at most " + strconv.Itoa(depthLimit), "nesting " + key})
		}
	}
	return found
}

// depth counts how deep control flow is nested: if, for, switch and select, each inside the other.
func depth(n ast.Node) int {
	deepest := 0
	ast.Inspect(n, func(c ast.Node) bool {
		if c == n || c == nil {
			return true
		}
		switch s := c.(type) {
		case *ast.IfStmt:
			deepest = max(deepest, 1+depth(s.Body))
			if s.Else != nil { // else if is no deeper
				deepest = max(deepest, depth(&ast.BlockStmt{List: []ast.Stmt{s.Else}}), elseDepth(s.Else))
			}
			return false
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			deepest = max(deepest, 1+depth(c))
			return false
		case *ast.FuncLit:
			deepest = max(deepest, depth(s.Body))
			return false
		}
		return true
	})
	return deepest
}

func elseDepth(s ast.Stmt) int {
	if b, ok := s.(*ast.BlockStmt); ok {
		return 1 + depth(b)
	}
	return 0
}

func checkInit(f *source) []violation {
	var found []violation
	for _, d := range f.syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			found = append(found, violation{f.line(fn), "init runs in every program that links this package", "init " + f.name})
		}
	}
	return found
}

func checkVariables(f *source) []violation {
	if f.test {
		return nil
	}
	var found []violation
	for _, d := range f.syntax.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.VAR {
			continue
		}
		for _, s := range decl.Specs {
			spec, ok := s.(*ast.ValueSpec)
			if !ok || embedded(decl) || constant(spec) {
				continue
			}
			for _, name := range spec.Names {
				if name.Name != "_" && !strings.HasPrefix(strings.ToLower(name.Name), "err") {
					found = append(found, violation{f.line(spec), "variable " + name.Name, "variable " + f.name + ":" + name.Name})
				}
			}
		}
	}
	return found
}

func embedded(d *ast.GenDecl) bool {
	return d.Doc != nil && slices.ContainsFunc(d.Doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

// constant says whether all values are made by calls whose results nobody changes.
func constant(spec *ast.ValueSpec) bool {
	for _, v := range spec.Values {
		call, ok := v.(*ast.CallExpr)
		if !ok {
			return false
		}
		switch callee(call) {
		case "errors.New", "fmt.Errorf", "sync.OnceValue", "sync.OnceValues", "crc32.MakeTable", "regexp.MustCompile":
		default:
			return false
		}
	}
	return len(spec.Values) > 0
}

// callee is the text of what is called: name or package.name.
func callee(call *ast.CallExpr) string {
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return fn.Name
	case *ast.SelectorExpr:
		if x, ok := fn.X.(*ast.Ident); ok {
			return x.Name + "." + fn.Sel.Name
		}
	case *ast.IndexExpr: // an instance of a generic function
		return callee(&ast.CallExpr{Fun: fn.X})
	}
	return ""
}

func checkSleep(f *source) []violation {
	fakeClock := slices.ContainsFunc(f.syntax.Imports, func(imp *ast.ImportSpec) bool { return importPath(imp) == "testing/synctest" })
	if !f.test || strings.HasPrefix(f.name, "compat/") || fakeClock {
		return nil
	}
	return f.calls("sleep", "sleeps", func(name string, _ *ast.CallExpr) bool { return name == "time.Sleep" })
}

func checkSkips(f *source) []violation {
	return f.calls("skip", "skips without a reason", func(name string, call *ast.CallExpr) bool {
		_, method, _ := strings.Cut(name, ".")
		return f.test && (method == "SkipNow" || (method == "Skip" || method == "Skipf") && len(call.Args) == 0)
	})
}

func checkExit(f *source) []violation {
	if f.test || f.syntax.Name.Name == "main" {
		return nil
	}
	return f.calls("exit", "ends the process", func(name string, _ *ast.CallExpr) bool {
		return name == "os.Exit" || name == "syscall.Exit" || strings.HasPrefix(name, "log.Fatal")
	})
}

func checkLeftovers(f *source) []violation {
	leftover := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
	var found []violation
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			if word := leftover.FindString(c.Text); word != "" {
				found = append(found, violation{f.line(c), "comment with " + word, "leftover " + f.name})
			}
		}
	}
	return found
}

// checkDocs wants a package comment in every package that is not only tests: in doc.go, or in the file when there is but one.
func checkDocs(t *testing.T, files []*source) {
	documented, count := map[string]bool{}, map[string]int{}
	for _, f := range files {
		if !f.test {
			count[path.Dir(f.name)]++
		}
	}
	for _, f := range files {
		dir := path.Dir(f.name)
		if !f.test && (path.Base(f.name) == "doc.go" || count[dir] == 1) && len(f.syntax.Doc.Text()) > 40 {
			documented[dir] = true
		}
	}
	for _, f := range files {
		if dir := path.Dir(f.name); !f.test && !documented[dir] {
			t.Errorf("%s has no doc.go with a package comment\n\tfix: say what the package promises, its lock order, and who owns its goroutines", dir)
			documented[dir] = true
		}
	}
}
