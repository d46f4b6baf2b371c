// Webchat is a chat room for browsers: an http.Handler with a page, and the page's
// WebSocket, on the loops of package httpd.
//
//	go run ./examples/webchat
//
// Then open http://127.0.0.1:5003 in two windows.
package main

import (
	_ "embed"
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/websocket"
)

//go:embed page.html
var page string

func main() {
	address := flag.String("addr", "127.0.0.1:5003", "address to listen on")
	flag.Parse()
	ln, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving http://%s", ln.Addr())
	log.Fatal(httpd.Serve(server(new(room)), ln))
}

// server serves a room. Its handlers do not wait for anything, so they run on the loops.
func server(r *room) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, page)
	})
	mux.Handle("/room", &websocket.Server{
		Open: r.enter,
		Options: websocket.Options{
			MaxMessage:   1000,
			PingInterval: 20 * time.Second,
			IdleTimeout:  time.Minute,
		},
	})
	return &http.Server{Handler: httpd.OnLoop(mux), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
}
