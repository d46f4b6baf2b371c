package main

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testcert"
)

// keyFiles are those of an authority, and of a server and a client that it knows.
type keyFiles struct {
	authority *testcert.Authority
	client    tls.Certificate

	dir, ca, cert, key, clientCert, clientKey string
}

func newKeyFiles(t *testing.T) *keyFiles {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	f := &keyFiles{
		authority: testcert.New("rondo test CA"),
		dir:       dir, ca: in("ca.crt"), cert: in("server.crt"), key: in("server.key"),
		clientCert: in("client.crt"), clientKey: in("client.key"),
	}
	f.client = f.authority.Issue(testcert.ECDSA, "client.test")
	f.write(t, f.ca, testcert.CertPEM(f.authority.Cert))
	f.issue(t, "first.test")
	cert, key := testcert.PEM(f.client)
	f.write(t, f.clientCert, cert)
	f.write(t, f.clientKey, key)
	return f
}

// issue replaces the server's certificate.
func (f *keyFiles) issue(t *testing.T, name string) {
	t.Helper()
	cert, key := testcert.PEM(f.authority.Issue(testcert.ECDSA, name, "localhost", "127.0.0.1"))
	f.write(t, f.cert, cert)
	f.write(t, f.key, key)
}

func (f *keyFiles) write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// args are those of a server.
func (f *keyFiles) args(cmd string, more ...string) []string {
	return append([]string{cmd, "--addr", "tcp://127.0.0.1:0", "--tls-cert", f.cert, "--tls-key", f.key}, more...)
}

// connect connects to an address of a start-up line, with the client's certificate
// or without.
func (f *keyFiles) connect(t *testing.T, address string, withCert bool) *tls.Conn {
	t.Helper()
	config := &tls.Config{RootCAs: f.authority.Pool(), ServerName: "localhost"}
	if withCert {
		config.Certificates = []tls.Certificate{f.client}
	}
	return tls.Client(dial(t, address), config)
}

// serverName is the name of the server's certificate.
func serverName(t *testing.T, c *tls.Conn) string {
	t.Helper()
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func TestTLSAuthClients(t *testing.T) {
	f := newKeyFiles(t)
	other := testcert.New("another CA").Issue(testcert.ECDSA, "stranger.test")
	for _, test := range []struct {
		args              []string
		without, stranger bool // are served
	}{
		{[]string{"--tls-ca", f.ca}, false, false},
		{[]string{"--tls-ca", f.ca, "--tls-auth-clients", "yes", "--loops", "2"}, false, false},
		{[]string{"--tls-ca", f.ca, "--tls-auth-clients", "optional"}, true, false},
		{[]string{"--tls-auth-clients", "no"}, true, true},
	} {
		_, addresses := start(t, f.args("redis", test.args...)...)
		talk(t, f.connect(t, addresses[0], true), "PING\r\n", "+PONG\r\n")
		served := func(c *tls.Conn) bool {
			io.WriteString(c, "PING\r\n")
			_, err := io.ReadFull(c, make([]byte, 7))
			return err == nil
		}
		if got := served(f.connect(t, addresses[0], false)); got != test.without {
			t.Errorf("%v: without a certificate served: %v", test.args, got)
		}
		strange := tls.Client(dial(t, addresses[0]), &tls.Config{InsecureSkipVerify: true,
			// Ignores the authorities that the server names.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &other, nil }})
		if got := served(strange); got != test.stranger {
			t.Errorf("%v: with a stranger's certificate served: %v", test.args, got)
		}
	}
}

// SIGHUP loads new certificates. Existing connections continue, and unusable files change
// nothing.
func TestTLSReload(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // there is no SIGHUP
	}
	f := newKeyFiles(t)
	p, addresses := start(t, f.args("echo", "--tls-auth-clients", "no")...)
	old := f.connect(t, addresses[0], false)
	if name := serverName(t, old); name != "first.test" {
		t.Fatalf("the certificate is %s's", name)
	}
	hangUp := func(want string) {
		t.Helper()
		before := strings.Count(p.stderr(), want)
		p.signal(syscall.SIGHUP)
		for end := time.Now().Add(patience); strings.Count(p.stderr(), want) == before; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("no %q:\n%s", want, p.stderr())
			}
		}
	}
	f.issue(t, "second.test")
	hangUp("loaded the TLS files")
	if name := serverName(t, f.connect(t, addresses[0], false)); name != "second.test" {
		t.Errorf("after SIGHUP the certificate is %s's", name)
	}
	talk(t, old, "hello", "hello")

	f.write(t, f.key, []byte("nonsense"))
	hangUp("keeping the old certificate")
	if name := serverName(t, f.connect(t, addresses[0], false)); name != "second.test" {
		t.Errorf("after a bad file the certificate is %s's", name)
	}
	talk(t, old, "hello", "hello")
	closeWithPeer(old)
	p.stop(syscall.SIGTERM, 0)
}

