package randomuser

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
)

// A world has engines with the user's code, peers outside of the engines, and
// bystanders: connections that the user does not touch, and that must not notice
// anything.
type world struct {
	place placeOf
	src   *source
	sim   bool

	mu      sync.Mutex
	fails   []string
	conns   []*conn
	byConn  map[*rondo.Conn]*conn
	pairs   map[*rondo.Conn][2]string
	streams map[string]*stream
	things  []*thing
	cover   map[[2]string]int
	names   map[string]int
	homes   sync.Map // of *rondo.Loop: *home
	filters sync.Map // of *rondo.FilterPort: *filter
	holders sync.Map // of *rondo.Conn: *holder
	loops   []*rondo.Loop
	engines []*rondo.Engine
	blowers map[int]*conn // by number of panic: the connection that it may end

	loose                          []net.Conn // detached, to be closed
	sockets                        []*rondo.PacketConn
	closings                       []func()
	listeners                      []*listener
	peers                          []*peer
	bystanders                     []*bystander
	maxInput, maxOutput, highWater int
	focus                          *focus
	breaks                         bool // the network resets connections
	slow                           bool // peers seldom read, and MaxOutput is small
	hooked                         bool // BeforeWrite and AfterWrite are the user's: no output is gathered
	booms                          int
	exits                          atomic.Int32 // calls of runtime.Goexit
	spent                          atomic.Int32 // actions
	written                        atomic.Int32 // bytes
	calm                           atomic.Bool  // nobody acts any more
	ending                         atomic.Bool  // an engine is being closed
	pulse                          atomic.Uint64
	fatal                          func() // ends the process, with the result so far
}

// listener is a source of the user's connections.
type listener struct {
	name, addr string
	tls        bool
	filtered   bool
	co         bool
	ln         *rondo.Listener
}

// home is the user's state on a loop.
type home struct {
	turn turn
	held holdings
}

func (w *world) home(l *rondo.Loop) *home {
	h, ok := w.homes.Load(l)
	if !ok {
		h, _ = w.homes.LoadOrStore(l, &home{held: holdings{conds: [2]*coro.Cond{{}, {}}}})
	}
	return h.(*home)
}

// turn counts the events in a turn of a loop.
type turn struct {
	count  atomic.Uint64
	calls  int
	now    time.Time
	still  int // turns since time last passed
	seldom int
}

const (
	maxActions      = 250     // per world
	maxBytes        = 2 << 20 // written per world
	maxCallsPerTurn = 5000
	maxStillTurns   = 3000
	maxFails        = 4 // reported per world
)

func (w *world) failf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.fails) < maxFails {
		w.fails = append(w.fails, fmt.Sprintf(format, args...))
	}
}

// die is failf for failures after which the world cannot continue.
func (w *world) die(format string, args ...any) {
	w.failf(format, args...)
	w.fatal()
}

func (w *world) stream(from, to string) *stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := from + ">" + to
	s := w.streams[key]
	if s == nil {
		s = newStream(key, len(w.streams)+1)
		w.streams[key] = s
	}
	return s
}

// child names an object that a step creates.
func (w *world) child(parent, kind string) string {
	if i := strings.LastIndexByte(parent, '/'); i > 0 && len(parent) > 60 {
		parent = "…" + parent[i:]
	}
	name := parent + "/" + kind
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name]++
	if n := w.names[name]; n > 1 {
		name += fmt.Sprint(n)
	}
	return name
}

var secrets = sync.OnceValues(func() (server, client *tls.Config) {
	a := testcert.New("random")
	server = &tls.Config{Certificates: []tls.Certificate{a.Issue(testcert.ECDSA, "user.test")}}
	return server, &tls.Config{RootCAs: a.Pool(), ServerName: "user.test"}
})

func newWorld(s script) *world {
	w := &world{
		src: newSource(s), sim: s.Backend == "sim",
		byConn: map[*rondo.Conn]*conn{}, pairs: map[*rondo.Conn][2]string{}, streams: map[string]*stream{},
		cover: map[[2]string]int{}, names: map[string]int{},
		blowers: map[int]*conn{},
		focus:   s.focus(),
	}
	w.calm.Store(true) // until all engines run
	return w
}

