package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, "127.0.0.1:5000", open); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx is done. Then the connections have ten seconds to deliver what
// was written.
func run(ctx context.Context, address string, open rondo.OpenFunc) error {
	var e rondo.Engine
	ln, err := e.Listen("tcp", address, rondo.SocketOptions{}, open)
	if err != nil {
		return err
	}
	log.Println("listening on", ln.Addr())
	<-ctx.Done()
	patience, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return e.Shutdown(patience)
}

// open is what differs from server to server. This one echoes.
func open(*rondo.Conn) rondo.Handler {
	return rondo.HandlerFunc((*rondo.Conn).Write)
}
