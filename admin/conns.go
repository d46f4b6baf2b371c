package admin

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A listing is connections in the page's JSON: the first ones in an order.
type listing struct {
	At      time.Time `json:"at"`
	Sort    string    `json:"sort"`
	Total   int       `json:"total"`   // connections that were looked at
	Missing []int     `json:"missing"` // loops that did not answer in time
	Rows    []connRow `json:"rows"`

	most int // rows that were asked for
}

const (
	usualRows = 200
	// piece is how many places of its table a loop looks at in a turn.
	piece = 64
	// listTime is how long the loops have to answer.
	listTime = time.Second
	// fresh is how long a listing serves all who ask.
	fresh = time.Second
	// share is the part of its time that a loop spends on listings: one of so many.
	share = 100
	// maxListings is how many listings, in different orders, are kept.
	maxListings = 4
)

// lists makes the listings, one at a time.
type lists struct {
	page   *Page
	mu     sync.Mutex
	next   time.Time     // when the loops have time for another listing
	kept   []*listing    // the newest last
	making chan struct{} // closed when the listing that is being made is done; nil: none is
}

// get returns a listing in an order with so many rows, or more: of the last second, or a new one.
// If the loops have no time for that yet, an older one.
func (l *lists) get(ctx context.Context, o order, rows int) (*listing, error) {
	for {
		found, done, wait := l.find(o, rows)
		switch {
		case found != nil:
			return found, nil
		case done == nil:
			// A client that goes does not end it: what others get would lack loops that do answer.
			made, spent := l.page.list(context.WithoutCancel(ctx), o, rows)
			l.made(made, spent)
			return made, nil
		}
		select {
		case <-done:
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// find returns a listing that is fresh enough; or, for the caller to wait for, when another one is
// done and when the loops have time; or nil, nil: the caller is to make one.
func (l *lists) find(o order, rows int) (found *listing, done <-chan struct{}, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait = time.Until(l.next)
	for _, k := range l.kept {
		if age := time.Since(k.At); k.Sort == o.name && k.most >= rows && (wait > 0 || age < fresh || l.making != nil && age < listTime+fresh) {
			return k, nil, 0
		}
	}
	switch {
	case l.making != nil:
		return nil, l.making, listTime + max(wait, 0)
	case wait > 0:
		return nil, make(chan struct{}), wait
	}
	l.making = make(chan struct{})
	return nil, nil, 0
}

// made keeps a listing for which a loop has worked so long.
func (l *lists) made(made *listing, spent time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = time.Now().Add(spent * share)
	l.keep(made)
	close(l.making)
	l.making = nil
}

// keep keeps a listing in place of the one of the same order, or of the oldest.
func (l *lists) keep(made *listing) {
	kept := l.kept[:0:0]
	for _, k := range l.kept {
		if k.Sort != made.Sort {
			kept = append(kept, k)
		}
	}
	kept = append(kept, made)
	l.kept = kept[max(0, len(kept)-maxListings):]
}

// serveConns answers with a listing.
func (p *Page) serveConns(w http.ResponseWriter, r *http.Request) {
	o, ok := parseOrder(r.FormValue("sort"))
	if !ok {
		http.Error(w, "sort must be "+orderNames()+", with - before it for the largest first", http.StatusBadRequest)
		return
	}
	rows := usualRows
	if text := r.FormValue("rows"); text != "" {
		var err error
		if rows, err = strconv.Atoi(text); err != nil || rows < 1 || rows > maxRows {
			http.Error(w, "rows must be a number from 1 to "+strconv.Itoa(maxRows), http.StatusBadRequest)
			return
		}
	}
	found, err := p.lists.get(r.Context(), o, rows)
	if err != nil {
		return // the client has gone
	}
	shown := *found
	shown.Rows = shown.Rows[:min(len(shown.Rows), rows)]
	writeJSON(w, &shown, "")
}

// list looks at all connections. spent is the most time that one loop has worked for it: most of
// it for rows, whose connections are asked more than the others.
func (p *Page) list(ctx context.Context, o order, rows int) (made *listing, spent time.Duration) {
	made = &listing{Sort: o.name, Missing: []int{}, most: rows}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	var stop atomic.Bool
	defer stop.Store(true)
	loops := slices.Collect(p.engine.Loops())
	walks, done := make(map[*walk]bool), make(chan *walk, len(loops))
	for _, l := range loops {
		w := &walk{loop: l, wire: bridge.LoopOf(l), best: best{order: o, most: rows}, stop: &stop, done: done}
		if l.Post(w.piece) == nil { // otherwise the loop has ended
			walks[w] = true
		}
	}
	all := best{order: o, most: rows}
	for len(walks) > 0 {
		select {
		case w := <-done:
			delete(walks, w)
			made.Total += w.total
			spent = max(spent, w.time())
			for _, row := range w.best.rows {
				all.add(row)
			}
			continue
		case <-ctx.Done():
		}
		for w := range walks {
			made.Missing = append(made.Missing, w.loop.ID())
			spent = max(spent, w.time())
		}
		break
	}
	all.cut()
	made.Rows, made.At = all.rows, time.Now()
	return made, spent
}

// A walk looks at a loop's connections, a piece in each turn.
type walk struct {
	loop  *rondo.Loop
	wire  bridge.Loop
	best  best
	from  uint32
	total int
	spent atomic.Int64 // nanoseconds that the loop has worked for it
	stop  *atomic.Bool // nobody waits for the walk any more
	done  chan<- *walk
}

// time returns how long the loop has worked for the walk, which may go on.
func (w *walk) time() time.Duration { return time.Duration(w.spent.Load()) }

// piece looks at some connections, on the loop.
func (w *walk) piece() {
	if w.stop.Load() {
		return
	}
	began := time.Now()
	next, more := w.wire.List(w.from, piece, w.look)
	w.from = next
	w.spent.Add(int64(time.Since(began)))
	if !more || w.loop.Post(w.piece) != nil {
		w.done <- w
	}
}

// look looks at a connection. What costs more is done for those alone that may be shown.
func (w *walk) look(conn any, f bridge.Facts) {
	w.total++
	c := conn.(*rondo.Conn)
	row := connRow{Loop: w.loop.ID(), Age: f.Age.Seconds(), Unsent: f.Unsent, Input: f.Input, state: f.State, Idle: -1, In: -1, Out: -1}
	if w.best.order.needsTraffic {
		row.readTraffic(c)
	}
	if w.best.order.byHandler {
		row.text = handlerOf(c)
	}
	row.key = w.best.order.key(&row)
	if !w.best.wants(&row) {
		return
	}
	row.describe(c)
	if !w.best.order.needsTraffic {
		row.readTraffic(c)
	}
	w.best.add(row)
}
