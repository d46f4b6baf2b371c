package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
)

// pingCommand asks what the health checks of package proxy ask, once, of a server of any kind.
type pingCommand struct {
	Address string   `arg:"" help:"Address of the server: redis://host:port, http://host:port/path, tcp://host:port, or host:port, or unix:///path; rediss://, https:// or tls:// with TLS."`
	As      string   `help:"What to ask: redis: PING, which it may answer by demanding a password; http: a GET request; tcp: nothing, a connection or a handshake is enough; auto: what the address says, otherwise as tcp." enum:"auto,redis,http,tcp" default:"auto" placeholder:"HOW"`
	Path    string   `help:"With http: path of the request, if the address has none." default:"/" placeholder:"PATH"`
	Host    string   `help:"With http: Host field of the request. Default: the address." placeholder:"NAME"`
	Status  int      `help:"With http: the status that the answer must have. 0: any of 200 to 399." default:"0" placeholder:"N"`
	Timeout duration `help:"How long all of it may take." default:"3s" placeholder:"TIME"`
	tlsClientFlags
}

// Help is the end of "rondo ping --help".
func (*pingCommand) Help() string {
	return `Asks a server whether it can serve, prints a line, and ends with status 0 if it can and with 1 if not. It is made for health checks of containers and scripts.

Examples:

  rondo ping redis://127.0.0.1:6379
      Send PING to a Redis server.

  rondo ping http://127.0.0.1:8080/up --timeout 1s
      Request a page: the status must be 200 to 399.

  rondo ping https://127.0.0.1/ --tls-name site.example --status 204
      The same over TLS, with the certificate of site.example, and another status.

  rondo ping unix:///run/rondo.sock --as redis
      Ask a Redis server on a unix socket.

  rondo ping 10.0.0.7:5432
      Only connect.

In a Dockerfile: HEALTHCHECK CMD ["/rondo", "ping", "redis://127.0.0.1:6379"]`
}

// A pingKind is what the scheme of an address says.
type pingKind struct {
	as, port string
	tls      bool
}

var pingKinds = map[string]pingKind{
	"redis":  {"redis", "6379", false},
	"rediss": {"redis", "6379", true},
	"http":   {"http", "80", false},
	"https":  {"http", "443", true},
	"tls":    {"tcp", "", true},
}

// A pinging is a check with its flags understood.
type pinging struct {
	*pingCommand
	as, network, address, path string
	request                    *http.Request // as http
	secure                     *tls.Config   // nil: no TLS
}

// Run asks once.
func (p *pingCommand) Run() error {
	if p.Timeout == 0 {
		return usagef("--timeout is 0, so every answer would be late: want more")
	}
	c, err := p.parse()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(p.Timeout))
	defer cancel()
	began := time.Now()
	says, err := c.ask(ctx)
	if err != nil {
		return c.explain(ctx, sys.Portable(err))
	}
	_, err = fmt.Printf("%s: %s after %v\n", p.Address, says, time.Since(began).Round(10*time.Microsecond))
	return err
}

// parse checks the flags.
func (p *pingCommand) parse() (c *pinging, err error) {
	c = &pinging{pingCommand: p, as: p.As, path: p.Path}
	scheme, rest, _ := strings.Cut(p.Address, "://")
	if kind, ok := pingKinds[scheme]; ok {
		err = c.parseURL(scheme, rest, kind)
	} else {
		err = c.parseAddress()
	}
	switch {
	case err != nil:
		return nil, err
	case !strings.HasPrefix(c.path, "/"):
		return nil, usagef("--path %s: want a path that begins with a slash", c.path)
	case c.as != "http" && (p.Path != "/" || p.Host != "" || p.Status != 0):
		return nil, usagef("--path, --host and --status are for requests: give --as http too, or an address as in http://127.0.0.1:8080")
	}
	host, _, err := net.SplitHostPort(c.address)
	if c.network == "unix" || err != nil {
		host = ""
	} else if host == "" {
		host = "localhost"
	}
	if c.as == "http" {
		if c.request, err = http.NewRequest(http.MethodGet, "http://"+c.hostField()+c.path, nil); err != nil {
			return nil, usagef("--path and --host make no request: %w", err)
		}
	}
	c.secure, err = p.config(host)
	return c, err
}

