package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/rondo-go/rondo/internal/load"
)

type benchHTTPCommand struct {
	Addr    string   `help:"Address of the server: tcp://host:port, or host:port, or unix:///path." default:"tcp://127.0.0.1:8080" placeholder:"ADDR"`
	Path    string   `help:"Path of the requests, with the query if there is one." default:"/" placeholder:"PATH"`
	Host    string   `help:"Host field of the requests. Default: the host of the address." placeholder:"NAME"`
	Header  []string `help:"Another field of the requests, as in 'Accept: text/html'. May be given several times." short:"H" placeholder:"FIELD" sep:"none"`
	Post    bool     `help:"Send POST with a body of --size bytes in place of GET, as for \"rondo http --echo\"."`
	AnyBody bool     `help:"Do not compare the answers' bodies with the first one, as they differ."`
	benchFlags
}

// Help is the end of "rondo bench http --help".
func (*benchHTTPCommand) Help() string {
	return `It sends one request before the load, to learn the answer.

Examples:

  rondo bench http
      50 connections to 127.0.0.1:8080, the address of "rondo http", each with one request in flight, for 10 seconds.

  rondo bench http --path /index.html --conns 1000 --pipeline 16 --count 1000000
      A million requests for a file.

  rondo bench http --rate 20000 --duration 1m --json
      20,000 requests per second for a minute: the latencies of users who arrive at any time.

  rondo bench http --addr example.test:443 --tls -H 'Accept-Encoding: br'
      Over TLS, and of a compressed page.

  rondo bench http --post --size 64KiB
      Bodies to "rondo http --echo", and back.

All answers must have the status and the body of the first; of the other fields only the framing counts. ` + benchEnds
}

// Run measures until the end or a signal.
func (h *benchHTTPCommand) Run() error {
	b, stop, err := newBench("http --dir .", h.Addr, &h.benchFlags)
	if err != nil {
		return err
	}
	defer stop()
	request, err := h.request(b)
	if err != nil {
		return err
	}
	status, body, err := h.first(b, request)
	if err != nil {
		return err
	}
	if !h.Post {
		b.size = len(body)
	}
	w, err := load.HTTP(load.HTTPOptions{Pipeline: h.Pipeline, Request: request, Status: status, Body: body, AnyBody: h.AnyBody})
	if err != nil {
		return usageError{err}
	}
	if _, err := b.run(w); err != nil {
		return err
	}
	return b.end()
}

// method returns the method of the requests.
func (h *benchHTTPCommand) method() string {
	if h.Post {
		return "POST"
	}
	return "GET"
}

// request returns a request in full.
func (h *benchHTTPCommand) request(b *bench) ([]byte, error) {
	host := b.address
	if b.network == "unix" {
		host = "localhost"
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: rondo-bench\r\n", h.method(), h.Path, cmp.Or(h.Host, host))
	for _, field := range h.Header {
		fmt.Fprintf(&text, "%s\r\n", field)
	}
	if h.Post {
		fmt.Fprintf(&text, "Content-Type: text/plain\r\nContent-Length: %d\r\n", b.size)
	}
	text.WriteString("\r\n")
	head := text.Len()
	if h.Post {
		text.Write(bytes.Repeat([]byte("0123456789abcdef"), b.size/16+1)[:b.size])
	}
	// What makes no request fails here: a path without a slash, a field without a colon.
	parsed, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text.Bytes()[:head])))
	switch {
	case err != nil:
		return nil, usagef("--path, --host and --header make no request: %w", err)
	case !strings.HasPrefix(h.Path, "/"):
		return nil, usagef("--path %s: want a path that begins with a slash", h.Path)
	case parsed.Close:
		return nil, usagef("--header: connections must stay open: leave out Connection")
	case !h.Post && (parsed.ContentLength != 0 || parsed.TransferEncoding != nil):
		return nil, usagef("--header: only --post sends a body, and its length")
	}
	return text.Bytes(), nil
}

// first sends a request before the load, and returns what its answer says.
func (h *benchHTTPCommand) first(b *bench, request []byte) (status int, body []byte, err error) {
	if err := b.checkTLS(); err != nil {
		return 0, nil, err
	}
	conn, err := b.dial()
	if err != nil {
		return 0, nil, b.explain(err)
	}
	defer conn.Close()
	if b.tls != nil {
		conn = tls.Client(conn, b.tls)
	}
	conn.SetDeadline(time.Now().Add(time.Duration(h.Timeout)))
	go conn.Write(request) // a server may answer, or fail, before it has read all
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: h.method()})
	if err == nil {
		body, err = io.ReadAll(answer.Body)
	}
	if err != nil {
		return 0, nil, h.noAnswer(b, err)
	}
	text, _, _ := strings.Cut(string(body[:min(len(body), 200)]), "\n")
	switch {
	case answer.StatusCode >= 400:
		return 0, nil, fmt.Errorf("%s answers %s %s with %s: %q; choose another request with --path or --header", b.addr, h.method(), h.Path, answer.Status, text)
	case answer.Close:
		return 0, nil, fmt.Errorf("%s closes the connection after its answer, and the load needs connections that stay open", b.addr)
	}
	return answer.StatusCode, body, nil
}

// noAnswer explains why there was no answer to the first request.
func (h *benchHTTPCommand) noAnswer(b *bench, err error) error {
	if explained := b.explain(err); explained != err {
		return explained
	}
	return fmt.Errorf("%s gives no answer over HTTP: %w", b.addr, err)
}
