package watchdog

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rondo-go/rondo/internal/sys"
)

// Go has no way to take the stack of one other goroutine. There are two ways to get all of
// them:
//
//   - runtime.Stack names the goroutines and says what they wait for, and who created them.
//     So the right one is certain. It stops the whole program meanwhile, 5 to 10 µs for
//     each goroutine.
//   - The goroutine profile of runtime/pprof stops the program for a small part of that time.
//     It names no goroutine.
//
// So a program with many goroutines gets the second, which is only sure if one loop alone is
// in a callback at that moment.

// maxStopped is how many goroutines runtime.Stack may stop.
const maxStopped = 1000

// A trace is the stack of a goroutine.
type trace struct {
	state     string // as in stack traces; "": not known
	coroutine bool
	unsure    bool // there are stacks of several goroutines
	text      []byte
}

// takeAll takes the stacks of all goroutines. It returns a function that finds in them the one
// of what keeps a loop, whose goroutine's stack begins with name.
func takeAll(maxStopped int) func(name []byte) *trace {
	if runtime.NumGoroutine() <= maxStopped {
		all := sys.StackOf([]byte{})
		return func(name []byte) *trace { return find(all, name) }
	}
	var profile bytes.Buffer
	pprof.Lookup("goroutine").WriteTo(&profile, 1) // fails only if the Buffer does
	return func([]byte) *trace { return guess(profile.String()) }
}

// find finds in the stacks of all goroutines the one that begins with name, or the one of a
// coroutine that this goroutine waits for.
func find(all, name []byte) *trace {
	id, _, _ := bytes.Cut(bytes.TrimPrefix(name, []byte("goroutine ")), []byte(" "))
	lives := make(map[string]bool)
	stacks := make(map[string][]byte) // of this goroutine, and of all that others wait for
	for stack := range bytes.SplitSeq(bytes.TrimSpace(all), []byte("\n\n")) {
		other := idOf(stack)
		lives[other] = true
		if other == string(id) || creatorOf(stack) != "" {
			stacks[other] = stack
		}
	}
	own := stacks[string(id)]
	if own == nil {
		return unsure(nil)
	}
	if !waitsForAnother(own) {
		return sure(own)
	}
	var orphans, others []string
	for other, stack := range stacks {
		if waitsForAnother(stack) {
			continue
		}
		switch ancestor := ancestorOf(stacks, other); {
		case ancestor == string(id):
			return sure(stack)
		case !lives[ancestor]:
			orphans = append(orphans, string(stack))
		default:
			others = append(others, string(stack))
		}
	}
	if len(orphans) == 1 {
		return sure([]byte(orphans[0])) // another coroutine, which has ended, had begun it
	}
	return unsure(slices.Concat([]string{string(own)}, orphans, others))
}

// sure is the trace of what certainly keeps the loop.
func sure(stack []byte) *trace {
	// Without the copy, a Report would keep the stacks of all goroutines in memory.
	return &trace{state: stateOf(stack), coroutine: isCoroutine(stack), text: bytes.Clone(stack)}
}

// unsure is the trace of several goroutines, one of which keeps the loop.
func unsure(stacks []string) *trace {
	if len(stacks) == 0 {
		return &trace{unsure: true, text: []byte("the loop's goroutine was not found")}
	}
	return &trace{unsure: true, text: fmt.Appendf(nil, "one of these %d goroutines:\n\n%s", len(stacks), strings.Join(stacks, "\n\n"))}
}

// idOf returns the number of a goroutine.
func idOf(stack []byte) string {
	rest, _ := bytes.CutPrefix(stack, []byte("goroutine "))
	id, _, _ := bytes.Cut(rest, []byte(" "))
	return string(id)
}

// stateOf returns what a goroutine is doing: its stack begins with
// goroutine 5 [chan receive, 2 minutes, locked to thread]:
func stateOf(stack []byte) string {
	line, _, _ := bytes.Cut(stack, []byte("\n"))
	_, rest, _ := bytes.Cut(line, []byte("["))
	state, _, _ := bytes.Cut(rest, []byte("]:"))
	state, _, _ = bytes.Cut(state, []byte(" labels:{")) // with GODEBUG=tracebacklabels=1
	state, _, _ = bytes.Cut(state, []byte(", "))
	return string(state)
}

// created finds which goroutine created another one that it waits for: a coroutine of
// iter.Pull, or one of sys.Aside.
var created = regexp.MustCompile(`\ncreated by (?:iter\.Pull2?\[.*\]|github\.com/rondo-go/rondo/internal/sys\.Aside) in goroutine (\d+)\n`)

// creatorOf returns the number of the goroutine that waits for this one; "": none does.
func creatorOf(stack []byte) string {
	if m := created.FindSubmatch(stack); m != nil {
		return string(m[1])
	}
	return ""
}

// waitsForAnother reports whether a goroutine waits until another one yields, or for another
// one to resume it.
func waitsForAnother(stack []byte) bool {
	return strings.HasPrefix(stateOf(stack), "coroutine") || bytes.Contains(stack, []byte("\ngithub.com/rondo-go/rondo/internal/sys.Aside("))
}

