package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/trace"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/loopstats"
)

// serve serves a page by httpd, until the test ends, and returns its URL without a slash.
func serve(t *testing.T, p *Page) string {
	t.Helper()
	s := httpd.Server{HTTP: &http.Server{Handler: p}}
	return "http://" + testkit.Listen(t, &rondo.Engine{NumLoops: 1}, s.Open)
}

// get returns an answer from a page that is asked as by this host.
func get(p *Page, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "http://localhost"+path, nil)
	r.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// fetch reads an answer's JSON.
func fetch(t *testing.T, p *Page, path string, into any) {
	t.Helper()
	w := get(p, path)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%s: %d, %v", path, w.Code, w.Header())
	}
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func TestPage(t *testing.T) {
	p := New(new(rondo.Engine), Options{Name: `<script>"&`})
	for path, want := range map[string]string{
		"/":               "<title>&lt;script&gt;&#34;&amp;</title>",
		"/page.css":       "border-collapse",
		"/page.js":        "EventSource",
		"/debug/pprof/":   `<a href="heap?debug=1">heap</a>`,
		"/vars":           `"name": "\u003cscript\u003e\"\u0026"`,
		"/slow":           "[]",
		"/conns":          `"rows":[]`,
		"/conns?sort=-in": `"sort":"-in"`,
	} {
		w := get(p, path)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d, %s; want %q", path, w.Code, w.Body, want)
		}
		if h := w.Header(); h.Get("Cache-Control") != "no-store" || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %v", path, h)
		}
	}
	for path, status := range map[string]int{
		"/nothing": 404, "/admin.go": 404, "/page.html": 404, "/debug/pprof": 404, "/debug/pprof/nothing": 404, "/debug/pprof/cmdline": 404,
		"/conns?sort=nothing": 400, "/conns?sort=--in": 400, "/conns?rows=0": 400, "/conns?rows=1001": 400, "/conns?rows=x": 400,
		"/debug/pprof/heap?debug=x": 400, "/debug/pprof/heap?seconds=1": 400, "/debug/pprof/profile?seconds=0": 400,
		"/debug/pprof/profile?seconds=301": 400, "/debug/pprof/trace?seconds=x": 400,
	} {
		if w := get(p, path); w.Code != status {
			t.Errorf("%s: %d, want %d", path, w.Code, status)
		}
	}
	if New(new(rondo.Engine), Options{}).name != "rondo" {
		t.Error("there is no default name")
	}
}

func TestSectionWithoutRead(t *testing.T) {
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), `"tables"`) {
			t.Errorf("the panic is %v", v)
		}
	}()
	New(new(rondo.Engine), Options{Sections: []Section{{Name: "tables"}}})
}

