package admin

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/filter"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
)

// onBackends runs a test on each backend of this system.
func onBackends(t *testing.T, f func(t *testing.T, e *rondo.Engine)) {
	for _, name := range pick.Names() {
		e := &rondo.Engine{NumLoops: 2, Backend: name}
		if err := e.Start(); err != nil {
			continue // the system forbids it; the conformance tests tell of that
		}
		t.Run(name, func(t *testing.T) { f(t, e) })
		e.Close()
	}
}

// listed waits for a listing that a condition holds for.
func listed(t *testing.T, p *Page, path string, is func(l *listing) bool) *listing {
	t.Helper()
	var l *listing
	testkit.Until(t, "a listing", func() bool {
		p.lists.mu.Lock()
		p.lists.kept = nil
		p.lists.mu.Unlock()
		l = new(listing)
		fetch(t, p, path, l)
		return is(l)
	})
	return l
}

// pauser is a Handler that pauses its connection.
type pauser struct{ rondo.HandlerFunc }

// TestConns: what the page says of connections.
func TestConns(t *testing.T) {
	onBackends(t, func(t *testing.T, e *rondo.Engine) {
		p := New(e, Options{})
		address := testkit.Listen(t, e, func(c *rondo.Conn) rondo.Handler {
			return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
				switch in[0] {
				case 'p':
					c.SetHandler(pauser{})
					c.Pause()
					return 1, nil
				case 'w':
					return len(in), writeMuch(c)
				}
				return c.Write(in[:1]) // the rest waits
			})
		})
		idle, paused, full := testkit.Dial(t, address), testkit.Dial(t, address), testkit.Dial(t, address)
		full.SetReadBuffer(4 << 10)
		testkit.Echoes(t, idle, "x")
		fmt.Fprint(paused, "pause")
		fmt.Fprint(full, "w")
		l := listed(t, p, "/conns?sort=-unsent", func(l *listing) bool {
			// A loop may hear that the idle one's byte has left after the peer has read it.
			return l.Total == 3 && l.Rows[0].Unsent > 0 && strings.Contains(l.Rows[0].State, "output is full") &&
				l.Rows[1].Unsent == 0 &&
				slices.ContainsFunc(l.Rows, func(r connRow) bool { return r.Handler == "admin.pauser" })
		})
		for _, r := range l.Rows {
			switch r.Remote {
			case idle.LocalAddr().String():
				if r.State != "" || r.Unsent != 0 || !strings.Contains(r.Handler, "TestConns") {
					t.Errorf("the idle one: %+v", r)
				}
				if r.In >= 0 && (r.In != 1 || r.Idle < 0) {
					t.Errorf("the idle one has carried %v, %v: %+v", r.In, r.Out, r)
				}
			case paused.LocalAddr().String():
				if r.State != "paused by its handler" || r.Handler != "admin.pauser" {
					t.Errorf("the paused one: %+v", r)
				}
			case full.LocalAddr().String():
				if r != l.Rows[0] {
					t.Errorf("the full one: %+v", r)
				}
			default:
				t.Errorf("another one: %+v", r)
			}
			if r.Age < 0 || r.Age > 3600 || r.Loop < 0 || r.Loop > 1 {
				t.Errorf("%+v", r)
			}
		}
	})
}

// writeMuch writes more than HighWater, and more than the system takes.
func writeMuch(c *rondo.Conn) error {
	for range 15 {
		if _, err := c.Write(make([]byte, 1<<20)); err != nil {
			return err
		}
	}
	return nil
}

// TestManyConns: each is listed once, in pieces, and not more than are wanted.
func TestManyConns(t *testing.T) {
	const many = 3*piece + 7
	onBackends(t, func(t *testing.T, e *rondo.Engine) {
		p := New(e, Options{})
		address := testkit.Listen(t, e, testkit.Echo)
		for range many {
			testkit.Dial(t, address)
		}
		l := listed(t, p, "/conns?rows=1000&sort=age", func(l *listing) bool { return l.Total == many })
		seen := make(map[string]bool)
		for _, r := range l.Rows {
			seen[r.Remote] = true
		}
		if len(seen) != many || len(l.Rows) != many || len(l.Missing) != 0 {
			t.Errorf("%d rows, of %d connections; missing %v", len(l.Rows), len(seen), l.Missing)
		}
		var few listing
		if fetch(t, p, "/conns?rows=5&sort=age", &few); len(few.Rows) != 5 || few.Total != many {
			t.Errorf("%d rows of %d", len(few.Rows), few.Total)
		}
	})
}