func isCoroutine(stack []byte) bool { return bytes.Contains(stack, []byte(ofCoroutine)) }

// ancestorOf returns the number of the goroutine with which the chain of those that have begun a
// goroutine begins. It may have ended.
func ancestorOf(stacks map[string][]byte, id string) string {
	for range len(stacks) {
		creator := creatorOf(stacks[id])
		if creator == "" {
			break
		}
		id = creator
	}
	return id
}

// Frames that the stacks of loops have.
const (
	atWork      = "github.com/rondo-go/rondo.(*Loop).work("
	ofCoroutine = "github.com/rondo-go/rondo/coro.(*Co).run("
	ours        = "github.com/rondo-go/rondo"
)

// guess finds in a goroutine profile the goroutines that may keep a loop.
func guess(profile string) *trace {
	var found []string
	for part := range strings.SplitSeq(profile, "\n\n") {
		stack := unprofiled(part)
		switch {
		case strings.HasPrefix(stack, "iter.Pull"): // it waits for another one
		case strings.Contains(stack, "\niter.Pull") && strings.Contains(stack, ours),
			strings.Contains(stack, atWork),
			isCut(part):
			found = append(found, stack)
		}
	}
	if len(found) != 1 {
		return unsure(found)
	}
	t := sure([]byte(found[0]))
	t.state = ""
	return t
}

// maxProfiled is how many calls a profile has of a stack, from the innermost on, unless
// GODEBUG=profstackdepth says otherwise.
const maxProfiled = 128

// isCut reports whether a stack of a goroutine profile may lack its outermost calls, which tell
// whether it is a loop's. It begins with the number of goroutines and the addresses of the
// calls: 1 @ 0x4a02e5 0x4a02f0
func isCut(part string) bool {
	for line := range strings.Lines(part) {
		if _, calls, ok := strings.Cut(line, " @ "); ok {
			return strings.Count(calls, "0x") >= maxProfiled
		}
	}
	return false
}

// profiled is a call in a goroutine profile: # 0x4a02e5 main.f+0x45 /tmp/main.go:9, with
// tabs between.
var profiled = regexp.MustCompile(`(?m)^#\t+0x[0-9a-f]+\t+(.*)\+0x[0-9a-f]+\t+(.*:\d+)$`)

// unprofiled returns a stack of a goroutine profile in the form of a stack trace.
func unprofiled(part string) string {
	var b strings.Builder
	for _, call := range profiled.FindAllStringSubmatch(part, -1) {
		fmt.Fprintf(&b, "%s(...)\n\t%s\n", call[1], call[2])
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// waits reports whether the goroutine waits, so that time without a CPU changes nothing.
func (t *trace) waits() bool {
	switch t.state {
	case "", "running", "runnable", "preempted", "syscall":
		return false
	}
	return !t.collects()
}

// collects reports whether Go's garbage collector keeps the goroutine: it needs memory, and helps
// to collect, or waits until all other goroutines have stopped. That takes long if these have no
// CPU. In the runtime's own waits for a semaphore the innermost call is not one of the packages
// that offer locks, since stacks leave the runtime's own calls out.
func (t *trace) collects() bool {
	switch t.state {
	case "garbage collection", "wait for GC cycle", "flushing proc caches", "stopping the world":
		return true
	case "semacquire":
		_, innermost, _ := strings.Cut(string(t.text), "\n")
		return !strings.HasPrefix(innermost, "sync.") && !strings.HasPrefix(innermost, "internal/poll.")
	}
	return strings.HasPrefix(t.state, "GC ")
}

// place returns the innermost function outside the standard library. If there is none, or
// if the stack is not sure, function is "".
func (t *trace) place() (function, file string, line int) {
	if t.unsure {
		return "", "", 0
	}
	lines := strings.Split(string(t.text), "\n")
	for i, call := range lines[:len(lines)-1] {
		end := strings.LastIndexByte(call, '(')
		if strings.HasPrefix(call, "\t") || strings.HasPrefix(call, "created by ") || end < 0 || isStandard(call[:end]) {
			continue
		}
		where, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		colon := strings.LastIndexByte(where, ':')
		if colon < 0 {
			continue
		}
		line, _ = strconv.Atoi(where[colon+1:])
		return call[:end], where[:colon], line
	}
	return "", "", 0
}

// isStandard reports whether a function is of the standard library, whose import paths have
// no dot in their first element.
func isStandard(function string) bool {
	path, _, _ := strings.Cut(function, "[") // type arguments have paths too
	if slash := strings.LastIndexByte(path, '/'); slash >= 0 {
		dot := strings.IndexByte(path[slash:], '.')
		path = path[:slash+max(dot, 0)]
	} else {
		path, _, _ = strings.Cut(path, ".")
	}
	first, _, _ := strings.Cut(path, "/")
	return first != "main" && !strings.Contains(first, ".") && !isMain(path)
}

// mainModule is the path of the program's own module, which may have no dot.
var mainModule = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Path
	}
	return ""
})

func isMain(path string) bool {
	m := mainModule()
	return m != "" && (path == m || strings.HasPrefix(path, m+"/"))
}
