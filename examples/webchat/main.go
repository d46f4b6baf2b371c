// Webchat is a chat room for browsers. It serves the page, and the page's WebSocket.
//
//	go run ./examples/webchat
//
// Then open http://127.0.0.1:5003 in two windows.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/websocket"
)

//go:embed page.html
var page string

func main() {
	address := flag.String("addr", "tcp://127.0.0.1:5003", "address to listen on")
	flag.Parse()
	log.Fatal(rondo.Serve(*address, server(new(room)).OpenFunc()))
}

// server serves a room.
func server(r *room) *websocket.Server {
	return &websocket.Server{
		Open:  r.enter,
		Other: servePage,
		Options: websocket.Options{
			MaxMessage:   1000,
			PingInterval: 20 * time.Second,
			IdleTimeout:  time.Minute,
		},
	}
}

// servePage answers a request that is none for a WebSocket.
func servePage(c io.Writer, r *http.Request) {
	status, body := "200 OK", page
	if r.URL.Path != "/" || r.Method != http.MethodGet {
		status, body = "404 Not Found", "not found\n"
	}
	fmt.Fprintf(c, "HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}
