package admin

import (
	"context"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"
)

// A Section is a part of the page that the program adds, such as the backends of a proxy.
type Section struct {
	// Name is its title.
	Name string
	// Read returns the tables. It is called once a second while somebody looks, on a
	// goroutine, and not again before it has returned. If it takes long, the page shows what
	// it returned the last time. The context ends after five seconds.
	Read func(context.Context) ([]Table, error)
}

// A Table is what a Section shows. Strings may come from peers: the page shows them as text.
type Table struct {
	Name    string
	Columns []string
	// Rows have a cell for each column: a string, a bool, an integer or a float. Others are
	// shown as fmt does. 1,000 rows are shown, and 256 bytes of a string.
	Rows [][]any
}

const (
	maxRows = 1000
	maxCell = 256

	readTime = 5 * time.Second        // of Read
	patience = 300 * time.Millisecond // of who looks, with all Sections together
)

// A section is a Section and what it returned last.
type section struct {
	Section
	mu   sync.Mutex
	busy chan struct{} // closed when the Read that is under way has returned; nil: none is
	view sectionView
}

// A sectionView is a section in the page's JSON.
type sectionView struct {
	Name   string      `json:"name"`
	At     time.Time   `json:"at"` // zero: nothing was read yet
	Error  string      `json:"error,omitempty"`
	Tables []tableView `json:"tables"`
}

type tableView struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
	More    int      `json:"more"` // rows that are not shown
}

// refresh begins to read, unless that is under way. It returns when to look at view.
func (s *section) refresh() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy == nil {
		s.busy = make(chan struct{})
		go s.read(s.busy)
	}
	return s.busy
}

func (s *section) read(done chan struct{}) {
	view := sectionView{Name: s.Name}
	defer func() {
		if v := recover(); v != nil { // the page must not end the program
			view.Error, view.Tables = fmt.Sprintf("panic: %v", v), nil
		}
		view.At = time.Now()
		s.mu.Lock()
		s.view, s.busy = view, nil
		s.mu.Unlock()
		close(done)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	tables, err := s.Read(ctx)
	if err != nil {
		view.Error = err.Error()
	}
	for _, t := range tables {
		view.Tables = append(view.Tables, viewOf(t))
	}
}

// viewOf bounds a table.
func viewOf(t Table) tableView {
	shown := t.Rows[:min(len(t.Rows), maxRows)]
	v := tableView{Name: t.Name, Columns: t.Columns, Rows: make([][]any, 0, len(shown)), More: len(t.Rows) - len(shown)}
	for _, row := range shown {
		cells := make([]any, 0, len(row))
		for _, cell := range row {
			cells = append(cells, cellOf(cell))
		}
		v.Rows = append(v.Rows, cells)
	}
	return v
}

// cellOf returns a value that marshals to a short JSON.
func cellOf(cell any) any {
	switch c := cell.(type) {
	case bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return c
	case float64:
		if c-c == 0 { // neither infinite nor NaN, which JSON does not have
			return c
		}
	case string:
		return cut(c, maxCell)
	}
	return cut(fmt.Sprint(cell), maxCell)
}

// cut returns the beginning of a long text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// readSections returns what the program's sections show.
func (p *Page) readSections() []sectionView {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	var reads []<-chan struct{}
	for _, s := range p.sections {
		reads = append(reads, s.refresh())
	}
	late := false
	for _, done := range reads {
		if late {
			break
		}
		select {
		case <-done:
		case <-limit.C:
			late = true
		}
	}
	views := make([]sectionView, 0, len(p.sections))
	for _, s := range p.sections {
		s.mu.Lock()
		view := s.view
		s.mu.Unlock()
		view.Name = s.Name
		views = append(views, view)
	}
	return views
}