// TestNames: filters, functions and unix sockets have names.
func TestNames(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	dir, err := os.MkdirTemp("", "rondo") // a short name, as unix sockets want
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	if _, err := e.Listen("unix", path, rondo.SocketOptions{}, rondo.Filtered(testkit.Echo, new(filter.Count).Filter)); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	testkit.Echoes(t, c, "hello")
	l := listed(t, New(e, Options{}), "/conns?sort=-handler", func(l *listing) bool { return l.Total == 1 })
	r := l.Rows[0]
	if !strings.HasPrefix(r.Remote, "unix") || !strings.Contains(r.Handler, "(*Conn).Write") || !strings.Contains(r.Handler, " ← *filter.") || r.In != -1 {
		t.Errorf("%+v", r)
	}
}

// TestBlockedLoop: the others' connections are listed.
func TestBlockedLoop(t *testing.T) {
	e := &rondo.Engine{NumLoops: 2}
	address := testkit.Listen(t, e, testkit.Echo)
	testkit.Echoes(t, testkit.Dial(t, address), "a")
	testkit.Echoes(t, testkit.Dial(t, address), "b")
	block := make(chan struct{})
	for l := range e.Loops() {
		if l.ID() == 0 {
			l.Post(func() { <-block })
		}
	}
	p := New(e, Options{})
	l := listed(t, p, "/conns", func(l *listing) bool { return l.Total == 1 })
	if !slices.Equal(l.Missing, []int{0}) || len(l.Rows) != 1 || l.Rows[0].Loop != 1 {
		t.Errorf("%+v", l)
	}
	close(block)
	if l = listed(t, p, "/conns", func(l *listing) bool { return l.Total == 2 }); len(l.Missing) != 0 {
		t.Errorf("%+v", l)
	}
}

// TestListingsAreRare: clients that ask again soon get the listing that was made before, so that
// listings take little of the loops' time.
func TestListingsAreRare(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	p := New(e, Options{})
	o, _ := parseOrder("age")
	first, err := p.lists.get(t.Context(), o, usualRows)
	if err != nil {
		t.Fatal(err)
	}
	first.At = time.Now().Add(time.Hour) // fresh for long
	if again, _ := p.lists.get(t.Context(), o, usualRows); again != first {
		t.Error("a fresh listing is not used")
	}
	first.At = time.Time{}
	p.lists.next = time.Now().Add(time.Hour) // the loops are busy
	if again, _ := p.lists.get(t.Context(), o, usualRows); again != first {
		t.Error("a listing is made before it is time")
	}
	first.At = time.Now().Add(time.Hour)
	if again, _ := p.lists.get(t.Context(), o, 1); again != first {
		t.Error("a listing with more rows is not used")
	}
	p.lists.next = time.Time{}
	if more, _ := p.lists.get(t.Context(), o, usualRows+1); more == first || more.most != usualRows+1 {
		t.Error("a listing with fewer rows is used")
	}
	p.lists.kept = []*listing{first}
	first.At = time.Time{}
	p.lists.next = time.Now().Add(-time.Hour)
	if again, _ := p.lists.get(t.Context(), o, usualRows); again == first {
		t.Error("an old listing is used")
	}
	for _, other := range orders {
		p.lists.next = time.Time{}
		o, _ := parseOrder(other.name)
		if _, err := p.lists.get(t.Context(), o, usualRows); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.lists.kept) != maxListings || p.lists.kept[maxListings-1].Sort != orders[len(orders)-1].name {
		t.Errorf("%d listings are kept", len(p.lists.kept))
	}
}

// TestListingsWaitForNobody: a client that waits for its own order keeps nobody from a listing
// that is there.
func TestListingsWaitForNobody(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	p := New(e, Options{})
	age, _ := parseOrder("age")
	first, err := p.lists.get(t.Context(), age, usualRows)
	if err != nil {
		t.Fatal(err)
	}
	p.lists.next = time.Now().Add(time.Hour) // the loops are busy
	ctx, stop := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() {
		in, _ := parseOrder("in")
		_, err := p.lists.get(ctx, in, usualRows)
		waited <- err
	}()
	time.Sleep(10 * time.Millisecond) // it waits by now, most likely
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if again, err := p.lists.get(soon, age, usualRows); again != first {
		t.Errorf("the listing that is there does not come: %v", err)
	}
	stop()
	if err := <-waited; err == nil {
		t.Error("a listing was made before it was time")
	}
}

