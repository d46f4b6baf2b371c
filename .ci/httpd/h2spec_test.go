package httpd_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/rondo-go/rondo/httpd"
	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"
)

// TestH2spec runs h2spec, the conformance test of HTTP/2, against net/http and httpd: httpd has
// no failure that net/http has not.
func TestH2spec(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "hello, hello, hello")
	})
	plain := func(serve func(*http.Server, net.Listener) error) string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := &http.Server{Handler: h, Protocols: new(http.Protocols), ErrorLog: log.New(io.Discard, "", 0)}
		srv.Protocols.SetHTTP1(true)
		srv.Protocols.SetUnencryptedHTTP2(true)
		go serve(srv, ln)
		t.Cleanup(func() { srv.Close() })
		return ln.Addr().String()
	}
	secure := serve(t, &http.Server{Handler: h}, true, true).addr
	theirs := h2spec(t, plain((*http.Server).Serve), false)
	t.Logf("%d cases; net/http fails %d", len(theirs), count(theirs))
	for name, ours := range map[string]map[string]error{
		"httpd":          h2spec(t, plain(httpd.Serve), false),
		"httpd and rtls": h2spec(t, secure, true),
	} {
		t.Logf("%s fails %d", name, count(ours))
		if len(ours) != len(theirs) || len(ours) < 140 {
			t.Errorf("%s: %d cases", name, len(ours))
		}
		for what, err := range ours {
			if err != nil && theirs[what] == nil {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
	}
}

// h2spec returns the cases and their failures.
func h2spec(t *testing.T, addr string, secure bool) map[string]error {
	t.Helper()
	to, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := &config.Config{Host: "127.0.0.1", Port: to.Port, Path: "/", Timeout: 2 * time.Second, MaxHeaderLen: 4000, TLS: secure, Insecure: true}
	defer func(was *os.File) { os.Stdout = was }(os.Stdout)
	if os.Stdout, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil { // it says much
		t.Fatal(err)
	}
	defer os.Stdout.Close()
	found := make(map[string]error)
	for _, all := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		all.Test(c)
		collect(all, found)
	}
	return found
}

func collect(g *spec.TestGroup, found map[string]error) {
	for _, one := range append(g.Tests, g.StrictTests...) {
		if r := one.Result; r != nil {
			found[fmt.Sprintf("%s/%d: %s", g.ID(), r.Sequence, one.Desc)] = r.Error
		}
	}
	for _, sub := range g.Groups {
		collect(sub, found)
	}
}

func count(found map[string]error) (failed int) {
	for _, err := range found {
		if err != nil {
			failed++
		}
	}
	return failed
}
