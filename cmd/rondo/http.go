package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/internal/upgrade"
)

type httpCommand struct {
	Addr          []string `help:"Address to serve: tcp://host:port, or host:port, or unix:///path. May be given several times." default:"tcp://127.0.0.1:8080" placeholder:"ADDR" sep:"none"`
	Dir           string   `help:"Serve the files in this directory, and nothing outside of it." placeholder:"DIR"`
	Echo          bool     `help:"Answer each request with its body, for tests."`
	Proxy         string   `help:"Pass requests on to this server, as in http://127.0.0.1:9000." placeholder:"URL"`
	List          bool     `help:"With --dir: list directories that have no index.html." default:"true" negatable:""`
	Hidden        bool     `help:"With --dir: serve files and directories whose names begin with a dot, too."`
	Compressed    bool     `help:"With --dir: in place of FILE send FILE.br or FILE.gz to clients that accept it, unless it is older than FILE." default:"true" negatable:""`
	ProxyTimeout  duration `help:"With --proxy: how long its server may take until its answer begins. 0: any time." default:"1m" placeholder:"TIME"`
	AccessLog     string   `help:"A line for each request: ${enum}. combined is Apache's format on standard output, with the seconds that the request took at the end; text is a line of the log on standard error." enum:"combined,text,off" default:"combined" placeholder:"FORMAT"`
	MaxHeader     size     `help:"Size of a request's head. Longer ones are refused with status 431." default:"64KiB" placeholder:"SIZE"`
	MaxBody       size     `help:"With --echo and --proxy: size of a request's body. Longer ones are refused with status 413. 0: no limit." default:"64MiB" placeholder:"SIZE"`
	HeaderTimeout duration `help:"How long a client may take to send a request's head. 0: any time." default:"10s" placeholder:"TIME"`
	ReadTimeout   duration `help:"How long a client may take to send a request's body. 0: any time." default:"5m" placeholder:"TIME"`
	SendTimeout   duration `help:"How long a client may take to read 256 KiB of an answer. 0: any time." default:"1m" placeholder:"TIME"`
	Timeout       duration `help:"Close clients that send no further request for this long, as in 300 or 5m. 0: never." default:"2m" placeholder:"TIME"`
	Loops         int      `help:"Number of event loops; 0: one for each processor." default:"0" placeholder:"N"`
	Maxclients    int      `help:"Number of clients served at once. More are refused with status 503, or with TLS closed." default:"10000" placeholder:"N"`
	upgradeFlags
	stayFlag
	tlsFlags
	engineFlags
}

// Help is the end of "rondo http --help".
func (*httpCommand) Help() string {
	return `Give one of --dir, --echo and --proxy.

Examples:

  rondo http --dir .
      Serve the files in the current directory on 127.0.0.1:8080. Try: curl http://127.0.0.1:8080/

  rondo http --dir site --addr :443 --tls-cert site.crt --tls-key site.key
      Serve a site by TLS on all interfaces. Beside site/app.js a file site/app.js.br or site/app.js.gz is sent to clients that accept it.

  rondo http --proxy http://127.0.0.1:9000 --addr :80 --max-body 1MiB --timeout 30s
      Pass requests on to a server of this host, with X-Forwarded-For, -Host and -Proto. WebSocket passes too.

  rondo http --echo --access-log off
      Send back what comes. Try: curl --data-binary @file http://127.0.0.1:8080/

Files can be asked for in parts (Range), and again if they have changed (ETag, Last-Modified). Names that begin with a dot, symbolic links to the outside, and what is neither a file nor a directory are not found. A symbolic link within the directory is followed, also to a name that begins with a dot.

SIGINT and SIGTERM stop it: it ends the requests in progress, then closes the connections. SIGUSR2 starts the program anew, which takes over listeners and connections: nobody notices. SIGHUP reloads the certificate.`
}

const (
	// leastHeader is enough for the head of any sensible request.
	leastHeader = 1 << 10
	mostHeader  = 16 << 20
	// bodyRoom is the input that a connection may hold behind a head.
	bodyRoom = 128 << 10
	// noTimeout is how long connections linger with --send-timeout 0.
	noTimeout = time.Hour
)

