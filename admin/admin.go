package admin

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"sync"
	"time"

	"github.com/rondo-go/rondo"
)

// Options are the options of New.
type Options struct {
	// Name is the page's title. "": rondo.
	Name string
	// Token is what a request must show. "": requests must come from this host.
	Token string
	// Sections are tables that the program adds to the page.
	Sections []Section
}

// A Page shows an engine. It is an http.Handler, and any goroutine may use it.
type Page struct {
	engine   *rondo.Engine
	name     string
	token    string
	html     []byte
	sections []*section
	slow     slowLog
	feed     feed
	lists    lists

	mu     sync.Mutex // guards probes
	probes []*probe   // the last one of each loop
}

// interval is the time between two events.
const interval = time.Second

//go:embed page.html page.css page.js
var files embed.FS

// New returns a page about e. It may be called before e starts. It panics if a Section has no
// Read.
func New(e *rondo.Engine, o Options) *Page {
	if o.Name == "" {
		o.Name = "rondo"
	}
	p := &Page{engine: e, name: o.Name, token: o.Token}
	for _, s := range o.Sections {
		if s.Read == nil {
			panic(fmt.Sprintf("admin: section %q has no Read", s.Name))
		}
		p.sections = append(p.sections, &section{Section: s})
	}
	p.feed.page, p.feed.every = p, interval
	p.lists.page = p
	var html bytes.Buffer
	if err := template.Must(template.ParseFS(files, "page.html")).Execute(&html, o.Name); err != nil {
		panic(err) // the template is ours
	}
	p.html = html.Bytes()
	return p
}

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if !p.admits(w, r) {
		return
	}
	switch r.URL.Path {
	case "/":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(p.html)
	case "/page.css", "/page.js":
		http.ServeFileFS(w, r, files, r.URL.Path[1:])
	case "/vars":
		u, _ := p.update(nil)
		writeJSON(w, u, "  ")
	case "/slow":
		writeJSON(w, p.slow.all(), "")
	case "/conns":
		p.serveConns(w, r)
	case "/events":
		p.serveEvents(w, r)
	default:
		p.serveProfiles(w, r)
	}
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, v any, indent string) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", indent)
	e.Encode(v) // an error: the client has gone
}
