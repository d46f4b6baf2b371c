// Package tls tries rtls with OpenSSL at the other end. The directory of the keys
// is in RONDO_TLS; .ci/run makes them.
package tls

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// patience is how long is waited for what takes no time.
const patience = 2 * time.Minute

// file is one of the directory of keys.
func file(name string) string { return filepath.Join(os.Getenv("RONDO_TLS"), name) }

// keyPair is a certificate that the authority of the directory has signed.
func keyPair(t *testing.T, name string) []tls.Certificate {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(file(name+".crt"), file(name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return []tls.Certificate{cert}
}

// authorities is of the one of the directory.
func authorities(t *testing.T) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(file("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatal("no certificate in ca.crt")
	}
	return pool
}

// each tries f on every backend with every version of TLS. openssl is the
// version's flag.
func each(t *testing.T, f func(t *testing.T, backend string, version uint16, openssl string)) {
	for _, backend := range strings.Fields(os.Getenv("RONDO_BACKENDS")) {
		t.Run(backend, func(t *testing.T) {
			t.Run("TLS 1.2", func(t *testing.T) { f(t, backend, tls.VersionTLS12, "-tls1_2") })
			t.Run("TLS 1.3", func(t *testing.T) { f(t, backend, tls.VersionTLS13, "-tls1_3") })
		})
	}
}

// openssl is a running program, to whose standard input one can type.
type openssl struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan error

	mu  sync.Mutex
	out bytes.Buffer // both of its outputs
}

func start(t *testing.T, args ...string) *openssl {
	t.Helper()
	p := &openssl{t: t, cmd: exec.Command("openssl", args...), ended: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() { p.cmd.Process.Kill() })
	return p
}

// Write takes the program's output.
func (p *openssl) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *openssl) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (p *openssl) typed(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatalf("typing %q: %v\n%s", line, err, p.output())
	}
}

// await waits until the program has written what.
func (p *openssl) await(what string) {
	p.t.Helper()
	p.awaitMore(what, 0)
}

// awaitMore waits until it has written what more than n times.
func (p *openssl) awaitMore(what string, n int) {
	p.t.Helper()
	until(p.t, func() bool { return strings.Count(p.output(), what) > n }, func() string {
		return "openssl does not say " + what + ":\n" + p.output()
	})
}

// command types a letter that is a command, and waits for what it makes the program
// write: what is typed meanwhile would be lost.
func (p *openssl) command(letter, says string) {
	p.t.Helper()
	n := strings.Count(p.output(), says)
	p.typed(letter)
	p.awaitMore(says, n)
}

// exit waits for its end.
func (p *openssl) exit() {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("openssl does not end:\n%s", p.output())
	}
}

func until(t *testing.T, cond func() bool, failure func() string) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(failure())
		}
	}
}

// handler echoes, or does what data does, and notes how its connection ends.
type handler struct {
	mu    sync.Mutex
	ref   rondo.Ref
	got   bytes.Buffer
	mute  bool // no echo
	eof   bool
	over  bool
	err   error
	ready int // how often the filter was
}

func (h *handler) open(c *rondo.Conn) rondo.Handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ref = c.Ref()
	return h
}

func (h *handler) Data(c *rondo.Conn, in []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got.Write(in)
	if h.mute {
		return len(in), nil
	}
	return c.Write(in)
}

func (h *handler) EOF(c *rondo.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.eof = true
	c.Close()
}

func (h *handler) Closed(_ *rondo.Conn, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over, h.err = true, err
}

// await waits until cond of h holds.
func (h *handler) await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	until(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return cond()
	}, func() string { return "waited in vain for " + what + "; got " + h.got.String() })
}

// closed waits for the end, and returns whether the peer announced it, and why it
// came.
func (h *handler) closed(t *testing.T) (eof bool, err error) {
	t.Helper()
	h.await(t, "Closed", func() bool { return h.over })
	return h.eof, h.err
}

// received waits until what came.
func (h *handler) received(t *testing.T, what string) {
	t.Helper()
	h.await(t, what, func() bool { return strings.Contains(h.got.String(), what) })
}