// check returns an error for flags that do not go together.
func (h *httpCommand) check() error {
	modes := 0
	for _, given := range []bool{h.Dir != "", h.Echo, h.Proxy != ""} {
		if given {
			modes++
		}
	}
	switch {
	case modes == 0:
		return usagef("there is nothing to serve: give --dir DIR, --echo or --proxy URL")
	case modes > 1:
		return usagef("--dir, --echo and --proxy exclude each other: give one of them")
	case h.Dir == "" && (!h.List || h.Hidden || !h.Compressed):
		return usagef("--no-list, --hidden and --no-compressed are for files: give them with --dir")
	case h.TLSCA != "" && h.TLSAuthClients == "no":
		return usagef("--tls-ca is for clients' certificates: give --tls-auth-clients yes or optional too")
	}
	return cmp.Or(
		h.upgradeFlags.check(),
		checkNumber("--max-header", h.MaxHeader, leastHeader, mostHeader),
		checkNumber("--maxclients", h.Maxclients, 1, math.MaxInt),
	)
}

// Run serves until a signal.
func (h *httpCommand) Run() error {
	if err := h.check(); err != nil {
		return err
	}
	endpoints, err := parseAddresses(h.Addr, streams)
	if err != nil {
		return err
	}
	h.replaces = h.isHeir()
	engine, log, _, err := h.engine(h.Loops)
	if err != nil {
		return err
	}
	engine.SpareProcessor = false // see the documentation of httpd
	filters, err := h.filters(log, "h2", "http/1.1")
	if err != nil {
		return err
	}
	handler, serves, err := h.handler(log)
	if err != nil {
		return err
	}
	site, flush := h.site(handler, log)
	h.limit(engine)
	if len(filters) > 0 {
		logFailures(engine, log)
	} else {
		engine.Refuse = refuseHTTP
	}
	server := &httpd.Server{HTTP: h.config(site, log)}
	up := h.upgradable(server, engine, site, log)
	if err := engine.Start(); err != nil {
		return err
	}
	if err := h.showAdmin("rondo http", engine, log, httpSection(server)); err != nil {
		engine.Close()
		return err
	}
	defer h.admin.close()
	addrs, err := up.listen(endpoints, func(network, address string, already net.Listener) (net.Addr, error) {
		open := rondo.OpenFunc(server.Open)
		if f := filtersFor(network, filters); len(f) > 0 {
			open = rondo.Filtered(open, f...)
		}
		return up.Listen(network, address, already, func(ln net.Listener) (*rondo.Listener, error) {
			return listenOn(engine, network, address, ln, open)
		})
	})
	if err != nil {
		return err
	}
	log.Info("rondo http is ready", "addresses", addrs, "serves", serves, "backend", engine.BackendName(), "loops", loopsOf(engine))
	go returnMemory(log, func() uint64 { return engine.Stats().Turns })
	err = up.serve()
	flush()
	return err
}

// upgradable returns the server as one that another process can take over.
func (h *httpCommand) upgradable(s *httpd.Server, on *rondo.Engine, site *site, log *slog.Logger) *engineServer {
	up := &engineServer{Server: &upgrade.Server{Engine: on, Name: "rondo http", Arrive: s.Open, Logger: log},
		flags: &h.upgradeFlags, loops: &h.loopFlags, log: log}
	up.shutdown = func(ctx context.Context) error { return shutdownHTTP(ctx, on, site) }
	stay := up.stayOn(func() bool { return site.active.Load() > 0 }) // or a handler has taken its connection over
	up.stayer = stayer{time.Duration(h.StayTimeout), func(ctx context.Context) error {
		site.leaves.Store(true)
		return stay(ctx)
	}}
	return up
}

// shutdownHTTP shuts the engine down. It does not wait for clients that have got everything
// and do not close their side: the system sends what is on its way when the program has ended.
func shutdownHTTP(ctx context.Context, e *rondo.Engine, s *site) error {
	var failed error // valid once ended is closed
	ended := make(chan struct{})
	go func() {
		failed = e.Shutdown(ctx)
		close(ended)
	}()
	looks := time.NewTicker(closingTime / 5)
	defer looks.Stop()
	for quiet := 0; quiet < 5; quiet++ {
		select {
		case <-ended:
			return failed
		case <-looks.C:
		}
		if s.active.Load() > 0 || unsent(e, ended) {
			quiet = 0
		}
	}
	return nil
}