// TestListingOfAClientThatGoes: what others get is not cut short by it.
func TestListingOfAClientThatGoes(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	address := testkit.Listen(t, e, testkit.Echo)
	testkit.Echoes(t, testkit.Dial(t, address), "a")
	p := New(e, Options{})
	began, goOn := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.lists.get(ctx, order{name: "age", key: func(*connRow) float64 { close(began); <-goOn; return 0 }}, usualRows)
	}()
	<-began
	cancel()
	select {
	case <-ended:
	case <-time.After(20 * time.Millisecond): // it goes on
	}
	close(goOn)
	<-ended
	for _, l := range p.lists.kept {
		if l.Total != 1 || len(l.Missing) > 0 {
			t.Errorf("%+v", l)
		}
	}
}

// TestUnfinishedListing: the time that a loop has worked for it counts too.
func TestUnfinishedListing(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	address := testkit.Listen(t, e, testkit.Echo)
	testkit.Echoes(t, testkit.Dial(t, address), "a")
	ctx, cancel := context.WithCancel(t.Context())
	goOn := make(chan struct{})
	defer close(goOn)
	slow := order{name: "age", key: func(r *connRow) float64 {
		time.Sleep(time.Millisecond)
		for l := range e.Loops() {
			l.Post(func() { cancel(); <-goOn }) // before the next piece
		}
		return 0
	}}
	l, spent := New(e, Options{}).list(ctx, slow, usualRows)
	if !slices.Equal(l.Missing, []int{0}) || spent < time.Millisecond {
		t.Errorf("%+v, %v", l, spent)
	}
}

// TestOrders: the first rows are the same as if all were sorted, whatever the order.
func TestOrders(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var all []connRow
	for i := range 5 * maxRows {
		all = append(all, connRow{Loop: i % 3, Remote: fmt.Sprint(i), Age: random.Float64(), Idle: float64(random.IntN(10) - 1),
			In: float64(random.IntN(1000) - 1), Out: float64(random.IntN(1e6)), Unsent: random.IntN(1e6), Input: random.IntN(1e6), state: bridge.State(random.IntN(10))})
	}
	named := slices.Clone(all) // text counts in the order by handlers alone
	for i := range named {
		named[i].text = fmt.Sprintf("handler %d", random.IntN(3*maxRows))
	}
	plain := all
	for _, base := range orders {
		for _, name := range []string{base.name, "-" + base.name} {
			o, ok := parseOrder(name)
			if !ok {
				t.Fatal(name)
			}
			if all = plain; o.byHandler {
				all = named
			}
			b := best{order: o, most: maxRows}
			for _, r := range all {
				if r.key = o.key(&r); b.wants(&r) {
					b.add(r)
				}
			}
			if b.cut(); len(b.rows) != maxRows {
				t.Fatalf("%s: %d rows", name, len(b.rows))
			}
			sorted := slices.Clone(all)
			for i := range sorted {
				sorted[i].key = o.key(&sorted[i])
			}
			slices.SortFunc(sorted, func(x, y connRow) int { return o.compare(&x, &y) })
			for i, r := range b.rows {
				if o.compare(&r, &sorted[i]) != 0 {
					t.Fatalf("%s: row %d is %+v, want %+v", name, i, r, sorted[i])
				}
			}
			if byText := base.byHandler; byText && (b.rows[0].text > b.rows[maxRows-1].text) != o.falls {
				t.Errorf("%s: from %q to %q", name, b.rows[0].text, b.rows[maxRows-1].text)
			}
		}
	}
	if o, ok := parseOrder(""); !ok || o.name != "-age" {
		t.Errorf("the default is %q", o.name)
	}
	unknown, _ := parseOrder("-in")
	if less, more := unknown.key(&connRow{In: 0}), unknown.key(&connRow{In: -1}); less >= more {
		t.Error("what is not known does not come last")
	}
}