// play runs one world from beginning to end.
func (w *world) play() {
	st := w.src.step("world")
	if w.sim {
		o := rondotest.Options{Seed: w.src.script.Seed | 1<<40}
		if st.one(2) {
			o.Faults = rondotest.Harmless(0.1)
			o.Faults.Loss, o.Faults.Duplicate, o.Faults.Disorder = 0.1, 0.1, 0.1
		}
		if st.one(4) {
			o.Faults.Reset = 0.002
			w.breaks = true
		}
		o.Buffer = []int{0, 2000, 20000}[st.intn(3)]
		if w.slow = st.one(4); w.slow {
			o.Buffer = 2000
		}
		w.place = newSimPlace(o)
	} else {
		w.slow = st.one(4)
		w.place = &sockets{w.src.script.Backend}
	}
	w.maxInput = []int{0, 3000, 100 << 10}[st.intn(3)]
	w.maxOutput = []int{0, 40 << 10, 5000}[st.intn(3)]
	w.highWater = []int{0, 8 << 10, 1000}[st.intn(3)]
	if w.slow {
		w.maxOutput = 5000
	}
	if w.focus.wants("drains") {
		w.highWater = 1000
	}
	w.hooked = st.one(4) || w.focus.wants("hooks")
	engines := 1 + st.intn(2)
	for i := range engines {
		if !w.begin(i, 1+st.intn(2), st) {
			return
		}
	}
	if w.maxInput == 0 {
		w.maxInput = rondo.DefaultMaxInput
	}
	if w.maxOutput == 0 {
		w.maxOutput = rondo.DefaultMaxOutput
	}
	w.live(st)
	w.end(st)
}

// begin starts an engine with its listeners.
func (w *world) begin(i, loops int, st *step) bool {
	e := &rondo.Engine{
		NumLoops: loops, Logger: quiet(w), Trace: w.trace(fmt.Sprint("e", i)),
		MaxInput: w.maxInput, MaxOutput: w.maxOutput, HighWater: w.highWater, LowWater: w.highWater / 4,
		Linger:   200 * time.Millisecond,
		Resolver: resolver{w},
	}
	w.place.engine(e)
	w.engines = append(w.engines, e)
	if !w.called("Engine.Start", func() {
		if err := e.Start(); err != nil {
			w.failf("start: %v", err)
		}
	}) {
		return false
	}
	for l := range e.Loops() {
		w.loops = append(w.loops, l)
	}
	server, _ := secrets()
	add := func(kind string, open rondo.OpenFunc) *listener {
		name := fmt.Sprintf("%s%d", kind, i)
		ln := &listener{name: name}
		w.called("Engine.Listen", func() {
			l, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, open)
			if err != nil {
				w.failf("listen: %v", err)
				return
			}
			ln.ln, ln.addr = l, l.Addr().String()
			w.mu.Lock()
			w.listeners = append(w.listeners, ln)
			w.mu.Unlock()
		})
		return ln
	}
	add("plain", w.opener(fmt.Sprintf("plain%d", i)))
	kind := st.intn(4)
	switch {
	case w.focus.wants("co"):
		kind = 3
	case w.focus.wants("filtered"):
		kind = 1
	}
	switch kind {
	case 1:
		add("filtered", rondo.Filtered(w.opener(fmt.Sprintf("filtered%d", i)), w.filter(fmt.Sprintf("filtered%d", i)))).filtered = true
	case 2:
		o := &rtls.Options{HandshakeTimeout: 300 * time.Millisecond}
		add("tls", rondo.Filtered(w.opener(fmt.Sprintf("tls%d", i)), o.Server(server))).tls = true
	case 3:
		add("co", w.coroutine(fmt.Sprintf("co%d", i))).co = true
	}
	if sockets := st.one(3); sockets || w.focus.wants("sockets") {
		for _, name := range []string{"socketA", "socketB"} {
			w.called("Engine.ListenPacket", func() {
				w.packetSocket(fmt.Sprint(name, i), func(h rondo.PacketHandler) (*rondo.PacketConn, error) {
					return e.ListenPacket("udp", "127.0.0.1:0", rondo.SocketOptions{}, h)
				})
			})
		}
	}
	for range loops {
		w.bystander(e)
	}
	return len(w.fails) == 0
}

