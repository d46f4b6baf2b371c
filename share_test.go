package rondo_test

import (
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/share"
)

// Loops must not write for a message where another loop reads or writes. That loops share no
// word without an atomic or a mutex is what the race detector finds; that a message uses none
// of those that are shared, TestEchoWritesNothingShared, with the tag rondo_countshared. The
// tests here find words that are neither, and lie in one line of the caches by chance.

// sharingLoops is the number of loops that these tests look at.
const sharingLoops = 3

// sharingEchoes are the ways to echo that they look at.
var sharingEchoes = map[string]rondo.OpenFunc{
	"callbacks": func(c *rondo.Conn) rondo.Handler {
		c.SetIdle(time.Hour)
		return echo(c)
	},
	"filters":    rondo.Filtered(echo, func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }),
	"coroutines": coro.Handler(echoReads),
}

// loopBackends are the backends whose loops do the work themselves: std has a goroutine for each
// connection, with objects of package net that several loops' goroutines allocate.
func loopBackends() []string {
	return slices.DeleteFunc(slices.Clone(backends()), func(name string) bool { return name == "std" })
}

// startSharing starts an engine whose loops all serve connections, some of which have closed.
func startSharing(t *testing.T, e *rondo.Engine, open rondo.OpenFunc) (conns []net.Conn) {
	t.Helper()
	e.NumLoops = sharingLoops
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	for i := range 8 * sharingLoops {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		sayTo(t, c, 64)
		if i%2 == 0 {
			c.Close()
		} else {
			conns = append(conns, c)
		}
	}
	return conns
}

// sayTo sends n bytes and waits for them.
func sayTo(t *testing.T, c net.Conn, n int) {
	t.Helper()
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(make([]byte, n))
		sent <- err
	}()
	if _, err := io.ReadFull(c, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

// onEach calls f on each loop and waits for it.
func onEach(t *testing.T, e *rondo.Engine, f func(l *rondo.Loop)) {
	t.Helper()
	for l := range e.Loops() {
		done := make(chan struct{})
		if err := l.Post(func() { defer close(done); f(l) }); err != nil {
			t.Fatal(err)
		}
		<-done
	}
}

// TestLoopsShareNoLine: what one loop reaches lies in no line of the caches in which something
// lies that another loop reaches.
func TestLoopsShareNoLine(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) < 8 {
		return // objects have other sizes, and such processors have few cores
	}
	for _, backend := range loopBackends() {
		for name, open := range sharingEchoes {
			t.Run(backend+"/"+name, func(t *testing.T) {
				e := &rondo.Engine{Backend: backend}
				for range 2 {
					for _, c := range startSharing(t, e, open) {
						sayTo(t, c, 64)
						sayTo(t, c, 300_000)
					}
				}
				for _, at := range append(overlaps(t, e), misfits(t, e)...) {
					t.Error(at)
				}
			})
		}
	}
}

// overlaps returns descriptions of lines that several loops reach.
func overlaps(t *testing.T, e *rondo.Engine) (found []string) {
	t.Helper()
	type place struct {
		loop int
		path string
	}
	lines, objects, told := map[uintptr]place{}, 0, map[string]bool{}
	onEach(t, e, func(l *rondo.Loop) {
		r := &reach{seen: map[uintptr]reflect.Type{}}
		r.object(reflect.ValueOf(l), "Loop")
		objects += len(r.ranges)
		for _, g := range r.ranges {
			for line := g.at / share.Least; line <= (g.at+g.size-1)/share.Least; line++ {
				other, ok := lines[line]
				pair := fmt.Sprintf("%s of %d bytes and %s", g.path, g.size, other.path)
				switch {
				case !ok:
					lines[line] = place{l.ID(), g.path}
				case other.loop != l.ID() && !told[pair]:
					told[pair] = true
					found = append(found, fmt.Sprintf("line %#x: loops %d and %d share it: %s", line*share.Least, l.ID(), other.loop, pair))
				}
			}
		}
	})
	if objects < 100 {
		t.Errorf("only %d objects were found", objects)
	}
	return found
}

// misfits returns descriptions of objects of which Go's allocator may put two into one line. That
// overlaps finds two of several loops is a matter of luck.
func misfits(t *testing.T, e *rondo.Engine) (found []string) {
	t.Helper()
	told := map[string]bool{}
	onEach(t, e, func(l *rondo.Loop) {
		r := &reach{seen: map[uintptr]reflect.Type{}}
		r.object(reflect.ValueOf(l), "Loop")
		for _, g := range r.ranges {
			if told[g.path] || g.padded || fits(g.size) || r.isInside(g) {
				continue
			}
			told[g.path] = true
			found = append(found, fmt.Sprintf("%s has %d bytes: want a multiple of %d, or a Pad at the end", g.path, g.size, share.Least))
		}
	})
	return found
}

