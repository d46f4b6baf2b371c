// Command arena is an entry for HttpArena (github.com/MDA2AV/HttpArena): the tests baseline,
// pipelined, limited-conn and echo-ws, on packages httpd and websocket.
package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/websocket"
)

func main() {
	address := ":8080"
	if a := os.Getenv("ARENA_ADDRESS"); a != "" {
		address = a
	}
	// Connections come and go fast in limited-conn: each loop accepts for itself.
	e := &rondo.Engine{Balance: rondo.ReusePort}
	s := &httpd.Server{HTTP: &http.Server{Handler: httpd.OnLoop(http.HandlerFunc(serve))}}
	if _, err := e.Listen("tcp", address, rondo.SocketOptions{}, s.Open); err != nil {
		log.Fatal(err)
	}
	if err := e.Wait(); err != nil {
		log.Fatal(err)
	}
}

// serve answers on the connection's loop.
func serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/pipeline":
		text(w, "ok")
	case "/baseline11":
		baseline(w, r)
	case "/ws":
		sockets.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// baseline adds the numbers of the query and the number in the body.
func baseline(w http.ResponseWriter, r *http.Request) {
	sum, query := 0, r.URL.RawQuery
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		_, value, _ := strings.Cut(pair, "=")
		n, err := strconv.Atoi(value)
		if err != nil {
			http.Error(w, "want numbers", http.StatusBadRequest)
			return
		}
		sum += n
	}
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(body)))
		if err != nil {
			http.Error(w, "want a number", http.StatusBadRequest)
			return
		}
		sum += n
	}
	text(w, strconv.Itoa(sum))
}

// text answers with a text.
func text(w http.ResponseWriter, s string) {
	h := w.Header()
	h["Content-Type"] = plain
	h["Content-Length"] = []string{strconv.Itoa(len(s))}
	io.WriteString(w, s)
}

var plain = []string{"text/plain"}

// sockets are the WebSockets, whose messages come back.
var sockets = &websocket.Server{Open: func(*websocket.Conn, *http.Request) websocket.Handler { return echo{} }}

type echo struct{}

func (echo) Message(c *websocket.Conn, op websocket.Opcode, p []byte) error {
	return c.WriteMessage(op, p)
}

func (echo) Closed(*websocket.Conn, error) {}
