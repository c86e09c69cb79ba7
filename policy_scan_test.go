package gregor_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// source is one parsed Go file.
type source struct {
	name   string // from the root, with slashes
	test   bool
	lines  int
	syntax *ast.File
	set    *token.FileSet
}

// scan parses every Go file of the tree, nested modules included.
func scan(t *testing.T) []*source {
	t.Helper()
	var files []*source
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "bin") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		syntax, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, &source{
			name: filepath.ToSlash(name), test: strings.HasSuffix(name, "_test.go"), lines: bytes.Count(text, []byte{'\n'}), syntax: syntax, set: set,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

type positioned interface{ Pos() token.Pos }

// end makes the end of a node its position.
type end struct{ ast.Node }

func (e end) Pos() token.Pos { return e.End() }

func (f *source) line(p positioned) int { return f.set.Position(p.Pos()).Line }

// calls finds the calls that a rule is against.
func (f *source) calls(rule, text string, bad func(name string, call *ast.CallExpr) bool) []violation {
	var found []violation
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && bad(callee(call), call) {
			found = append(found, violation{f.line(call), text + ": " + callee(call), rule + " " + f.name})
		}
		return true
	})
	return found
}