// fits reports whether objects of a size have lines of their own. Above 512 bytes all of the
// allocator's sizes are multiples of a line.
func fits(size uintptr) bool {
	if size > 512 {
		return true
	}
	for _, class := range []uintptr{8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 416, 448, 480, 512} {
		if size <= class {
			return class%share.Least == 0
		}
	}
	return false
}

// isInside reports whether memory is part of a larger object.
func (r *reach) isInside(g memoryRange) bool {
	return slices.ContainsFunc(r.ranges, func(h memoryRange) bool {
		return h.size > g.size && h.at <= g.at && g.at+g.size <= h.at+h.size
	})
}

// A reach is what can be reached from a loop through fields, and is not shared on purpose.
type reach struct {
	seen   map[uintptr]reflect.Type
	ranges []memoryRange
}

type memoryRange struct {
	at, size uintptr // without a Pad at the end
	path     string
	padded   bool
}

// notFollowed are types that loops share on purpose, and write to for no message. Their words
// are TestWordsOfOthersStandApart's matter.
var notFollowed = []string{"rondo.Engine", "rondo.Listener", "rondo.limits", "rondo.Trace", "rondo.larder", "rondo.admission", "[]uint8"}

// object adds what a pointer points to.
func (r *reach) object(p reflect.Value, path string) {
	to := p.Type().Elem()
	if p.IsNil() || to.Size() == 0 || slices.Contains(notFollowed, to.String()) || !isOurs(to) {
		return
	}
	at := p.Pointer()
	if was := r.seen[at]; was != nil && nameOf(was) == nameOf(to) {
		return
	}
	if nameOf(to) == "rondo.Loop" && len(r.ranges) > 0 {
		return // another loop
	}
	r.seen[at] = to
	g := memoryRange{at: at, size: to.Size(), path: path + " " + to.String()}
	if to.Kind() == reflect.Struct && to.Field(to.NumField()-1).Type == reflect.TypeFor[share.Pad]() {
		g.size, g.padded = g.size-share.Line, true // nothing is written there
	}
	r.ranges = append(r.ranges, g)
	r.follow(p.Elem(), nameOf(to))
}

// isOurs reports whether values of a type are of this module's making, or of no package.
func isOurs(t reflect.Type) bool {
	return t.PkgPath() == "" || strings.HasPrefix(t.PkgPath(), module)
}

// follow looks for pointers in a value.
func (r *reach) follow(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		r.object(v, path)
	case reflect.Interface:
		if !v.IsNil() {
			r.follow(v.Elem(), path)
		}
	case reflect.Struct:
		if to := atomicPointer(v); to.IsValid() {
			r.object(to, path)
			return
		}
		if !isOurs(v.Type()) {
			return
		}
		for i := range v.NumField() {
			r.follow(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		if v.Cap() == 0 || v.Type().Elem().Size() == 0 {
			return
		}
		r.ranges = append(r.ranges, memoryRange{at: v.Pointer(), size: uintptr(v.Cap()) * v.Type().Elem().Size(), path: path})
		r.elements(v, path)
	case reflect.Array:
		r.elements(v, path)
	}
}

func (r *reach) elements(v reflect.Value, path string) {
	switch v.Type().Elem().Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Slice, reflect.Array:
		for i := range v.Len() {
			r.follow(v.Index(i), path)
		}
	}
}

// atomicPointer returns the pointer in an atomic.Pointer.
func atomicPointer(v reflect.Value) (p reflect.Value) {
	t := v.Type()
	if !v.CanAddr() || t.PkgPath() != "sync/atomic" || !strings.HasPrefix(t.Name(), "Pointer[") {
		return p
	}
	word := unsafe.Pointer(v.FieldByName("v").UnsafeAddr())
	return reflect.NewAt(t.Field(0).Type.Elem(), word).Elem()
}

// groups are the fields of types that have words for other goroutines, by who uses them. A field
// that is not listed is in the group words if it is of package share or sync, and otherwise in
// the group own. Fields of different groups stand a line apart.
var groups = map[string]map[string]string{
	"rondo.Loop": {
		"engine": "seldom", "id": "seldom", "waker": "seldom", "goroutine": "seldom", "guest": "seldom", "traceName": "seldom",
		"runs": "seldom", "marked": "seldom", "measured": "seldom", "drained": "seldom",
		"inbox": "words", "tally": "published", "shown": "published",
	},
	"rondo.Engine":      {"listeners": "words"},
	"rondo.larder":      {"most": "seldom", "piece": "seldom", "short": "seldom", "teller": "seldom", "again": "seldom"},
	"rondo.admission":   {"addrs": "words", "rate": "words"},
	"readiness.Backend": {"poller": "words", "closed": "words"},
	"uring.Backend":     {"waker": "words", "closed": "words"},
	"epoll.poller":      {"waker": "words", "file": "words"},
}

