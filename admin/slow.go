package admin

import (
	"sync"
	"time"

	"github.com/rondo-go/rondo/watchdog"
)

const (
	keptSlow = 50       // callbacks
	maxStack = 16 << 10 // bytes of each
)

// slowLog keeps the last callbacks that blocked a loop.
type slowLog struct {
	mu    sync.Mutex
	calls []slowCall // the newest last
	count uint64     // of all callbacks so far
	news  uint64     // of all reports so far
}

// A slowCall is a callback in the page's JSON.
type slowCall struct {
	Number     uint64    `json:"number"`
	At         time.Time `json:"at"` // of its first report
	Loop       int       `json:"loop"`
	Remote     string    `json:"remote"`
	Seconds    float64   `json:"seconds"`
	Delayed    float64   `json:"delayed"`
	Over       bool      `json:"over"`
	State      string    `json:"state"`
	Coroutine  bool      `json:"coroutine"`
	Func       string    `json:"func"`
	File       string    `json:"file"`
	Line       int       `json:"line"`
	Advice     string    `json:"advice"`
	Stack      string    `json:"stack"`
	Unreported int       `json:"unreported"`
}

// Report shows a report of a Watchdog on the page, which keeps those of the last 50 callbacks.
// Call it in watchdog.Options.Report.
func (p *Page) Report(r watchdog.Report) {
	c := slowCall{
		At: time.Now().Add(-r.For), Loop: r.Loop.ID(), Seconds: r.For.Seconds(), Delayed: r.Delayed.Seconds(), Over: r.Over,
		State: r.State, Coroutine: r.Coroutine, Func: cut(r.Func, maxCell), File: cut(r.File, maxCell), Line: r.Line,
		Advice: r.Advice, Stack: cut(string(r.Stack), maxStack), Unreported: r.Unreported,
	}
	if r.Remote.IsValid() {
		c.Remote = r.Remote.String()
	}
	p.slow.add(c)
}

// add adds a callback, or what else is known of one that was not over.
func (l *slowLog) add(c slowCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.news++
	for i := len(l.calls) - 1; i >= 0; i-- {
		if old := &l.calls[i]; old.Loop == c.Loop {
			if old.Over {
				break // a loop has one callback at a time
			}
			c.Number, c.At, c.Unreported = old.Number, old.At, old.Unreported
			*old = c
			return
		}
	}
	l.count++
	c.Number = l.count
	if len(l.calls) == keptSlow {
		copy(l.calls, l.calls[1:])
		l.calls = l.calls[:keptSlow-1]
	}
	l.calls = append(l.calls, c)
}

// all returns the callbacks, the newest first.
func (l *slowLog) all() []slowCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := make([]slowCall, 0, len(l.calls))
	for i := range l.calls {
		calls = append(calls, l.calls[len(l.calls)-1-i])
	}
	return calls
}

// counts returns how many callbacks and reports there were so far.
func (l *slowLog) counts() (calls, reports uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count, l.news
}
