package serve

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	forked "github.com/lesismal/llib/std/crypto/tls" // nbio's copy of crypto/tls
	"github.com/lesismal/nbio/logging"
	"github.com/lesismal/nbio/nbhttp"
	"github.com/panjf2000/gnet/v2"
	"github.com/tidwall/evio"
	"github.com/valyala/fasthttp"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/http1"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/rtls"
)

// Paths of the HTTP servers.
const (
	TextPath  = "/text" // 13 bytes
	JSONPath  = "/json" // 1 KiB, encoded for each request
	LargePath = "/64k"
)

var (
	text  = []byte("Hello, World!")
	large = func() []byte {
		b := make([]byte, 64<<10)
		for i := range b {
			b[i] = 'a' + byte(i%23)
		}
		return b
	}()
)

// A record is a part of the JSON document.
type record struct {
	ID    int      `json:"id"`
	Name  string   `json:"name"`
	Price float64  `json:"price"`
	Tags  []string `json:"tags"`
}

var records = func() (list []record) {
	for i := range 12 {
		list = append(list, record{ID: 1000 + i, Name: "record number " + strconv.Itoa(100+i), Price: 9.5 + float64(i), Tags: []string{"red", "green", "blue"}})
	}
	list[0].Name += ", whose name makes the document a whole KiB"[:40]
	return list
}()

// Content returns what is at a path, and its type; "": nothing is there.
func Content(path string) (kind string, body []byte) {
	switch path {
	case TextPath:
		return "text/plain", text
	case JSONPath:
		body, _ = json.Marshal(records) // cannot fail
		return "application/json", body
	case LargePath:
		return "application/octet-stream", large
	}
	return "", nil
}