// parseURL parses an address whose scheme says what to ask.
func (c *pinging) parseURL(scheme, rest string, kind pingKind) error {
	target, err := url.Parse("any://" + rest)
	switch {
	case c.As != "auto" && c.As != kind.as:
		return usagef("--as %s and the address %s contradict each other: leave one out", c.As, c.Address)
	case err != nil, target.Hostname() == "", target.User != nil, target.Fragment != "", kind.as != "http" && target.RequestURI() != "/":
		return usagef("%s is not the address of a server: want a host and a port, as in %s://127.0.0.1:%s", c.Address, scheme, cmp.Or(kind.port, "5000"))
	case target.Port() == "" && kind.port == "":
		return usagef("%s has no port: want one, as in %s:443", c.Address, c.Address)
	case target.RequestURI() != "/" && c.Path != "/":
		return usagef("--path %s and the address %s have a path each: leave one out", c.Path, c.Address)
	case target.RequestURI() != "/":
		c.path = target.RequestURI()
	}
	c.as, c.TLS = kind.as, c.TLS || kind.tls
	c.network, c.address = "tcp", net.JoinHostPort(target.Hostname(), cmp.Or(target.Port(), kind.port))
	return nil
}

// parseAddress parses an address as servers have it.
func (c *pinging) parseAddress() (err error) {
	c.network, c.address, err = rondo.ParseAddress(c.Address)
	switch {
	case err != nil:
		return usageError{err}
	case c.network != "unix" && !strings.HasPrefix(c.network, "tcp"):
		return usagef("%s: the network is %s: want tcp, tcp4, tcp6 or unix", c.Address, c.network)
	case c.as == "auto":
		c.as = "tcp"
	}
	return nil
}

// dial connects, with TLS if that is asked for.
func (c *pinging) dial(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, c.network, c.address)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	if c.secure == nil {
		return conn, nil
	}
	secured := tls.Client(conn, c.secure)
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secured, nil
}

// ask asks, and returns what a server that can serve did.
func (c *pinging) ask(ctx context.Context) (says string, err error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	switch {
	case c.as == "redis":
		return askRedis(conn)
	case c.as == "http":
		return c.askHTTP(ctx, conn)
	case c.secure != nil:
		return "it has completed a TLS handshake", nil
	}
	return "it has accepted a connection", nil
}

func askRedis(conn net.Conn) (says string, err error) {
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(io.LimitReader(conn, 4<<10)).ReadString('\n')
	if err == io.EOF && line != "" {
		err = io.ErrUnexpectedEOF
	}
	line = strings.TrimRight(line, "\r\n")
	switch {
	case err != nil:
		return "", err
	case line == "+PONG":
		return "it answers PING", nil
	case strings.HasPrefix(line, "-NOAUTH"):
		return "it demands a password", nil
	}
	return "", fmt.Errorf("it answers PING with %.200q", line)
}

func (c *pinging) askHTTP(ctx context.Context, conn net.Conn) (says string, err error) {
	r := c.request.WithContext(ctx)
	r.Header.Set("User-Agent", "rondo ping")
	r.Close = true
	if err := r.Write(conn); err != nil {
		return "", err
	}
	answer, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, 1<<20)), r)
	if err != nil {
		return "", fmt.Errorf("no answer as of HTTP: %w", err)
	}
	answer.Body.Close()
	says = fmt.Sprintf("the status is %d", answer.StatusCode)
	switch {
	case c.Status == 0 && (answer.StatusCode < 200 || answer.StatusCode >= 400):
		return "", fmt.Errorf("%s, want 200 to 399", says)
	case c.Status != 0 && answer.StatusCode != c.Status:
		return "", fmt.Errorf("%s, want %d", says, c.Status)
	}
	return says, nil
}

// hostField is the request's Host field.
func (c *pinging) hostField() string {
	if c.Host == "" && (c.network == "unix" || strings.HasPrefix(c.address, ":")) {
		return "localhost"
	}
	return cmp.Or(c.Host, c.address)
}

// explain says what is wrong, in one sentence that names the address once.
func (c *pinging) explain(ctx context.Context, err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	switch {
	case ctx.Err() != nil, errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s: no answer within %v", c.Address, time.Duration(c.Timeout))
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s: no server listens there", c.Address)
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Errorf("%s: %w; give the authority with --tls-ca, or skip the check with --insecure", c.Address, err)
	case errors.As(err, new(x509.HostnameError)):
		return fmt.Errorf("%s: %w; give the name with --tls-name, or skip the check with --insecure", c.Address, err)
	case errors.As(err, new(tls.RecordHeaderError)):
		return fmt.Errorf("%s: the server does not speak TLS", c.Address)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%s: the server has closed the connection without an answer", c.Address)
	}
	return fmt.Errorf("%s: %w", c.Address, err)
}
