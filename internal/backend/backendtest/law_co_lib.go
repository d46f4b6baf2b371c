package backendtest

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/gob"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// The laws in this file use common libraries, unmodified, on a coroutine's net.Conn.

func coBufio(w World) {
	s := &script{w: w}
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		in, out := bufio.NewScanner(c), bufio.NewWriterSize(c, 100)
		for in.Scan() {
			fmt.Fprintf(out, "%d %s\n", len(in.Text()), in.Text())
		}
		if err := in.Err(); err != nil {
			return err
		}
		return out.Flush()
	})
	var sent, want strings.Builder
	for i := range 2000 {
		line := strings.Repeat("la", i%50)
		fmt.Fprintln(&sent, line)
		fmt.Fprintln(&want, len(line), line)
	}
	send(w, p, []byte(sent.String()))
	p.CloseWrite()
	expect(w, p, []byte(want.String()))
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

func coTextproto(w World) {
	s := &script{w: w}
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		t := textproto.NewConn(c)
		t.PrintfLine("220 ready")
		if line, err := t.ReadLine(); line != "HELO there" || err != nil {
			w.Errorf("read %q, %v", line, err)
		}
		head, err := t.ReadMIMEHeader()
		if head.Get("Subject") != "goats" || err != nil {
			w.Errorf("read %v, %v", head, err)
		}
		lines, err := t.ReadDotLines()
		if fmt.Sprint(lines) != "[one .two]" || err != nil {
			w.Errorf("read %q, %v", lines, err)
		}
		d := t.DotWriter()
		fmt.Fprint(d, "250\n.fine\n")
		d.Close()
		return t.Close()
	})
	expect(w, p, []byte("220 ready\r\n"))
	send(w, p, []byte("HELO there\r\nSubject: goats\r\n\r\none\r\n..two\r\n.\r\n"))
	expect(w, p, []byte("250\r\n..fine\r\n.\r\n"))
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

func coHTTP(w World) {
	s := &script{w: w}
	body := pattern(150_000)
	addr := w.Listen(&rondo.Engine{NumLoops: 1}, s.opener(func(co *coro.Co, c net.Conn) error {
		for r := bufio.NewReader(c); ; {
			req, err := http.ReadRequest(r)
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			got, err := io.ReadAll(req.Body)
			if err != nil {
				return err
			}
			answer := http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
				TransferEncoding: []string{"chunked"},
				Header:           http.Header{"Path": {req.URL.Path}},
				Body:             io.NopCloser(bytes.NewReader(got))}
			if err := answer.Write(c); err != nil {
				return err
			}
		}
	}))
	client := &script{w: w}
	p := client.serve(func(co *coro.Co, c net.Conn) error {
		d, err := co.Dial("tcp", addr.String())
		if err != nil {
			return err
		}
		defer d.Close()
		r := bufio.NewReader(d)
		for i := range 5 {
			path := fmt.Sprint("/", i)
			req, _ := http.NewRequest("PUT", "http://example.com"+path, bytes.NewReader(body[:len(body)/5*(i+1)]))
			co.Go(func(*coro.Co) error { return req.Write(d) })
			resp, err := http.ReadResponse(r, req)
			if err != nil {
				return err
			}
			got, err := io.ReadAll(resp.Body)
			if resp.Header.Get("Path") != path || mismatch(got, body[:len(body)/5*(i+1)]) >= 0 || err != nil {
				w.Errorf("answer %d: %v, %d bytes, %v", i, resp.Header, len(got), err)
			}
			if err := co.Wait(); err != nil {
				return err
			}
		}
		return nil
	})
	expectEOF(w, p)
	for _, s := range []*script{client, s} {
		if err := s.untilEnded(1); err != nil {
			w.Errorf("a coroutine returned %v", err)
		}
	}
}

func coGob(w World) {
	type message struct {
		ID   int
		Text string
		Data map[string][]byte
	}
	s := &script{w: w}
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		in, out := gob.NewDecoder(c), gob.NewEncoder(c)
		for {
			var m message
			if err := in.Decode(&m); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			m.ID *= 2
			if err := out.Encode(m); err != nil {
				return err
			}
		}
	})
	p.SetDeadline(w.Now().Add(patience))
	in, out := gob.NewDecoder(p), gob.NewEncoder(p)
	for i := range 20 {
		data := pattern(i * 3000)
		if err := out.Encode(message{i, fmt.Sprint("message ", i), map[string][]byte{"data": data}}); err != nil {
			w.Fatal(err)
		}
		var m message
		if err := in.Decode(&m); err != nil {
			w.Fatal(err)
		}
		if m.ID != 2*i || m.Text != fmt.Sprint("message ", i) || mismatch(m.Data["data"], data) >= 0 {
			w.Errorf("message %d came back as %d, %q with %d bytes", i, m.ID, m.Text, len(m.Data["data"]))
		}
	}
	p.CloseWrite()
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// coTLS runs unmodified crypto/tls on both sides, in coroutines of one loop, with both
// versions, and with package tls's client on a connection of the peer's.
func coTLS(w World) {
	sent := pattern(300_000)
	server, client := tlsConfigs()
	s := &script{w: w}
	addr := w.Listen(&rondo.Engine{NumLoops: 1}, s.opener(func(co *coro.Co, c net.Conn) error {
		t := tls.Server(c, server)
		if err := t.HandshakeContext(co.Context()); err != nil {
			return err
		}
		if _, err := io.Copy(t, t); err != nil {
			return err
		}
		return t.Close()
	}))
	talk := func(t *tls.Conn) {
		for at := 0; at < len(sent); at += 10_000 {
			if _, err := t.Write(sent[at : at+10_000]); err != nil {
				w.Errorf("TLS write: %v", err)
				return
			}
			got := make([]byte, 10_000)
			if _, err := io.ReadFull(t, got); err != nil || mismatch(got, sent[at:at+10_000]) >= 0 {
				w.Errorf("TLS read: other bytes, or %v", err)
				return
			}
		}
		if err := t.CloseWrite(); err != nil {
			w.Errorf("TLS CloseWrite: %v", err)
		}
		if n, err := t.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			w.Errorf("TLS read at the end: %d, %v", n, err)
		}
	}
	for i, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := client.Clone()
		config.MaxVersion = version
		dialer := &script{w: w}
		p := dialer.serve(func(co *coro.Co, c net.Conn) error {
			d, err := co.Dial("tcp", addr.String())
			if err != nil {
				return err
			}
			t := tls.Client(d, config)
			talk(t)
			if v := t.ConnectionState().Version; v != version {
				w.Errorf("version %x, want %x", v, version)
			}
			return t.Close()
		})
		expectEOF(w, p)
		if err := dialer.untilEnded(1); err != nil {
			w.Errorf("the client returned %v", err)
		}

		peer := w.Dial(addr)
		peer.SetDeadline(w.Now().Add(patience))
		talk(tls.Client(peer, config))
		peer.Close()
		if err := s.untilEnded(2 * (i + 1)); err != nil {
			w.Errorf("the server returned %v", err)
		}
	}
}

// tlsConfigs returns a server's configuration, with a certificate for the name goat,
// and a client's that trusts it.
var tlsConfigs = sync.OnceValues(func() (server, client *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"goat"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: pool, ServerName: "goat"}
})