// TestWhoMayLook: without a token this host alone, with one whoever knows it; nobody who is
// another site's page.
func TestWhoMayLook(t *testing.T) {
	unix := context.WithValue(context.Background(), http.LocalAddrContextKey, net.Addr(&net.UnixAddr{Net: "unix"}))
	local, secret := New(new(rondo.Engine), Options{}), New(new(rondo.Engine), Options{Token: "the right token"})
	for _, c := range []struct {
		name   string
		page   *Page
		method string
		host   string
		peer   string
		header string // field: value
		path   string
		ctx    context.Context
		want   int
	}{
		{name: "localhost", host: "localhost:6380", want: 200},
		{name: "localhost without a port", host: "LOCALHOST", want: 200},
		{name: "127.0.0.1", host: "127.0.0.1:6380", want: 200},
		{name: "127.9.9.9", host: "127.9.9.9", peer: "127.8.8.8:1", want: 200},
		{name: "::1", host: "[::1]:6380", peer: "[::1]:1", want: 200},
		{name: "::1 without a port", host: "[::1]", peer: "[::ffff:127.0.0.1]:1", want: 200},
		{name: "a unix socket", host: "localhost", peer: "@", ctx: unix, want: 200},
		{name: "HEAD", method: "HEAD", want: 200},
		{name: "rebinding", host: "evil.example:6380", want: 403},
		{name: "rebinding to a name with localhost", host: "localhost.evil.example", want: 403},
		{name: "rebinding to a name like an address", host: "127.0.0.1.evil.example", want: 403},
		{name: "rebinding on a unix socket", host: "evil.example", peer: "@", ctx: unix, want: 403},
		{name: "no host", host: "-", want: 403},
		{name: "another address of this host", host: "192.168.0.1:6380", want: 403},
		{name: "another host", peer: "192.168.0.2:1", want: 403},
		{name: "no peer", peer: "@", want: 403},
		{name: "another host, by a proxy", header: "X-Forwarded-For: 10.1.1.1", want: 403},
		{name: "another host, by another proxy", header: "Forwarded: for=10.1.1.1", want: 403},
		{name: "another host, which sends an empty field itself", header: "X-Forwarded-For: ", want: 403},
		{name: "another host, which sends another empty field itself", header: "Forwarded: ", want: 403},
		{name: "POST", method: "POST", want: 405},
		{name: "PUT", method: "PUT", path: "/vars", want: 405},
		{name: "OPTIONS", method: "OPTIONS", want: 405},
		{name: "the page itself", header: "Sec-Fetch-Site: same-origin", path: "/vars", want: 200},
		{name: "the address line", header: "Sec-Fetch-Site: none", path: "/vars", want: 200},
		{name: "an image of another site", header: "Sec-Fetch-Site: cross-site", path: "/debug/pprof/heap", want: 403},
		{name: "a frame of a neighbour", header: "Sec-Fetch-Site: same-site", want: 403},
		{name: "no token", page: secret, want: 401},
		{name: "a wrong token", page: secret, header: "Authorization: Bearer the wrong token", want: 401},
		{name: "an empty token", page: secret, header: "Authorization: Bearer ", want: 401},
		{name: "a part of the token", page: secret, header: "Authorization: Bearer the right", want: 401},
		{name: "another scheme", page: secret, header: "Authorization: the right token", want: 401},
		{name: "the token as the user", page: secret, header: "Authorization: Basic dGhlIHJpZ2h0IHRva2VuOg==", want: 401},
		{name: "the token", page: secret, host: "admin.example", peer: "192.168.0.2:1", header: "Authorization: Bearer the right token", want: 200},
		{name: "the token as a password", page: secret, host: "admin.example", header: "Authorization: Basic YW55OnRoZSByaWdodCB0b2tlbg==", want: 200},
		{name: "POST with the token", page: secret, method: "POST", header: "Authorization: Bearer the right token", want: 405},
	} {
		r := httptest.NewRequest(orElse(c.method, "GET"), "http://localhost"+orElse(c.path, "/"), nil)
		r.Host = strings.TrimPrefix(orElse(c.host, "localhost:6380"), "-")
		r.RemoteAddr = orElse(c.peer, "127.0.0.1:1")
		if field, value, ok := strings.Cut(c.header, ": "); ok {
			r.Header.Set(field, value)
		}
		if c.ctx != nil {
			r = r.WithContext(c.ctx)
		}
		page := c.page
		if page == nil {
			page = local
		}
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: %d, %s; want %d", c.name, w.Code, w.Body, c.want)
		}
		if (w.Code == 401) != (w.Header().Get("WWW-Authenticate") != "") {
			t.Errorf("%s: %v", c.name, w.Header())
		}
	}
	link := httptest.NewRequest("GET", "http://localhost/", nil)
	link.RemoteAddr = "127.0.0.1:1"
	link.Header.Set("Sec-Fetch-Site", "cross-site")
	link.Header.Set("Sec-Fetch-Mode", "navigate")
	w := httptest.NewRecorder()
	if local.ServeHTTP(w, link); w.Code != 200 {
		t.Errorf("a link: %d", w.Code)
	}
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// TestVars: the numbers of an engine before it starts, while it works, while a loop is blocked, and
// when it has ended.
func TestVars(t *testing.T) {
	e := &rondo.Engine{NumLoops: 2}
	defer e.Close()
	p := New(e, Options{})
	var u update
	if fetch(t, p, "/vars", &u); len(u.Loops) != 0 || u.Process.Goroutines == 0 || u.Process.Processors == 0 || u.Process.Memory == 0 {
		t.Errorf("before the start: %+v", u)
	}
	c := testkit.ConnTo(t, e, testkit.Echo)
	testkit.Echoes(t, c, "hello")
	testkit.Until(t, "the counts", func() bool {
		fetch(t, p, "/vars", &u)
		return u.Total.Open == 1 && u.Total.BytesIn == 5
	})
	if len(u.Loops) != 2 || u.Loops[1].ID != 1 || u.Backend != e.BackendName() {
		t.Errorf("%+v", u)
	}
	block := make(chan struct{})
	for l := range e.Loops() {
		if l.ID() == 1 {
			l.Post(func() { <-block })
		}
	}
	testkit.Until(t, "a blocked loop", func() bool {
		fetch(t, p, "/vars", &u)
		return u.Loops[1].Blocked && u.Loops[1].Delay > 0
	})
	if u.Loops[0].Ended || u.Loops[1].Ended {
		t.Errorf("%+v", u)
	}
	close(block)
	testkit.Until(t, "its end", func() bool {
		fetch(t, p, "/vars", &u)
		return !u.Loops[0].Blocked && !u.Loops[1].Blocked
	})
	e.Close()
	if fetch(t, p, "/vars", &u); !u.Loops[0].Ended || !u.Loops[1].Ended || u.Loops[0].Blocked {
		t.Errorf("at the end: %+v", u)
	}
}