// called runs f, which waits for loops, from outside.
func (w *world) called(what string, f func()) bool {
	if err := w.place.call(f); err != nil {
		w.failf("hang: %s never returns: %s", what, brief(err.Error()))
		return false
	}
	return true
}

// live lets the peers and the outsider act, and time pass.
func (w *world) live(st *step) {
	w.calm.Store(false)
	for range 1 + st.intn(4) {
		w.connect()
	}
	for range 6 + st.intn(20) {
		if len(w.failed()) > 0 {
			return
		}
		for _, p := range w.peers {
			p.act()
		}
		for _, b := range w.bystanders {
			b.act(w)
		}
		w.closeLoose()
		out := w.src.step("time")
		if out.one(3) {
			w.outsider()
		}
		if w.slow {
			w.stuff()
		}
		w.pass(time.Duration(out.intn(2000)) * time.Microsecond)
	}
}

// closeLoose closes the detached connections.
func (w *world) closeLoose() {
	w.mu.Lock()
	loose := w.loose
	w.loose = nil
	w.mu.Unlock()
	for _, nc := range loose {
		nc.Close()
	}
}

func (w *world) pass(d time.Duration) {
	if err := w.place.pass(d); err != nil {
		w.die("hang: time does not pass: %s", brief(err.Error()))
	}
	w.pulse.Add(1)
}

func (w *world) failed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.fails)
}

// end closes everything, and checks that nothing is left.
func (w *world) end(st *step) {
	w.calm.Store(true)
	for _, b := range w.bystanders {
		b.finish(w)
	}
	for _, p := range w.peers {
		p.finish()
	}
	w.ending.Store(true)
	shut := st.one(2)
	w.calm.Store(!st.one(2)) // the user may continue while engines are closed
	defer w.calm.Store(true)
	for i, e := range w.engines {
		if shut {
			ok := w.called(fmt.Sprintf("Engine.Shutdown of engine %d", i), func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				e.Shutdown(ctx)
			})
			if !ok {
				w.fatal()
			}
		} else if !w.called(fmt.Sprintf("Engine.Close of engine %d", i), func() { e.Close() }) {
			w.fatal()
		}
	}
	w.closeLoose()
	w.over()
	if err := w.place.close(); err != nil {
		w.failf("network: %s", brief(err.Error()))
	}
}

// over makes the oracles check what is left when the engines are closed.
func (w *world) over() {
	for _, k := range w.conns {
		if k.opened && !k.given && k.closed != 1 {
			w.failf("lost: %s: Closed was called %d times", k.name, k.closed)
		}
	}
	for _, f := range w.closings {
		f()
	}
	for _, t := range w.things {
		t.check(w)
	}
	for _, p := range w.peers {
		if p.sawEnd {
			if err := p.in.missing(); err != nil {
				w.failf("bytes: %v", err)
			}
		}
	}
	w.nothingHeld()
	account.audit(w)
	for i, e := range w.engines {
		if n := e.Stats().Open; n != 0 {
			w.failf("left: engine %d has %d connections after it was closed", i, n)
		}
	}
}

// A boom is the value of the user's panics.
type boom struct {
	n   int
	who string
}

func (b boom) String() string { return fmt.Sprintf("boom %d of %s", b.n, b.who) }

// panicCost checks that a panic that ended k belonged to k.
func (w *world) panicCost(k *conn, p *rondo.PanicError) {
	switch v := p.Value.(type) {
	case boom:
		w.mu.Lock()
		owner, known := w.blowers[v.n]
		w.mu.Unlock()
		if known && owner != k {
			name := "nobody"
			if owner != nil {
				name = owner.name
			}
			w.failf("panic: %v cost %s, and was %s's", v, k.name, name)
		}
	default:
		w.unexpected(p.Value, string(p.Stack))
	}
}

// unexpected checks a panic for one that the user did not raise.
func (w *world) unexpected(v any, stack string) {
	switch v := v.(type) {
	case boom:
	case string:
		if !strings.HasPrefix(v, "rondo: ") && !strings.HasPrefix(v, "rtls: ") {
			w.die("engine panicked: %v\n%s", v, calls(stack, 12))
		}
	default:
		w.die("engine panicked: %v\n%s", v, calls(stack, 12))
	}
}

// logHandler checks the engine's log entries of panics.
type logHandler struct {
	slog.Handler
	w *world
}

