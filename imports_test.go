package rondo_test

import (
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/rondo-go/rondo"

// importLaw says what of ours a package may import: by the first pattern that
// matches its path in the module. Tests may import anything.
var importLaw = []struct{ pkg, may *regexp.Regexp }{
	law(`resp|http1|wsframe`, `none`), // codecs: bytes in, values out
	law(`internal/share`, `none`),
	law(`internal/(inbox|buf|mark|meter)`, `internal/share`),
	law(`internal/backend`, `internal/share`),
	law(`internal/(sys|timer)`, `internal/(backend|share)`),
	law(`internal/backend/readiness`, `internal/(backend|share|sys)`),
	law(`internal/backend/(epoll|poll|kqueue)`, `internal/(backend|share|sys|backend/readiness)`),
	law(`internal/backend/(std|uring)`, `internal/(backend|share|sys)`),
	law(`internal/backend/mixed`, `internal/backend(/std)?`),
	law(`internal/backend/sim`, `internal/backend`),
	law(`internal/backend/backendtest`, `|coro|loopstats|relay|internal/(backend|bridge|sys|testkit)`), // for the options of peers' sockets
	law(`internal/backend/backendtest/randomuser`, ``),                                                 // its tests may import all
	law(`internal/pick`, `internal/backend.*`),
	law(``, `internal/(backend|bridge|share|sys|timer|inbox|buf|mark|meter|pick)`),
	law(`rondotest`, `|internal/(backend|backend/sim|pick)`),
	law(`coro`, `|internal/(backend|bridge|buf|share|sys|timer)`),
	law(`filter`, ``),
	law(`workers`, `|internal/bridge`), // to hear that a connection begins to close
	law(`pool`, `|coro`),
	law(`admin`, `|loopstats|watchdog|internal/(bridge|sys)`), // to list connections, and for what their sockets have carried
	law(`loopstats`, `|internal/(bridge|meter)`),              // to read what loops count
	law(`watchdog`, `|internal/(bridge|mark|sys)`),            // to look at loops from outside, and for stacks
	law(`relay`, `|internal/bridge`),                          // to learn that a connection is failing, or has another Handler
	law(`proxy`, `|fdpass|filter|internal/(bridge|upgrade)|relay|rtls`),
	law(`internal/upgrade`, `|fdpass|internal/bridge`),
	law(`internal/bridge`, `none`),
	law(`rtls`, `|internal/(backend|bridge|meter|sys)`), // for its coroutines: the simulator counts them, loops wait for them; to count handshakes
	law(`internal/testcert`, `none`),
	law(`internal/testkit`, ``),
	law(`internal/testkit/browser`, `none`),
	law(`fdpass`, `|internal/sys`),
	law(`internal/handover`, ``),
	law(`websocket`, `|http1|wsframe|rtls|internal/(handover|meter)`),
	law(`redis/store`, `resp|internal/sys`), // to map memory; for integers as Redis writes them
	law(`redis/(quicklist|zset)`, `redis/(listpack|store)`),
	law(`redis/stream`, `resp|redis/(listpack|store)`), // for integers as Redis writes them
	law(`redis/(acl|conf|hll|intset)`, `none`),
	law(`redis/listpack`, `resp`), // for integers as Redis writes them
	law(`redis/rdb`, `resp|redis/(intset|listpack)`),
	law(`redis/internal/script/lualib`, `none`),
	law(`redis/internal/script`, `resp|redis/internal/script/lualib`), // to convert replies
	law(`redis`, `|resp|redis/(acl|conf|hll|intset|listpack|quicklist|rdb|internal/script|store|stream|zset)|internal/(bridge|sys)`), // to receive into a value's memory; for the limit of descriptors
	law(`httpd`, `|http1|netconn|rtls|internal/(backend|bridge|handover|meter|sys)`),                                                 // to duplicate files, to send past the loop, and to hand a turn's requests to goroutines
	law(`internal/load`, `|http1|resp`),
	law(`proactor`, `|internal/bridge`),
	law(`netconn`, `|internal/(bridge|sys)`), // for its Handler, which other goroutines wait for
	law(`compat/gaio`, `|proactor`),
	law(`compat/internal/address`, `none`),
	law(`compat/evio`, `|compat/internal/address|internal/sys`),
	law(`compat/evio2017/v0`, `|compat/evio|compat/internal/address|internal/sys`),
	law(`compat/evio2017`, `compat/evio2017/v0`),
	law(`compat/goev`, `|compat/goev/(netfd|internal/closing)|internal/sys`), // to read and write sockets at rondo's speed
	law(`compat/goev/netfd`, `compat/goev/internal/closing`),
	law(`compat/goev/internal/closing`, `none`),
	law(`docs/(tutorial|cookbook)/.*`, `|coro|rtls`), // users' programs: nothing of internal/
	law(`cmd/.*|examples/.*|((coro|workers)/)?testdata/.*|redis/.*`, `.*`),
}

// tagged is where build constraints may stand: at the bottom, in the API of a library that is
// for Linux alone, and where a tag makes words count who uses them.
var tagged = regexp.MustCompile(`^(internal/(share|sys|pick|backend/(readiness|epoll|poll|kqueue|uring))|compat/goev(/netfd)?)$`)

// ofGo is a constraint on Go's version, and not on the platform.
var ofGo = regexp.MustCompile(`^//go:build go1\.[0-9]+$`)

func law(pkg, may string) (l struct{ pkg, may *regexp.Regexp }) {
	l.pkg = regexp.MustCompile(`^(` + pkg + `)$`)
	l.may = regexp.MustCompile(`^(` + may + `)$`)
	return l
}

// TestImportLaw keeps the layers apart: servers on rondo, on pick, on backends,
// on the seam; codecs on nothing; build constraints at the bottom only.
func TestImportLaw(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != "." {
				return fs.SkipDir // another module
			}
			if strings.HasPrefix(d.Name(), ".") && path != "." {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files++
			checkFile(t, filepath.ToSlash(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 30 {
		t.Errorf("only %d files were looked at", files)
	}
}

func checkFile(t *testing.T, path string) {
	pkg := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), ".")
	var may *regexp.Regexp
	for _, l := range importLaw {
		if l.pkg.MatchString(pkg) {
			may = l.may
			break
		}
	}
	if may == nil {
		t.Errorf("%s: package %q has no rule: add one to importLaw", path, pkg)
		return
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		t.Error(err)
		return
	}
	for _, i := range f.Imports {
		name, _ := strconv.Unquote(i.Path.Value)
		rest, ours := strings.CutPrefix(name, module)
		if ours && !may.MatchString(strings.TrimPrefix(rest, "/")) {
			t.Errorf("%s imports %s, against the import law", path, name)
		}
	}
	if tagged.MatchString(pkg) {
		return
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if constraint.IsGoBuild(c.Text) && !ofGo.MatchString(c.Text) {
				t.Errorf("%s has a build constraint: they stand in sys, pick and the systems' backends alone", path)
			}
		}
	}
	if regexp.MustCompile(`_(linux|windows|darwin|freebsd|openbsd|netbsd|dragonfly|unix|amd64|arm64|386)\.go$`).MatchString(path) {
		t.Errorf("%s is built for one platform only: such files stand in sys, pick and the systems' backends alone", path)
	}
}