// TestSections: what the program shows is bounded; errors, panics and slow ones do not keep the
// others from being shown.
func TestSections(t *testing.T) {
	long := strings.Repeat("é", 1000)
	block := make(chan struct{})
	var rows [][]any
	for i := range 1100 {
		rows = append(rows, []any{i, "<b>", long, 1.5, true, 2 * time.Second, errors.New("why"), nil})
	}
	p := New(new(rondo.Engine), Options{Sections: []Section{
		{Name: "good", Read: func(ctx context.Context) ([]Table, error) {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("there is no deadline")
			}
			return []Table{{Name: "one", Columns: []string{"a"}, Rows: rows}, {Name: "two"}}, nil
		}},
		{Name: "bad", Read: func(context.Context) ([]Table, error) { return nil, errors.New("no answer") }},
		{Name: "worse", Read: func(context.Context) ([]Table, error) { panic("help") }},
		{Name: "slow", Read: func(context.Context) ([]Table, error) { <-block; return []Table{{Name: "at last"}}, nil }},
	}})
	var u update
	testkit.Until(t, "all but one", func() bool {
		fetch(t, p, "/vars", &u)
		return !u.Sections[0].At.IsZero() && !u.Sections[1].At.IsZero() && !u.Sections[2].At.IsZero()
	})
	one := u.Sections[0].Tables[0]
	if len(one.Rows) != maxRows || one.More != 100 || u.Sections[0].Tables[1].Name != "two" {
		t.Errorf("%d rows, %d more", len(one.Rows), one.More)
	}
	if got := fmt.Sprint(one.Rows[7]); got != "[7 <b> "+long[:256]+"… 1.5 true 2s why <nil>]" {
		t.Errorf("a row is %s", got)
	}
	if got := get(p, "/vars").Body.String(); strings.Contains(got, "<b>") {
		t.Error("JSON shows a tag")
	}
	if u.Sections[1].Error != "no answer" || u.Sections[2].Error != "panic: help" {
		t.Errorf("%+v", u.Sections[1:3])
	}
	if u.Sections[3].Name != "slow" || !u.Sections[3].At.IsZero() || len(u.Sections[3].Tables) != 0 {
		t.Errorf("%+v", u.Sections[3])
	}
	close(block)
	testkit.Until(t, "the slow one", func() bool {
		fetch(t, p, "/vars", &u)
		return len(u.Sections[3].Tables) == 1
	})
}

// TestEvents: each stream gets the numbers again and again; too many are refused, and when all
// have gone nothing is left.
func TestEvents(t *testing.T) {
	p := New(new(rondo.Engine), Options{Name: "streams"})
	p.feed.every = 10 * time.Millisecond
	url := serve(t, p)
	var streams []io.Closer
	for range maxStreams {
		r, err := http.Get(url + "/events")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%d, %v", r.StatusCode, r.Header)
		}
		lines := bufio.NewScanner(r.Body)
		for range 3 {
			lines.Scan()
			event, ok := strings.CutPrefix(lines.Text(), "data: ")
			var u update
			if err := json.Unmarshal([]byte(event), &u); !ok || err != nil || u.Name != "streams" || u.Pages == 0 {
				t.Fatalf("%q, %v, %v", lines.Text(), err, lines.Err())
			}
			lines.Scan() // an empty line
		}
		streams = append(streams, r.Body)
	}
	r, err := http.Get(url + "/events")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("one too many: %d, %v", r.StatusCode, r.Header)
	}
	for _, s := range streams {
		s.Close()
	}
	testkit.Until(t, "the streams have gone", func() bool { return p.feed.size() == 0 })
	p.feed.mu.Lock()
	stop := p.feed.stop
	p.feed.mu.Unlock()
	select {
	case <-stop:
	default:
		t.Error("the feed goes on")
	}
	p.feed.stop = nil
	if r, err = http.Head(url + "/events"); err != nil || r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: %v", err)
	}
	if p.feed.stop != nil {
		t.Error("HEAD has started the feed")
	}
}