// A unix socket never uses TLS. The limit of clients includes clients in the handshake.
func TestTLSAddresses(t *testing.T) {
	f := newKeyFiles(t)
	for _, cmd := range []string{"redis", "echo"} {
		args := f.args(cmd, "--tls-auth-clients", "no", "--maxclients", "2")
		if runtime.GOOS != "windows" {
			args = append(args, "--addr", "unix://"+filepath.Join(f.dir, cmd+".sock"))
		}
		_, addresses := start(t, args...)
		if len(addresses) > 1 {
			c := dial(t, addresses[1])
			if cmd == "redis" {
				talk(t, c, "PING\r\n", "+PONG\r\n")
			} else {
				talk(t, c, "hello", "hello")
			}
			c.Close()
		}
		silent := []net.Conn{dial(t, addresses[0]), dial(t, addresses[0])}
		third := dial(t, addresses[0])
		if _, err := third.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
			t.Errorf("%s: the third of two clients: %v", cmd, err)
		}
		for _, c := range silent {
			c.Close()
		}
		// Their places become free as soon as the server notices.
		for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			c := f.connect(t, addresses[0], false)
			if c.Handshake() == nil {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: no place is free", cmd)
			}
		}
	}
}

func TestTLSMistakes(t *testing.T) {
	f := newKeyFiles(t)
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--tls-key", f.key}, 2, "--tls-cert"},
		{[]string{"--tls-ca", f.ca}, 2, "--tls-cert"},
		{[]string{"--tls-cert", f.cert, "--tls-key", f.key}, 2, "--tls-auth-clients yes needs the clients' authorities: give them with --tls-ca"},
		{[]string{"--tls-cert", f.cert, "--tls-key", f.key, "--tls-auth-clients", "maybe"}, 2, "must be one of"},
		{[]string{"--tls-cert", f.cert, "--tls-auth-clients", "no"}, 1, "--tls-key"},
		{[]string{"--tls-cert", f.dir + "/none", "--tls-key", f.key, "--tls-auth-clients", "no"}, 1, "--tls-cert and --tls-key: open"},
		{[]string{"--tls-cert", f.cert, "--tls-key", f.clientKey, "--tls-auth-clients", "no"}, 1, "does not match"},
		{[]string{"--tls-cert", f.cert, "--tls-key", f.key, "--tls-ca", f.key}, 1, "contains no certificate"},
		{[]string{"--tls-cert", f.cert, "--tls-key", f.key, "--tls-ca", f.dir + "/none"}, 1, "--tls-ca"},
	} {
		for _, cmd := range []string{"redis", "echo"} {
			out, code := run(t, append([]string{cmd, "--addr", "tcp://127.0.0.1:0"}, test.args...)...)
			if code != test.code || !strings.Contains(out, test.want) {
				t.Errorf("%s %v: exit code %d, no %q in %q", cmd, test.args, code, test.want, out)
			}
		}
	}
}

func TestTLSBench(t *testing.T) {
	f := newKeyFiles(t)
	_, echo := start(t, f.args("echo", "--tls-ca", f.ca)...)
	_, redis := start(t, f.args("redis", "--tls-auth-clients", "no")...)
	got := results(t, "echo", "--addr", echo[0], "--tls", "--tls-ca", f.ca, "--tls-cert", f.clientCert, "--tls-key", f.clientKey,
		"--conns", "4", "--size", "20KiB", "--pipeline", "3", "--count", "500")
	if len(got) != 1 || got[0]["requests"] != 500.0 {
		t.Errorf("echo: %v", got)
	}
	if got := results(t, "redis", "-t", "set,get", "--addr", redis[0], "--tls", "--insecure", "--conns", "4", "--count", "500"); len(got) != 2 {
		t.Errorf("redis: %v", got)
	}
	plain := serveHere(t, "tcp", "127.0.0.1:0", func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) { return c.Write([]byte("what?\n")) })
	})
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--addr", redis[0], "--tls"}, 1, "give the authority with --tls-ca"},
		{[]string{"--addr", redis[0], "--tls", "--tls-ca", f.ca, "--tls-name", "other.test"}, 1, "give the name with --tls-name"},
		{[]string{"--addr", redis[0], "--tls-ca", f.ca}, 2, "give --tls too"},
		{[]string{"--addr", redis[0], "--tls", "--tls-key", f.clientKey}, 2, "--tls-cert"},
		{[]string{"--addr", echo[0], "--tls", "--tls-ca", f.ca}, 1, "certificate required"},
		{[]string{"--addr", plain, "--tls", "--insecure", "--timeout", "20s"}, 1, "does not speak TLS"},
	} {
		_, stderr, code := runBench(t, append([]string{"echo", "--count", "10"}, test.args...)...)
		if code != test.code || !strings.Contains(stderr, test.want) {
			t.Errorf("%v: exit code %d, no %q in %q", test.args, code, test.want, stderr)
		}
	}
}