// wholly are types of which each word is for other goroutines, or guarded by a word that is, or
// that stand near such words for the reason given.
var wholly = map[string]string{
	"inbox.Queue":      "who puts a value writes to most of it",
	"meter.Tally":      "published",
	"rondo.shown":      "published",
	"mark.Mark":        "published for each callback while somebody watches",
	"meter.Meter":      "published while somebody measures",
	"rondo.Conn":       "a Ref's Write posts too, which costs more",
	"coro.Co":          "others look at it only for blocked loops",
	"coro.scheduler":   "others read it only in Calling, and for blocked loops",
	"rondo.Poll":       "no message uses it",
	"rondo.acceptor":   "no message uses it",
	"rondo.addrCounts": "guarded by its mutex",
	"rondo.bucket":     "guarded by its mutex",
	"rondo.crowd":      "no message uses it, and no connection that is not refused",
}

// TestWordsOfOthersStandApart: in each type, words that other goroutines use are a line away from
// what the loop writes for a message.
func TestWordsOfOthersStandApart(t *testing.T) {
	types := map[string]reflect.Type{}
	for _, name := range []string{"larder", "admission"} {
		f, ok := reflect.TypeFor[rondo.Engine]().FieldByName(name)
		if !ok {
			t.Fatalf("Engine has no field %s", name)
		}
		types["rondo."+name] = f.Type.Elem()
	}
	types["rondo.Engine"], types["rondo.Listener"] = reflect.TypeFor[rondo.Engine](), reflect.TypeFor[rondo.Listener]()
	for _, backend := range loopBackends() {
		e := &rondo.Engine{Backend: backend}
		startSharing(t, e, coro.Handler(echoReads))
		onEach(t, e, func(l *rondo.Loop) {
			r := &reach{seen: map[uintptr]reflect.Type{}}
			r.object(reflect.ValueOf(l), "Loop")
			for _, typ := range r.seen {
				types[nameOf(typ)] = typ
			}
		})
	}
	if len(loopBackends()) > 0 && (types["rondo.Conn"] == nil || types["readiness.Backend"] == nil) {
		t.Errorf("types are missing: %v", types)
	}
	for name, typ := range types {
		if typ.Kind() != reflect.Struct || wholly[name] != "" {
			continue
		}
		for _, near := range tooNear(typ, name) {
			t.Errorf("%s: %s", name, near)
		}
	}
}

// nameOf returns the name of a type without its parameters. Some types are others with more
// methods.
func nameOf(t reflect.Type) string {
	name, _, _ := strings.Cut(t.String(), "[")
	switch name {
	case "rondo.reactor":
		return "rondo.Loop"
	case "rondo.receiver", "rondo.wire":
		return "rondo.Conn"
	}
	return name
}

// A wordGroup is a field with its group.
type wordGroup struct {
	name, group string
	from, to    uintptr
}

// tooNear names fields of different groups that are less than a line apart.
func tooNear(t reflect.Type, name string) (found []string) {
	fields := groupsOf(t, name, "", 0)
	for i, a := range fields {
		for _, b := range fields[:i] {
			if a.group != b.group && a.from < b.to+share.Line {
				found = append(found, fmt.Sprintf("%s (%s) is %d bytes behind %s (%s), want %d", a.name, a.group, a.from-b.to, b.name, b.group, share.Line))
			}
		}
	}
	return found
}

// groupsOf lists the fields of a struct, and those of structs in it that have words.
func groupsOf(t reflect.Type, owner, prefix string, base uintptr) (all []wordGroup) {
	for i := range t.NumField() {
		f := t.Field(i)
		group := groups[owner][f.Name]
		switch {
		case f.Type == reflect.TypeFor[share.Pad]() || f.Type.Size() == 0:
			continue
		case group != "":
		case isWord(f.Type):
			group = "words"
		case f.Type.Kind() == reflect.Struct && wholly[nameOf(f.Type)] == "" && isOurs(f.Type):
			all = append(all, groupsOf(f.Type, owner, prefix+f.Name+".", base+f.Offset)...)
			continue
		default:
			group = "own"
		}
		all = append(all, wordGroup{prefix + f.Name, group, base + f.Offset, base + f.Offset + f.Type.Size()})
	}
	return all
}

// isWord reports whether a type is for several goroutines.
func isWord(t reflect.Type) bool {
	for t.Kind() == reflect.Array {
		t = t.Elem()
	}
	switch t.PkgPath() {
	case "sync", "sync/atomic", reflect.TypeFor[share.Pad]().PkgPath():
		return true
	}
	return false
}

// TestTooNear: the test finds a word that stands where a loop writes.
func TestTooNear(t *testing.T) {
	type bad struct {
		_ int
		_ share.Int64
	}
	type good struct {
		_ int
		_ share.Pad
		_ share.Int64
	}
	if tooNear(reflect.TypeFor[bad](), "bad") == nil {
		t.Error("a word beside a count was not found")
	}
	if found := tooNear(reflect.TypeFor[good](), "good"); found != nil {
		t.Errorf("a word behind a Pad was found: %v", found)
	}
}