// TestMeasures: the loops measure while a page is open, and events have what they have measured.
func TestMeasures(t *testing.T) {
	e := &rondo.Engine{NumLoops: 2}
	defer e.Close()
	p := New(e, Options{})
	p.feed.every = 10 * time.Millisecond
	url := serve(t, p)
	r, err := http.Get(url + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	next := func() (u update) {
		for lines.Scan() {
			if event, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(event), &u); err != nil {
					t.Fatal(err)
				}
				return u
			}
		}
		t.Fatal(lines.Err())
		return u
	}
	if u := next(); u.Backend != "" || len(u.Loops) != 0 {
		t.Errorf("the page has started the engine: %+v", u)
	}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	for u := next(); ; u = next() {
		if len(u.Loops) < 2 || len(u.Loops[1].Measures) == 0 || u.Loops[1].Measures[3].Count == 0 {
			continue
		}
		for _, m := range u.Loops[1].Measures {
			n := uint64(0)
			for _, bar := range m.Bars {
				n += bar
			}
			if n != m.Count || len(m.Bars) != ranges || m.P50 > m.P99 || m.P99 > m.P999 || m.P999 > m.Max {
				t.Errorf("%+v", m)
			}
		}
		break
	}
	r.Body.Close()
	testkit.Until(t, "the measuring has ended", func() bool {
		count := func() (n uint64) {
			for l := range e.Loops() {
				for range 2 {
					time.Sleep(time.Millisecond) // of turns that follow each other closely some are measured
					done := make(chan struct{})
					l.Post(func() { close(done) })
					<-done
				}
			}
			for _, l := range loopstats.Of(e) {
				n += l.Turn.Count()
			}
			return n
		}
		before := count()
		return count() == before
	})
}

// TestProfiles: what go tool pprof and go tool trace want is there, and nobody else's pages
// have changed.
func TestProfiles(t *testing.T) {
	url := serve(t, New(new(rondo.Engine), Options{}))
	for path, want := range map[string]string{
		"heap": "\x1f\x8b", "goroutine?debug=2": "goroutine ", "profile?seconds=1": "\x1f\x8b", "trace?seconds=1": "go 1.", "allocs?debug=1": "heap profile",
	} {
		r, err := http.Get(url + "/debug/pprof/" + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != 200 || !strings.HasPrefix(string(text), want) {
			t.Errorf("%s: %d, %.40q, %v", path, r.StatusCode, text, err)
		}
		if asFile := r.Header.Get("Content-Disposition") != ""; asFile == strings.Contains(path, "debug=") {
			t.Errorf("%s: %v", path, r.Header)
		}
	}
	for _, path := range []string{"heap", "profile", "trace"} {
		if r, err := http.Head(url + "/debug/pprof/" + path); err != nil || r.StatusCode != 200 {
			t.Errorf("HEAD %s: %v", path, err)
		}
	}
	if _, pattern := http.DefaultServeMux.Handler(httptest.NewRequest("GET", "/debug/pprof/", nil)); pattern != "" {
		t.Errorf("http.DefaultServeMux has %s", pattern)
	}
}

// TestOneProfileAtATime: a second one is refused, and a client that goes ends its own.
func TestOneProfileAtATime(t *testing.T) {
	url := serve(t, New(new(rondo.Engine), Options{}))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", url+"/debug/pprof/trace?seconds=300", nil)
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan error, 1)
	go func() {
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
		}
		first <- err
	}()
	testkit.Until(t, "the first has begun", trace.IsEnabled)
	status := func() int {
		answer, err := http.Get(url + "/debug/pprof/trace?seconds=1")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	testkit.Until(t, "the second is refused", func() bool { return status() == 503 })
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	testkit.Until(t, "the first has ended", func() bool { return status() == 200 })
}

// deafClient is a client that takes nothing.
type deafClient struct {
	*httptest.ResponseRecorder
	deadlines int
}

func (d *deafClient) Write([]byte) (int, error)        { return 0, os.ErrDeadlineExceeded }
func (d *deafClient) SetWriteDeadline(time.Time) error { d.deadlines++; return nil }

// TestTraceNobodyTakes: a trace ends when its client does not take it. Go would keep all of it.
func TestTraceNobodyTakes(t *testing.T) {
	w := &deafClient{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest("GET", "http://localhost/debug/pprof/trace?seconds=300", nil)
	r.RemoteAddr = "127.0.0.1:1"
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		New(new(rondo.Engine), Options{}).ServeHTTP(w, r.WithContext(ctx))
	}()
	defer func() { cancel(); <-ended }()
	testkit.Until(t, "the trace has ended", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	if w.deadlines < 3 {
		t.Error("its parts have no deadline")
	}
}
