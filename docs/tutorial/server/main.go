package main

import (
	"context"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
)

func main() {
	address := flag.String("addr", "127.0.0.1:5000", "address of the chat")
	counts := flag.String("metrics", "127.0.0.1:5001", "address of the counts")
	cert := flag.String("cert", "server.crt", "certificate")
	key := flag.String("key", "server.key", "its key")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *address, *counts, *cert, *key); err != nil {
		slog.Error("chat", "error", err)
		os.Exit(1)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, address, counts, cert, key string) error {
	log := slog.Default()
	open, err := secured(newChat().open, cert, key)
	if err != nil {
		return err
	}
	e := &rondo.Engine{NumLoops: 1, Logger: log, Trace: failures(log)}
	ln, err := e.Listen("tcp", address, rondo.SocketOptions{}, open)
	if err != nil {
		return err
	}
	log.Info("chat is ready", "address", ln.Addr(), "backend", e.BackendName())
	web := &http.Server{Addr: counts, Handler: metrics(e)}
	go web.ListenAndServe()
	defer web.Close()
	go report(log, e, time.Minute, ctx.Done())

	<-ctx.Done()
	log.Info("chat is stopping")
	patience, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return e.Shutdown(patience)
}
