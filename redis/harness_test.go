package redis

import (
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/resp"
)

// bench is a server without an engine: only the command layer, with a clock that
// the test moves.
type bench struct {
	t       testing.TB
	s       *Server
	now     time.Time
	clients map[string]*fakeConn
	timers  []*fakeTimer
	soon    []func() // to call at the end of the turn
}

// fakeTimer is a blocked client's timeout.
type fakeTimer struct {
	at time.Time
	f  func()
}

// after is blocking.after by the clock of the test.
func (b *bench) after(d time.Duration, f func()) (stop func() bool) {
	t := &fakeTimer{b.now.Add(d), f}
	b.timers = append(b.timers, t)
	return func() bool {
		i := slices.Index(b.timers, t)
		if i >= 0 {
			b.timers = slices.Delete(b.timers, i, i+1)
		}
		return i >= 0
	}
}

// advance moves the clock, and calls what is due.
func (b *bench) advance(d time.Duration) {
	b.now = b.now.Add(d)
	for i := 0; i < len(b.timers); i++ {
		if t := b.timers[i]; !t.at.After(b.now) {
			b.timers = slices.Delete(b.timers, i, i+1)
			t.f()
			i = -1
		}
	}
}

// fakeConn is a transport that keeps what is written to it.
type fakeConn struct {
	client  *client
	remote  net.Addr
	out     []byte
	waiting int // what pending reports
	allowed int // by allow
	idle    time.Duration
	closed  bool
	aborted error
	ended   bool // the server knows
	resumed int  // calls of resume
	most    int  // bytes of the longest write
}

func (f *fakeConn) buffer() []byte          { return f.out[len(f.out):] }
func (f *fakeConn) write(p []byte)          { f.out, f.most = append(f.out, p...), max(f.most, len(p)) }
func (f *fakeConn) pending() int            { return f.waiting }
func (f *fakeConn) full() bool              { return f.waiting > max(f.allowed, rondo.DefaultHighWater) }
func (f *fakeConn) allow(n int)             { f.allowed = n }
func (f *fakeConn) refresh()                {}
func (f *fakeConn) close(patience)          { f.closed = true }
func (f *fakeConn) abort(err error)         { f.aborted = err }
func (f *fakeConn) resume()                 { f.resumed++ }
func (f *fakeConn) setIdle(d time.Duration) { f.idle = d }
func (f *fakeConn) local() net.Addr         { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379} }
func (f *fakeConn) peer() net.Addr          { return f.remote }

// end tells the server that the connection has gone, if it is closed.
func (f *fakeConn) end() {
	if (f.closed || f.aborted != nil) && !f.ended {
		f.ended = true
		f.client.server.clients.closed(f.client, nil)
	}
}

// Tests find slices of the store that are used for too long, and SCAN's order repeats.
func init() { storeOptions.Poison, storeOptions.Seed = true, 1 }

func newBench(t testing.TB, s *Server) *bench {
	b := &bench{t: t, s: s, now: time.Unix(1_700_000_000, 0), clients: make(map[string]*fakeConn)}
	s.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s.Engine = &rondo.Engine{}
	s.clock = func() time.Time { return b.now }
	s.blocking.after = b.after
	s.tracking.prefixes.soon = func(f func()) { b.soon = append(b.soon, f) }
	s.init()
	s.since = b.now
	s.expiry.off = true     // there is no loop to set timers on
	s.upkeep.running = true // likewise
	s.tidying.running = true
	s.stalls.running = true
	return b
}

// allFast keeps commands out of the slow log, which allocates, however slow the machine is.
func (b *bench) allFast() {
	b.do("a", "CONFIG", "SET", "slowlog-log-slower-than", "3600000000")
}

// connect returns the connection of a name, which it makes if there is none.
func (b *bench) connect(name string) *fakeConn {
	f := b.clients[name]
	if f == nil {
		for _, old := range b.clients {
			old.end()
		}
		f = &fakeConn{remote: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50000 + len(b.clients)}}
		b.clients[name] = f
		f.client = b.s.clients.admit(f)
	}
	return f
}

// send runs bytes as a connection's Data does, and returns how many it took.
func (b *bench) send(f *fakeConn, in []byte) int {
	b.s.begin(f.client)
	defer b.s.end(f.client)
	n, _ := f.client.run(in)
	b.s.completed = true
	return n
}

// do runs a command and returns what was written since the last call, with a
// blank for each line break.
func (b *bench) do(name string, args ...string) string {
	f := b.connect(name)
	b.send(f, resp.AppendRequest(nil, args...))
	b.endTurn()
	return f.take()
}

func (b *bench) endTurn() {
	soon := b.soon
	b.soon = nil
	for _, f := range soon {
		f()
	}
}

func (f *fakeConn) take() string {
	s := strings.TrimRight(strings.ReplaceAll(string(f.out), "\r\n", " "), " ")
	f.out = nil
	return s
}

// script runs lines of the form
//
//	command argument ... => reply
//	name: command ... => reply       by another client
//	name? => what it was sent, though it asked for nothing
//	+250ms                           the clock moves
//
// An argument may be quoted as in Go. A reply is compared with a blank in the
// place of each line break; ... at its end stands for anything.
func (b *bench) script(lines string) {
	b.t.Helper()
	for _, line := range strings.Split(lines, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if d, err := time.ParseDuration(line); err == nil && line[0] == '+' {
			b.advance(d)
			continue
		}
		request, want, _ := strings.Cut(line, "=>")
		request, want = strings.TrimSpace(request), strings.TrimSpace(want)
		name, got := "a", ""
		if first, rest, ok := strings.Cut(request, " "); ok && strings.HasSuffix(first, ":") {
			name, request = strings.TrimSuffix(first, ":"), rest
		}
		if strings.HasSuffix(request, "?") && !strings.Contains(request, " ") {
			got = b.connect(strings.TrimSuffix(request, "?")).take()
		} else {
			got = b.do(name, splitWords(request)...)
		}
		begin, open := strings.CutSuffix(want, "...")
		if got != want && !(open && strings.HasPrefix(got, begin)) {
			b.t.Errorf("%s\ngot  %s\nwant %s", line, got, want)
		}
	}
}

func splitWords(s string) (words []string) {
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		if quoted, err := strconv.QuotedPrefix(s); err == nil {
			word, _ := strconv.Unquote(quoted)
			words, s = append(words, word), s[len(quoted):]
			continue
		}
		word, rest, _ := strings.Cut(s, " ")
		words, s = append(words, word), rest
	}
	return words
}