func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h *logHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *logHandler) WithGroup(string) slog.Handler            { return h }
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var value any
	stack := ""
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "panic":
			value = a.Value.Any()
		case "stack":
			stack = a.Value.String()
		}
		return true
	})
	if value != nil {
		h.w.unexpected(value, stack)
	}
	return nil
}

// A thing is a function that the engine promised to call: how often, and by which name.
type thing struct {
	name     string
	calls    atomic.Int32
	min, max int32
	void     atomic.Bool // the promise no longer holds
}

// promise records that the engine must call something.
func (w *world) promise(name string, least, most int32) *thing {
	t := &thing{name: name, min: least, max: most}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.things = append(w.things, t)
	return t
}

func (t *thing) called(w *world) {
	if n := t.calls.Add(1); n > t.max {
		w.failf("calls: %s was called %d times", t.name, n)
		if n > 1000 {
			w.fatal()
		}
	}
}

func (t *thing) check(w *world) {
	if n := t.calls.Load(); n < t.min && !t.void.Load() {
		w.failf("calls: %s was never called", t.name)
	}
}

// resolver knows no names.
type resolver struct{ w *world }

var errNoName = errors.New("no such name")

// trace returns the user's hooks.
func (w *world) trace(name string) *rondo.Trace {
	conn := func(kind string, c *rondo.Conn) {
		w.mu.Lock()
		k := w.byConn[c]
		w.mu.Unlock()
		at := site{kind: "Trace." + kind, who: name, loop: c.Loop(), conn: k}
		switch {
		case k != nil:
			at.who = k.name
		case w.isBystander(c):
			return
		}
		w.act(at)
	}
	t := &rondo.Trace{
		Accepted:     func(c *rondo.Conn) { w.pair(c); conn("Accepted", c) },
		FilterReady:  func(c *rondo.Conn, f rondo.Filter) { conn("FilterReady", c) },
		FilterFailed: func(c *rondo.Conn, f rondo.Filter, err error) { conn("FilterFailed", c) },
		Turn:         func(l *rondo.Loop) { w.turned(name, l) },
	}
	if w.hooked {
		t.BeforeWrite = func(c *rondo.Conn, n int) { conn("BeforeWrite", c) }
		t.AfterWrite = func(c *rondo.Conn, n int) { conn("AfterWrite", c) }
	}
	return t
}

// turned counts a loop's turns.
func (w *world) turned(name string, l *rondo.Loop) {
	t := &w.home(l).turn
	t.count.Add(1)
	w.pulse.Add(1)
	t.calls = 0
	w.audit(l)
	if now := l.Now(); !now.Equal(t.now) {
		t.now, t.still = now, 0
	} else if t.still++; w.sim && t.still > maxStillTurns {
		w.die("spin: loop %d of %s takes turn after turn, and no time passes", l.ID(), name)
	}
	if t.seldom++; t.seldom%8 == 0 && t.seldom < 200 {
		w.act(site{kind: "Trace.Turn", who: fmt.Sprintf("%s.%d", name, l.ID()), loop: l})
	}
}

// entered records that the user's code is called on a loop.
func (w *world) entered(at site) {
	w.pulse.Add(1)
	if at.loop == nil {
		return
	}
	t := &w.home(at.loop).turn
	if t.calls++; t.calls > maxCallsPerTurn {
		w.die("starved: the user was called %d times in a turn, now %s of %s", t.calls, at.kind, at.who)
	}
}

// calls shortens a stack to the names of its functions, from the panic on.
func calls(stack string, most int) string {
	if i := strings.LastIndex(stack, "\npanic("); i >= 0 {
		stack = stack[i+1:]
	}
	var b strings.Builder
	for line := range strings.Lines(stack) {
		name, _, call := strings.Cut(strings.TrimSpace(line), "(0x")
		if !call || strings.HasPrefix(line, "\t") {
			if name = strings.TrimSuffix(strings.TrimSpace(line), "(...)"); name == strings.TrimSpace(line) {
				continue
			}
		}
		if most--; most < 0 {
			break
		}
		name = strings.TrimPrefix(name, "github.com/rondo-go/rondo")
		fmt.Fprintf(&b, "      %s\n", strings.TrimPrefix(name, "/internal/backend/backendtest"))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}
