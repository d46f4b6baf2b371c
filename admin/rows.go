package admin

import (
	"cmp"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/sys"
)

// A connRow is a connection in the page's JSON. Times are in seconds. -1 stands for what the
// system does not tell.
type connRow struct {
	Loop    int     `json:"loop"`
	Remote  string  `json:"remote"`
	Age     float64 `json:"age"` // on this loop
	Idle    float64 `json:"idle"`
	In      float64 `json:"in"` // bytes, as the system counts them
	Out     float64 `json:"out"`
	Unsent  int     `json:"unsent"`
	Input   int     `json:"input"`
	Handler string  `json:"handler"`
	State   string  `json:"state"`

	state bridge.State
	key   float64 // the rows with the smallest ones are shown
	text  string  // likewise, of rows with the same key
}

// readTraffic asks the system what the connection has carried. Loops do not count that for each
// connection, and what passes them by, as answers of goroutines do, counts too.
func (r *connRow) readTraffic(c *rondo.Conn) {
	c.Control(func(fd uintptr) error { // an error: there is no descriptor
		if t, ok := sys.TrafficOf(fd); ok {
			r.In, r.Out, r.Idle = float64(t.In), float64(t.Out), t.Idle.Seconds()
		}
		return nil
	})
}

// describe fills in what is shown alone.
func (r *connRow) describe(c *rondo.Conn) {
	remote := c.RemoteAddr()
	r.Remote = cut(remote.String(), maxCell)
	if network := remote.Network(); network == "unix" {
		r.Remote = cut("unix "+remote.String(), maxCell)
	}
	r.Handler = cut(handlerOf(c), maxCell)
	r.State = wordsOf(r.state)
}

// handlerOf returns the names of the Handler and the Filters.
func handlerOf(c *rondo.Conn) string {
	name := nameOf(c.Handler())
	for f := range c.Filters() {
		name += " ← " + nameOf(f)
	}
	return name
}

// nameOf returns the type of a Handler or a Filter, or the name of a function.
func nameOf(h any) string {
	if v := reflect.ValueOf(h); v.Kind() == reflect.Func {
		if f := runtime.FuncForPC(v.Pointer()); f != nil {
			return f.Name()
		}
	}
	return reflect.TypeOf(h).String()
}

// stateWords are what the page says of a connection's state: why it is not read, and how far
// its end is.
var stateWords = []struct {
	is   bridge.State
	word string
}{
	{bridge.Closed, "closed"},
	{bridge.Closing, "closing"},
	{bridge.Leaving, "leaving its loop"},
	{bridge.Paused, "paused by its handler"},
	{bridge.OutputFull, "paused: output is full"},
	{bridge.FilterFull, "paused by a filter"},
	{bridge.PeerEnded, "peer has ended"},
	{bridge.Ended, "output has ended"},
}

func wordsOf(s bridge.State) string {
	var words []string
	for _, w := range stateWords {
		if s&w.is != 0 {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, ", ")
}

// An order is one in which connections are listed: by key, or by the handler's name.
type order struct {
	name         string // as in a request
	key          func(*connRow) float64
	needsTraffic bool
	byHandler    bool
	falls        bool // the largest come first
}

// orders are what connections can be sorted by.
var orders = []order{
	{name: "age", key: func(r *connRow) float64 { return r.Age }},
	{name: "idle", key: func(r *connRow) float64 { return r.Idle }, needsTraffic: true},
	{name: "in", key: func(r *connRow) float64 { return r.In }, needsTraffic: true},
	{name: "out", key: func(r *connRow) float64 { return r.Out }, needsTraffic: true},
	{name: "unsent", key: func(r *connRow) float64 { return float64(r.Unsent) }},
	{name: "input", key: func(r *connRow) float64 { return float64(r.Input) }},
	{name: "state", key: func(r *connRow) float64 { return float64(r.state) }},
	{name: "loop", key: func(r *connRow) float64 { return float64(r.Loop) }},
	{name: "handler", key: func(*connRow) float64 { return 0 }, byHandler: true},
}

func orderNames() string {
	var names []string
	for _, o := range orders {
		names = append(names, o.name)
	}
	return strings.Join(names, ", ")
}

// parseOrder finds an order by its name. With - before it the largest come first. What is not
// known comes last in both.
func parseOrder(name string) (o order, ok bool) {
	name = cmp.Or(name, "-age")
	plain, falls := strings.CutPrefix(name, "-")
	i := slices.IndexFunc(orders, func(o order) bool { return o.name == plain })
	if i < 0 {
		return order{}, false
	}
	o = orders[i]
	key := o.key
	o.name, o.falls = name, falls
	o.key = func(r *connRow) float64 {
		k := key(r)
		switch {
		case k < 0:
			return math.Inf(1)
		case falls:
			return -k
		}
		return k
	}
	return o, true
}

// compare tells which of two rows comes first. Rows that are equal have an order, too, so that
// a list does not change by itself.
func (o *order) compare(x, y *connRow) int {
	text := strings.Compare(x.text, y.text)
	if o.falls {
		text = -text
	}
	return cmp.Or(cmp.Compare(x.key, y.key), text)
}

// best are the first rows in an order, most of them or up to twice as many.
type best struct {
	order order
	most  int
	rows  []connRow
	full  bool
	worst connRow // the last one, once there are most
}

// wants reports whether a row may be one of the first.
func (b *best) wants(r *connRow) bool { return !b.full || b.order.compare(r, &b.worst) < 0 }

func (b *best) add(r connRow) {
	if b.rows = append(b.rows, r); len(b.rows) >= 2*b.most {
		b.cut()
	}
}

// cut sorts the rows, and forgets those that are too many.
func (b *best) cut() {
	slices.SortStableFunc(b.rows, func(x, y connRow) int {
		return cmp.Or(b.order.compare(&x, &y), cmp.Compare(x.Loop, y.Loop), cmp.Compare(x.Remote, y.Remote))
	})
	if len(b.rows) >= b.most {
		b.rows = b.rows[:b.most]
		b.full, b.worst = true, b.rows[b.most-1]
	}
	if b.rows == nil {
		b.rows = []connRow{} // [] in JSON
	}
}
