package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testcert"
)

// certificate writes a certificate for localhost, and its key, into files.
func certificate(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	authority := testcert.New("tutorial CA")
	cert, key := testcert.PEM(authority.Issue(testcert.ECDSA, "localhost"))
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key")
	if err := errors.Join(os.WriteFile(certFile, cert, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile, authority.Pool()
}

// addresses is a slog.Handler that passes on the address of the line "chat is ready".
type addresses chan string

func (addresses) Enabled(context.Context, slog.Level) bool { return true }
func (a addresses) WithAttrs([]slog.Attr) slog.Handler     { return a }
func (a addresses) WithGroup(string) slog.Handler          { return a }
func (a addresses) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(attr slog.Attr) bool {
		if attr.Key == "address" {
			a <- attr.Value.String()
		}
		return true
	})
	return nil
}

// TestRun: the chat talks TLS, and Shutdown delivers what was written.
func TestRun(t *testing.T) {
	cert, key, roots := certificate(t)
	ready := make(addresses, 1)
	before := slog.Default()
	slog.SetDefault(slog.New(ready))
	defer slog.SetDefault(before)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, "127.0.0.1:0", "127.0.0.1:0", cert, key) }()
	var address string
	select {
	case address = <-ready:
	case err := <-ended:
		t.Fatal(err)
	}

	plain, err := net.Dial("tcp", address) // no handshake: a failure that is logged
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(plain, "your name?\n")
	io.Copy(io.Discard, plain)
	plain.Close()

	c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprint(c, "ann\n")
	in := bufio.NewReader(c)
	for _, want := range []string{"your name?\n", "ann is in lobby\n"} {
		if line, err := in.ReadString('\n'); line != want || err != nil {
			t.Fatalf("%q, %v; want %q", line, err, want)
		}
	}
	stop()
	if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
		t.Errorf("at the end %q, %v", rest, err)
	}
	c.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestMetrics: the counts are there as JSON, and in the log.
func TestMetrics(t *testing.T) {
	var e rondo.Engine
	defer e.Close()
	if _, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, newChat().open); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	metrics(&e).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	var s rondo.Stats
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || len(s.Loops) == 0 {
		t.Errorf("%v: %s", err, w.Body)
	}

	read, write := io.Pipe()
	stop := make(chan struct{})
	defer close(stop)
	go report(slog.New(slog.NewTextHandler(write, nil)), &e, time.Millisecond, stop)
	line, err := bufio.NewReader(read).ReadString('\n')
	if !strings.Contains(line, "open=0 accepted=0") || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	read.Close()
}