// unsent reports whether connections have output that the system has not taken.
func unsent(e *rondo.Engine, ended <-chan struct{}) bool {
	found := make(chan bool, len(e.Stats().Loops))
	for l := range e.Loops() {
		l.Post(func() {
			found <- slices.ContainsFunc(slices.Collect(l.Conns()), func(c *rondo.Conn) bool { return c.Buffered() > 0 })
		})
	}
	for range cap(found) {
		select {
		case yes := <-found:
			if yes {
				return true
			}
		case <-ended: // a loop that has ended runs nothing
			return false
		}
	}
	return false
}

// limit sets the engine's limits.
func (h *httpCommand) limit(e *rondo.Engine) {
	e.MaxConns = h.Maxclients
	e.MaxInput = max(rondo.DefaultMaxInput, int(h.MaxHeader)+bodyRoom)
	// The end of an answer may be on its way when the connection closes.
	e.Linger = time.Duration(h.SendTimeout)
	if e.Linger == 0 {
		e.Linger = noTimeout
	}
}

// config is the server's configuration.
func (h *httpCommand) config(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		MaxHeaderBytes:    int(h.MaxHeader),
		ReadHeaderTimeout: orNever(h.HeaderTimeout),
		ReadTimeout:       time.Duration(h.ReadTimeout),
		IdleTimeout:       orNever(h.Timeout),
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelError),
	}
}

// orNever returns a time limit for an http.Server, in which 0 stands for ReadTimeout.
func orNever(d duration) time.Duration {
	if d == 0 {
		return -1
	}
	return time.Duration(d)
}

// refuseHTTP answers a client beyond --maxclients.
func refuseHTTP(c *rondo.Conn, _ string) {
	const text = "503 Service Unavailable: too many clients\n"
	fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
}

// handler returns the handler of the chosen mode, and what it serves, for the log.
func (h *httpCommand) handler(log *slog.Logger) (handler http.Handler, serves string, err error) {
	switch {
	case h.Dir != "":
		handler, err = h.files(log)
		return handler, h.Dir, err
	case h.Proxy != "":
		target, err := parseTarget(h.Proxy)
		if err != nil {
			return nil, "", err
		}
		return bounded(newProxy(target, time.Duration(h.ProxyTimeout), log), int64(h.MaxBody)), target.Redacted(), nil
	}
	return bounded(http.HandlerFunc(echoBody), int64(h.MaxBody)), "echo", nil
}

// files opens the directory.
func (h *httpCommand) files(log *slog.Logger) (http.Handler, error) {
	root, err := os.OpenRoot(h.Dir)
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err // so that the text names the directory once
		}
		return nil, fmt.Errorf("cannot serve %s: %w; give a directory with --dir", h.Dir, err)
	}
	return newFiles(root, h.List, h.Hidden, h.Compressed, log), nil
}

// parseTarget parses the value of --proxy.
func parseTarget(text string) (*url.URL, error) {
	target, err := url.Parse(text)
	if err != nil || target.Scheme != "http" && target.Scheme != "https" || target.Hostname() == "" || target.RawQuery != "" || target.Fragment != "" {
		return nil, usagef("--proxy %s: want the URL of a server, as in http://127.0.0.1:9000", text)
	}
	return target, nil
}

// bounded refuses requests with bodies of more than most bytes; 0: none.
func bounded(h http.Handler, most int64) http.Handler {
	if most == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > most {
			fail(w, http.StatusRequestEntityTooLarge)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, most)
		h.ServeHTTP(w, r)
	})
}

// fail answers with a status and its text.
func fail(w http.ResponseWriter, status int) {
	http.Error(w, strconv.Itoa(status)+" "+http.StatusText(status), status)
}

// echoBody answers with the request's body while it comes.
func echoBody(w http.ResponseWriter, r *http.Request) {
	controller := http.NewResponseController(w)
	controller.EnableFullDuplex() // httpd has it
	kind := r.Header.Get("Content-Type")
	if kind == "" {
		kind = "application/octet-stream"
	}
	w.Header().Set("Content-Type", kind)
	if r.ContentLength >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	n, err := io.Copy(w, r.Body)
	switch {
	case err == nil:
	case n == 0 && errors.As(err, new(*http.MaxBytesError)):
		fail(w, http.StatusRequestEntityTooLarge)
	default: // the client has gone, or the answer cannot be completed
		panic(http.ErrAbortHandler)
	}
}
