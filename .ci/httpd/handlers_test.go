package httpd_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"expvar"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/http/pprof"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/gorilla/mux"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// expect checks an answer's status and body.
func expect(t *testing.T, answer *http.Response, body string, status int, want string) {
	t.Helper()
	if answer.StatusCode != status || body != want {
		t.Errorf("%s %s: %d %.100q, want %d %.100q", answer.Request.Method, answer.Request.URL.Path, answer.StatusCode, body, status, want)
	}
}

func TestGorillaMux(t *testing.T) {
	routes := func() http.Handler {
		r := mux.NewRouter()
		r.Use(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Route", mux.CurrentRoute(r).GetName())
				next.ServeHTTP(w, r)
			})
		})
		r.HandleFunc("/users/{id:[0-9]+}", func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			fmt.Fprint(w, r.Method, mux.Vars(r)["id"], string(body))
		}).Methods("GET", "PUT").Name("user")
		r.PathPrefix("/sub").Subrouter().HandleFunc("/x", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) }).Host("localhost")
		return r
	}
	onEach(t, routes, func(t *testing.T, s *site) {
		answer, body := s.get(t, "/users/7")
		expect(t, answer, body, 200, "GET7")
		if answer.Header.Get("X-Route") != "user" {
			t.Error(answer.Header)
		}
		r, _ := http.NewRequest("PUT", s.url("/users/8"), strings.NewReader("hello"))
		answer, body = s.do(t, r)
		expect(t, answer, body, 200, "PUT8hello")
		r, _ = http.NewRequest("DELETE", s.url("/users/8"), nil)
		answer, body = s.do(t, r)
		expect(t, answer, body, 405, "")
		r, _ = http.NewRequest("GET", s.url("/sub/x"), nil)
		r.Host = "localhost"
		answer, body = s.do(t, r)
		expect(t, answer, body, 200, "localhost")
		answer, body = s.get(t, "/users/x")
		expect(t, answer, body, 404, "404 page not found\n")
	})
}

func TestChi(t *testing.T) {
	routes := func() http.Handler {
		r := chi.NewRouter()
		r.Use(middleware.RequestID, middleware.Recoverer, middleware.Compress(5), middleware.Timeout(100*time.Millisecond))
		r.Get("/hello/{name}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello ", chi.URLParam(r, "name")) })
		r.Get("/panic", func(http.ResponseWriter, *http.Request) { panic("test") })
		r.Get("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		r.Get("/long", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, strings.Repeat("long ", 100_000))
		})
		return r
	}
	onEach(t, routes, func(t *testing.T, s *site) {
		answer, body := s.get(t, "/hello/you")
		expect(t, answer, body, 200, "hello you")
		answer, body = s.get(t, "/panic")
		expect(t, answer, body, 500, "")
		answer, body = s.get(t, "/slow")
		expect(t, answer, body, 504, "")
		answer, body = s.get(t, "/long") // the Transport asks for gzip
		expect(t, answer, body, 200, strings.Repeat("long ", 100_000))
		if !answer.Uncompressed {
			t.Error("it was not compressed")
		}
	})
}

// otelhttp wraps the ResponseWriter, and must know what it was told.
func TestOtelhttp(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	handler := func() http.Handler {
		return otelhttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusTeapot)
			w.(http.Flusher).Flush()
			fmt.Fprint(w, n)
		}), "test", otelhttp.WithTracerProvider(provider))
	}
	onEach(t, handler, func(t *testing.T, s *site) {
		before := len(spans.Ended())
		r, _ := http.NewRequest("POST", s.url("/"), bytes.NewReader(make([]byte, 100_000)))
		answer, body := s.do(t, r)
		expect(t, answer, body, http.StatusTeapot, "100000")
		until := time.Now().Add(patience)
		for len(spans.Ended()) == before && time.Now().Before(until) {
			time.Sleep(time.Millisecond)
		}
		got := spans.Ended()[before:]
		if len(got) != 1 || !strings.Contains(fmt.Sprint(got[0].Attributes()), "418") {
			t.Errorf("%d spans", len(got))
		}
	})
}

