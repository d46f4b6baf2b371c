package docs_test

import (
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// The code of operators.md.

// probe returns how long the slowest loop took to run a function. It fails if a loop does
// not within limit: a callback blocks it, or it has more work than it can do.
func probe(e *rondo.Engine, limit time.Duration) (slowest time.Duration, err error) {
	type answer struct {
		loop int
		took time.Duration
	}
	answers := make(chan answer, len(e.Stats().Loops)) // room for those that are late
	missing := make(map[int]bool)
	began := time.Now()
	for l := range e.Loops() {
		if err := l.Post(func() { answers <- answer{l.ID(), time.Since(began)} }); err != nil {
			return 0, err // the engine has ended
		}
		missing[l.ID()] = true
	}
	for timeout := time.After(limit); len(missing) > 0; {
		select {
		case a := <-answers:
			delete(missing, a.loop)
			slowest = max(slowest, a.took)
		case <-timeout:
			return limit, fmt.Errorf("loops %v have run nothing for %v", slices.Sorted(maps.Keys(missing)), limit)
		}
	}
	return slowest, nil
}

// TestProbe finds the loop that is blocked, and no other.
func TestProbe(t *testing.T) {
	e := &rondo.Engine{NumLoops: 3}
	defer e.Close()
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	if took, err := probe(e, time.Minute); took <= 0 || err != nil {
		t.Errorf("idle loops: %v, %v", took, err)
	}
	block := make(chan struct{})
	for l := range e.Loops() {
		if l.ID() == 1 {
			l.Post(func() { <-block })
		}
	}
	_, err := probe(e, 50*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "[1]") {
		t.Errorf("with loop 1 blocked: %v", err)
	}
	close(block)
	if _, err := probe(e, time.Minute); err != nil {
		t.Error(err)
	}
	e.Close()
	if _, err := probe(e, time.Minute); err == nil {
		t.Error("no error of an engine that has ended")
	}
}

// publish shows an engine's counters at /debug/vars.
func publish(name string, e *rondo.Engine) {
	expvar.Publish(name, expvar.Func(func() any { return e.Stats() }))
}

func TestPublish(t *testing.T) {
	e := &rondo.Engine{NumLoops: 2}
	defer e.Close()
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	publish("rondo", e)
	var stats rondo.Stats
	if err := json.Unmarshal([]byte(expvar.Get("rondo").String()), &stats); err != nil || len(stats.Loops) != 2 {
		t.Errorf("%v, %v", stats, err)
	}
}

// TestOperators keeps operators.md true: its code is the code here, and its table has the
// lines that the library and the program log, and no others.
func TestOperators(t *testing.T) {
	b, err := os.ReadFile("operators.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	if n := checkBlocks(t, page); n != 2 {
		t.Errorf("%d pieces of code", n)
	}
	_, table, _ := strings.Cut(page, "\n| line begins with |")
	table, _, _ = strings.Cut(table, "\n\n")
	var told []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(table, -1) {
		for _, text := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			told = append(told, text[1])
		}
	}
	logged := logged(t)
	for _, text := range told {
		if !slices.ContainsFunc(logged, func(line string) bool { return strings.HasPrefix(line, text) }) {
			t.Errorf("nothing logs %q", text)
		}
	}
	for _, line := range logged {
		if !slices.ContainsFunc(told, func(text string) bool { return strings.HasPrefix(line, text) }) {
			t.Errorf("operators.md does not tell of the line %q", line)
		}
	}
	if len(told) < 20 || len(logged) < 20 {
		t.Errorf("found %d lines in the page and %d in the source", len(told), len(logged))
	}
}

// logged is how the lines begin that the library and the program log.
func logged(t *testing.T) (lines []string) {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	for _, dir := range []string{"cmd/*", "coro", "fdpass", "filter", "internal/upgrade", "netconn", "pool", "proactor", "proxy", "redis", "rtls", "watchdog", "workers"} {
		some, globErr := filepath.Glob("../" + dir + "/*.go")
		files, err = append(files, some...), errors.Join(err, globErr)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !strings.Contains(strings.ToLower(types.ExprString(method.X)), "log") {
				return true
			}
			switch method.Sel.Name {
			case "Debug", "Info", "Warn", "Error":
				lines = append(lines, beginning(t, call.Args[0]))
			case "Log":
				if len(call.Args) > 2 { // of a *slog.Logger, with a level
					lines = append(lines, beginning(t, call.Args[2]))
				}
			}
			return true
		})
	}
	return lines
}

// beginning is the constant beginning of a text: of a sum, or of what Sprintf makes.
func beginning(t *testing.T, e ast.Expr) string {
	t.Helper()
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return beginning(t, e.X)
	case *ast.CallExpr:
		text, _, _ := strings.Cut(beginning(t, e.Args[0]), "%")
		return text
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	}
	t.Errorf("a line of the log begins with a %T", e)
	return ""
}