// handleHTTP is the handler for net/http and for those that have its interface.
func handleHTTP(w http.ResponseWriter, r *http.Request) {
	kind, body := Content(r.URL.Path)
	if kind == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

// httpServers are the HTTP servers, each with TLS if its library has it.
func httpServers() []Library {
	both := func(name, module string, serve func(address string, loops int, config *tls.Config) error) Library {
		return Library{Name: name, Module: module, Do: map[string]Server{
			"http":  func(address string, loops int) error { return serve(address, loops, nil) },
			"https": func(address string, loops int) error { return serve(address, loops, config()) },
		}}
	}
	return []Library{
		both("rondo-httpd-loop", "", httpdServer(httpd.OnLoop(http.HandlerFunc(handleHTTP)), ofOne)),
		both("rondo-httpd", "", httpdServer(http.HandlerFunc(handleHTTP), never)),
		both("rondo-http1", "", http1Server),
		both("net-http", "", netHTTP),
		both("fasthttp", "github.com/valyala/fasthttp", fastHTTP),
		both("nbio-http", "", nbioHTTP),
		{Name: "gnet-toy", Do: map[string]Server{"http": gnetHTTP}},
		{Name: "evio-toy", Do: map[string]Server{"http": evioHTTP}},
	}
}

// rondoServe serves on rondo, with TLS if there is a configuration.
func rondoServe(address string, loops int, config *tls.Config, extra spare, spin time.Duration, open rondo.OpenFunc) error {
	if config != nil {
		open = rondo.Filtered(open, rtls.Server(config))
	}
	engine := extra.ask(&rondo.Engine{NumLoops: loops, Spin: spin})
	if _, err := engine.Listen("tcp", address, rondo.SocketOptions{}, open); err != nil {
		return err
	}
	return engine.Wait()
}

// httpdSpin is the Spin that package httpd advises, and that of its Serve.
const httpdSpin = 20 * time.Microsecond

// httpdServer is package httpd with a handler. The package's documentation advises against a
// spare processor for handlers on goroutines.
func httpdServer(h http.Handler, extra spare) func(string, int, *tls.Config) error {
	return func(address string, loops int, config *tls.Config) error {
		s := &httpd.Server{HTTP: &http.Server{Handler: h}}
		return rondoServe(address, loops, config, extra, httpdSpin, s.Open)
	}
}

// netHTTP is net/http.
func netHTTP(address string, _ int, config *tls.Config) error {
	s := &http.Server{Addr: address, Handler: http.HandlerFunc(handleHTTP), TLSConfig: config, ErrorLog: log.New(io.Discard, "", 0)}
	if config != nil {
		return s.ListenAndServeTLS("", "")
	}
	return s.ListenAndServe()
}

// fastHTTP is fasthttp.
func fastHTTP(address string, _ int, config *tls.Config) error {
	s := &fasthttp.Server{Handler: func(r *fasthttp.RequestCtx) {
		kind, body := Content(string(r.Path()))
		if kind == "" {
			r.NotFound()
			return
		}
		r.SetContentType(kind)
		r.SetBody(body)
	}}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	if config != nil {
		ln = tls.NewListener(ln, config)
	}
	return s.Serve(ln)
}

// nbioHTTP is nbio's package nbhttp.
func nbioHTTP(address string, loops int, config *tls.Config) error {
	logging.SetLevel(logging.LevelError)
	c := nbhttp.Config{Network: "tcp", NPoller: loops, Handler: http.HandlerFunc(handleHTTP)}
	if config == nil {
		c.Addrs = []string{address}
	} else {
		mine := config.Certificates[0]
		c.AddrsTLS = []string{address}
		c.TLSConfig = &forked.Config{Certificates: []forked.Certificate{{Certificate: mine.Certificate, PrivateKey: mine.PrivateKey}}}
	}
	if err := nbhttp.NewEngine(c).Start(); err != nil {
		return err
	}
	select {}
}

// http1Server is package http1 on a Handler, without net/http.
func http1Server(address string, loops int, config *tls.Config) error {
	shared := rondo.LoopLocal[*http1Loop]{New: func(*rondo.Loop) *http1Loop { return new(http1Loop) }}
	return rondoServe(address, loops, config, ofOne, 0, func(c *rondo.Conn) rondo.Handler {
		return &http1Handler{loop: shared.Get(c.Loop())}
	})
}

type http1Loop struct {
	request http1.Request
	date    http1.Date
}

type http1Handler struct {
	loop *http1Loop
	part http1.Partial
}

// Data answers all complete requests. None has a body.
func (h *http1Handler) Data(c *rondo.Conn, in []byte) (n int, err error) {
	r := &h.loop.request
	now := time.Now() // reading the clock for each request would cost as much as to parse it
	out := c.AvailableBuffer()
	for n < len(in) {
		k, err := h.part.Parse(r, in[n:], http1.Rules{})
		if err != nil {
			c.Write(http1.AppendError(out, err))
			return n, err
		}
		if k == 0 {
			break
		}
		n += k
		kind, body := Content(string(r.Path))
		status := http.StatusOK
		if kind == "" {
			status = http.StatusNotFound
		}
		out = http1.AppendStatus(out, 1, status)
		out = http1.AppendField(out, "Content-Type", kind)
		out = h.loop.date.Append(out, now)
		out = http1.AppendLength(out, int64(len(body)))
		out = http1.AppendEnd(out)
		if len(body) < 16<<10 {
			out = append(out, body...)
			continue
		}
		c.Write(out)
		c.WriteOwned(body, nil) // a large body is sent from where it lies
		out = c.AvailableBuffer()
	}
	c.Write(out)
	return n, nil
}

func (h *http1Handler) Closed(*rondo.Conn, error) {}

// An httpToy answers GET requests. It looks for the path and for the end of the head, and at
// nothing else: it bounds what an HTTP server on its library can reach.
type httpToy struct {
	carry []byte // an incomplete request
	out   []byte
	date  http1.Date
}

var (
	headEnd = []byte("\r\n\r\n")
	getting = []byte("GET ")
)

// serve answers the complete requests in the received bytes. The answers are valid until the
// next call. It does not keep in.
func (t *httpToy) serve(in []byte) []byte {
	if len(t.carry) > 0 {
		t.carry = append(t.carry, in...)
		in = t.carry
	}
	t.out = t.out[:0]
	now := time.Now()
	for {
		end := bytes.Index(in, headEnd)
		if end < 0 {
			break
		}
		path, _, _ := bytes.Cut(bytes.TrimPrefix(in[:end], getting), []byte(" "))
		in = in[end+len(headEnd):]
		kind, body := Content(string(path))
		t.out = append(t.out, "HTTP/1.1 200 OK\r\nContent-Type: "...)
		t.out = append(append(t.out, kind...), '\r', '\n')
		t.out = t.date.Append(t.out, now)
		t.out = http1.AppendLength(t.out, int64(len(body)))
		t.out = append(append(t.out, '\r', '\n'), body...)
	}
	t.carry = append(t.carry[:0], in...)
	return t.out
}

// gnetHTTP is the toy on gnet.
func gnetHTTP(address string, loops int) error {
	return gnetRun(address, loops, func(c gnet.Conn) gnet.Action {
		t, ok := c.Context().(*httpToy)
		if !ok {
			t = new(httpToy)
			c.SetContext(t)
		}
		in, err := c.Next(-1)
		if err != nil {
			return gnet.Close
		}
		if _, err := c.Write(t.serve(in)); err != nil {
			return gnet.Close
		}
		return gnet.None
	})
}

// evioHTTP is the toy on evio.
func evioHTTP(address string, loops int) error {
	return evioRun(address, loops, func() any { return new(httpToy) }, func(c evio.Conn, in []byte) ([]byte, evio.Action) {
		return c.Context().(*httpToy).serve(in), evio.None
	})
}