// A proxy on httpd, before a server on httpd: bodies of any length, trailers, events as they
// come, and a client that goes.
func TestReverseProxy(t *testing.T) {
	gone := make(chan bool, 10)
	more := make(chan bool)
	target := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/echo":
			http.NewResponseController(w).EnableFullDuplex()
			w.Header().Set("Trailer", "X-Length")
			n, _ := io.Copy(w, r.Body)
			w.Header().Set("X-Length", fmt.Sprint(n))
		case "/events":
			w.Header().Set("Content-Type", "text/event-stream")
			for range 3 {
				io.WriteString(w, "data: x\n\n")
				http.NewResponseController(w).Flush()
				<-more
			}
		case "/wait":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			gone <- true
		}
	})}, false, false)
	to, _ := url.Parse(target.url(""))
	proxy := func() http.Handler {
		p := httputil.NewSingleHostReverseProxy(to)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).EnableFullDuplex() // the answer may begin before the body has ended
			p.ServeHTTP(w, r)
		})
	}
	onEach(t, proxy, func(t *testing.T, s *site) {
		for _, size := range []int{0, 1000, 3 << 20} {
			sent := bytes.Repeat([]byte("0123456789"), size/10)
			r, _ := http.NewRequest("POST", s.url("/echo"), io.MultiReader(bytes.NewReader(sent)))
			answer, body := s.do(t, r)
			if sha256.Sum256([]byte(body)) != sha256.Sum256(sent) || answer.Trailer.Get("X-Length") != fmt.Sprint(len(sent)) {
				t.Errorf("%d bytes of %d, trailer %v", len(body), len(sent), answer.Trailer)
			}
		}
		answer, err := s.client.Get(s.url("/events"))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		for range 3 {
			event := make([]byte, len("data: x\n\n"))
			if _, err := io.ReadFull(answer.Body, event); err != nil {
				t.Fatal(err)
			}
			more <- true
		}
		waits, err := s.client.Get(s.url("/wait"))
		if err != nil {
			t.Fatal(err)
		}
		waits.Body.Close()
		select {
		case <-gone:
		case <-time.After(patience):
			t.Error("the end of the client does not arrive")
		}
	})
}

func TestFileServer(t *testing.T) {
	dir := t.TempDir()
	file := bytes.Repeat([]byte("0123456789"), 200_000)
	os.Mkdir(filepath.Join(dir, "sub"), 0o755)
	for name, content := range map[string]string{"f.bin": string(file), "sub/index.html": "<html>index", "a b.txt": "blank"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files := func() http.Handler { return http.FileServer(http.Dir(dir)) }
	onEach(t, files, func(t *testing.T, s *site) {
		answer, body := s.get(t, "/f.bin")
		expect(t, answer, body, 200, string(file))
		date := answer.Header.Get("Last-Modified")
		answer, body = s.get(t, "/f.bin", "If-Modified-Since: "+date)
		expect(t, answer, body, 304, "")
		answer, body = s.get(t, "/f.bin", "Range: bytes=1000003-1000009")
		expect(t, answer, body, 206, "3456789")
		answer, body = s.get(t, "/f.bin", "Range: bytes=1-2,5-6")
		if answer.StatusCode != 206 || strings.Count(body, "Content-Range") != 2 {
			t.Errorf("two ranges: %s, %q", answer.Status, body)
		}
		answer, _ = s.get(t, "/f.bin", "Range: bytes=9999999-")
		if answer.StatusCode != 416 {
			t.Errorf("a range behind the end: %s", answer.Status)
		}
		answer, body = s.get(t, "/sub/")
		expect(t, answer, body, 200, "<html>index")
		answer, body = s.get(t, "/")
		if answer.StatusCode != 200 || !strings.Contains(body, `<a href="a%20b.txt">`) {
			t.Errorf("a list: %s, %q", answer.Status, body)
		}
		answer, _ = s.get(t, "/none")
		if answer.StatusCode != 404 {
			t.Errorf("no file: %s", answer.Status)
		}
	})
}

func TestExpvar(t *testing.T) {
	onEach(t, expvar.Handler, func(t *testing.T, s *site) {
		answer, body := s.get(t, "/")
		var vars map[string]json.RawMessage
		if err := json.Unmarshal([]byte(body), &vars); err != nil || vars["memstats"] == nil || answer.StatusCode != 200 {
			t.Errorf("%s, %v", answer.Status, err)
		}
	})
}

// A profile takes longer than WriteTimeout, and pprof moves the deadline.
func TestPprof(t *testing.T) {
	m := http.NewServeMux()
	m.HandleFunc("/debug/pprof/", pprof.Index)
	m.HandleFunc("/debug/pprof/profile", pprof.Profile)
	for _, secure := range []bool{false, true} {
		s := serve(t, &http.Server{Handler: m, WriteTimeout: 500 * time.Millisecond}, secure, secure)
		answer, body := s.get(t, "/debug/pprof/goroutine?debug=1")
		if answer.StatusCode != 200 || !strings.HasPrefix(body, "goroutine profile") {
			t.Errorf("%s, %.100q", answer.Status, body)
		}
		answer, body = s.get(t, "/debug/pprof/profile?seconds=1")
		if answer.StatusCode != 200 || len(body) == 0 {
			t.Errorf("%s, %.100q", answer.Status, body)
		}
	}
}
