package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/internal/testkit"
)

// saying makes a server that sends each client a text, once the client has sent something. The
// text "" closes the connection instead.
func saying(t *testing.T, text string) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				c.Read(make([]byte, 1000))
				io.WriteString(c, text)
			}()
		}
	}()
	return ln.Addr().String()
}

// ping runs "rondo ping", and wants an exit code, and one line with a text.
func ping(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	out, got := run(t, append([]string{"ping"}, args...)...)
	if got != code || strings.Count(out, "\n") != 1 || !strings.Contains(out, want) || (code != 0) != strings.HasPrefix(out, "rondo: ") {
		t.Errorf("ping %v: exit code %d, output %q, want %d, %q", args, got, out, code, want)
	}
}

// "rondo ping" finds that rondo's own servers are well.
func TestPingOfRondo(t *testing.T) {
	f := newKeyFiles(t)
	_, redis := start(t, "redis", "--addr", "127.0.0.1:0", "--requirepass", "secret")
	at := strings.TrimPrefix(redis[0], "tcp://")
	ping(t, 0, "redis://"+at+": it demands a password after ", "redis://"+at)
	ping(t, 0, "it has accepted a connection", at)
	_, redis = start(t, f.args("redis", "--tls-ca", f.ca)...)
	at = strings.TrimPrefix(redis[0], "tcp://")
	ping(t, 0, "it answers PING", "rediss://"+at, "--tls-ca", f.ca, "--tls-cert", f.clientCert, "--tls-key", f.clientKey)
	ping(t, 0, "it answers PING", redis[0], "--as", "redis", "--tls", "--insecure", "--tls-cert", f.clientCert, "--tls-key", f.clientKey)
	ping(t, 1, "give the authority with --tls-ca, or skip the check with --insecure", "tls://"+at)
	ping(t, 1, "give the name with --tls-name, or skip the check with --insecure", "tls://"+at, "--tls-ca", f.ca, "--tls-name", "other.test")
	ping(t, 1, "certificate required", "rediss://"+at, "--tls-ca", f.ca)
	_, site := start(t, f.args("http", "--echo", "--access-log", "off")...)
	ping(t, 0, "the status is 200", "https://"+strings.TrimPrefix(site[0], "tcp://"), "--insecure")
	_, echo := start(t, f.args("echo", "--tls-auth-clients", "no")...)
	ping(t, 0, "it has completed a TLS handshake", "tls://"+strings.TrimPrefix(echo[0], "tcp://"), "--tls-ca", f.ca)
}

// What a request is, and which statuses are well.
func TestPingHTTP(t *testing.T) {
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		status := 0
		fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.Header().Set("Location", "/nowhere")
		w.WriteHeader(max(status, 200))
	}))
	defer server.Close()
	for _, c := range []struct {
		code int
		want string
		args string
	}{
		{0, "the status is 200", ""},
		{0, "the status is 302", "/302"},
		{0, "the status is 399", "/399?x=1"},
		{1, "the status is 404, want 200 to 399", "/404"},
		{1, "the status is 503, want 200 to 399", " --path /503"},
		{0, "the status is 503", "/503 --status 503"},
		{1, "the status is 200, want 204", " --status 204"},
	} {
		ping(t, c.code, c.want, strings.Fields(server.URL+c.args)...)
	}
	ping(t, 0, "200", server.URL+"/up?a=b%20c", "--host", "site.test")
	if got.Method != "GET" || got.Host != "site.test" || got.RequestURI != "/up?a=b%20c" || got.UserAgent() != "rondo ping" {
		t.Errorf("the request is %s %s of %s by %s", got.Method, got.RequestURI, got.Host, got.UserAgent())
	}
}

// Servers that are not well, or no servers at all.
func TestPingFailures(t *testing.T) {
	free := testkit.FreeAddress(t)
	ping(t, 1, free+": no server listens there", free)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // clients wait in its queue
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	at := silent.Addr().String()
	for _, scheme := range []string{"redis://", "rediss://", "http://", "https://", "tls://"} {
		args := []string{scheme + at, "--timeout", "50ms"}
		if scheme != "redis://" && scheme != "http://" {
			args = append(args, "--insecure")
		}
		ping(t, 1, "no answer within 50ms", args...)
	}
	ping(t, 0, "it has accepted a connection", at)
	ping(t, 1, "closed the connection without an answer", "redis://"+saying(t, ""))
	ping(t, 1, "closed the connection without an answer", "redis://"+saying(t, "+PON"))
	ping(t, 1, `it answers PING with "-LOADING wait"`, "redis://"+saying(t, "-LOADING wait\r\n"))
	ping(t, 1, "closed the connection without an answer", "http://"+saying(t, ""))
	ping(t, 1, "no answer as of HTTP", "http://"+saying(t, "SSH-2.0 hello\r\n\r\n"))
	ping(t, 1, "the server does not speak TLS", "tls://"+saying(t, "SSH-2.0 hello\r\n\r\n"))
	for args, want := range map[string]string{
		"":                                 `expected "<address>"`,
		"nowhere":                          "missing port in address",
		"udp://127.0.0.1:1":                "the network is udp",
		"redis://127.0.0.1/0":              "is not the address of a server",
		"redis://:secret@127.0.0.1":        "is not the address of a server",
		"http://127.0.0.1/a --path /b":     "have a path each",
		"http://127.0.0.1 --as redis":      "contradict each other",
		"tls://127.0.0.1":                  "has no port",
		"127.0.0.1:1 --path /up":           "give --as http too",
		"127.0.0.1:1 --as http --path up":  "begins with a slash",
		"127.0.0.1:1 --tls-ca x":           "give --tls too",
		"127.0.0.1:1 --timeout 0":          "want more",
		"http://127.0.0.1:1 --host a\x01b": "make no request",
	} {
		ping(t, 2, want, strings.Fields(args)...)
	}
}
