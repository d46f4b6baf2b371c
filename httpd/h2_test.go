package httpd_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/rtls"
)

// A tlsServer serves an http.Server by TLS, with a certificate for localhost.
type tlsServer struct {
	addr   string
	config *tls.Config // of clients
	ended  chan error
}

// overTLS runs f with httpd, and with net/http to compare.
func overTLS(t *testing.T, f func(t *testing.T, serve func(srv *http.Server) *tlsServer)) {
	for name, serveTLS := range map[string]func(*http.Server, net.Listener, string, string) error{
		"httpd": httpd.ServeTLS, "nethttp": (*http.Server).ServeTLS,
	} {
		t.Run(name, func(t *testing.T) {
			f(t, func(srv *http.Server) *tlsServer {
				authority := testcert.New("test")
				if srv.TLSConfig == nil {
					srv.TLSConfig = new(tls.Config)
				}
				srv.TLSConfig.Certificates = []tls.Certificate{authority.Issue(testcert.RSA, "localhost")}
				if srv.ErrorLog == nil {
					srv.ErrorLog = log.New(io.Discard, "", 0)
				}
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				s := &tlsServer{ln.Addr().String(), &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}, make(chan error, 1)}
				go func() { s.ended <- serveTLS(srv, ln, "", "") }()
				t.Cleanup(func() {
					srv.Close()
					if err := <-s.ended; !errors.Is(err, http.ErrServerClosed) {
						t.Errorf("ServeTLS: %v", err)
					}
				})
				return s
			})
		})
	}
}

// client returns a client of HTTP/2.
func (s *tlsServer) client(t *testing.T) *http.Client {
	transport := &http.Transport{TLSClientConfig: s.config.Clone(), ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// random returns bytes that a seed chooses.
func random(seed byte, size int) []byte {
	data := make([]byte, size)
	rand.NewChaCha8([32]byte{seed}).Read(data)
	return data
}

// mirror sends the body back, with trailers, and checks what a request knows.
func mirror(t *testing.T, srv *http.Server) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && (r.TLS == nil || !r.TLS.HandshakeComplete || r.TLS.NegotiatedProtocol != "h2" || r.TLS.ServerName != "localhost") {
			t.Errorf("TLS: %+v", r.TLS)
		}
		ctx := r.Context()
		if ctx.Value(http.ServerContextKey) != srv || ctx.Value(http.LocalAddrContextKey) == nil || ctx.Value(contextKey("conn")) != r.RemoteAddr {
			t.Errorf("context: %v %v %v", ctx.Value(http.ServerContextKey), ctx.Value(http.LocalAddrContextKey), ctx.Value(contextKey("conn")))
		}
		http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("X-Proto", r.Proto)
		w.Header().Set("Trailer", "X-Sum")
		n, err := io.Copy(w, r.Body)
		w.Header().Set("X-Sum", fmt.Sprint(n, err, r.Trailer["X-Client"]))
	}
}

// Many streams at once, of all lengths, with trailers in both directions.
func TestHTTP2(t *testing.T) {
	overTLS(t, func(t *testing.T, serve func(*http.Server) *tlsServer) {
		srv := &http.Server{ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, contextKey("conn"), c.RemoteAddr().String())
		}}
		srv.Handler = mirror(t, srv)
		client := serve(srv)
		c := client.client(t)
		var wg sync.WaitGroup
		for i := range 24 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				sent := random(byte(i), []int{0, 10, 20_000, 4 << 20}[i%4])
				r, _ := http.NewRequest("POST", "https://"+client.addr+"/", io.MultiReader(bytes.NewReader(sent)))
				r.Trailer = http.Header{"X-Client": {fmt.Sprint(i)}}
				answer, err := c.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer answer.Body.Close()
				got, err := io.ReadAll(answer.Body)
				if sha256.Sum256(got) != sha256.Sum256(sent) || err != nil {
					t.Errorf("stream %d: %d bytes of %d, %v", i, len(got), len(sent), err)
				}
				if want := fmt.Sprintf("%d <nil> [%d]", len(sent), i); answer.Trailer.Get("X-Sum") != want || answer.Header.Get("X-Proto") != "HTTP/2.0" {
					t.Errorf("stream %d: %v, want %q, %q", i, answer.Trailer, want, answer.Header)
				}
			}()
		}
		wg.Wait()
	})
}

// A body that nobody reads stops its sender, in both directions, and no other stream.
func TestHTTP2Backpressure(t *testing.T) {
	overTLS(t, func(t *testing.T, serve func(*http.Server) *tlsServer) {
		var wrote, took atomic.Int64
		read, over := make(chan bool), make(chan bool)
		s := serve(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/down":
				for range 1000 {
					n, err := w.Write(make([]byte, 64<<10))
					if wrote.Add(int64(n)); err != nil {
						break
					}
				}
				close(over)
			case "/up":
				<-read
				n, err := io.Copy(io.Discard, r.Body)
				fmt.Fprint(w, n, err)
			}
		})})
		client := s.client(t)
		down, err := client.Get("https://" + s.addr + "/down")
		if err != nil {
			t.Fatal(err)
		}
		up := make(chan string, 1)
		go func() {
			answer, err := client.Post("https://"+s.addr+"/up", "a/b", io.LimitReader(counter{&took}, 64<<20))
			if err != nil {
				t.Error(err)
				up <- ""
				return
			}
			body, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			up <- string(body)
		}()
		time.Sleep(300 * time.Millisecond)
		if n := wrote.Load(); n > 16<<20 {
			t.Errorf("the handler wrote %d bytes that nobody reads", n)
		}
		if n := took.Load(); n > 8<<20 {
			t.Errorf("the client sent %d bytes that nobody reads", n)
		}
		if answer, err := client.Get("https://" + s.addr + "/"); err != nil {
			t.Error(err)
		} else {
			answer.Body.Close()
		}
		close(read)
		if got, want := <-up, fmt.Sprint(64<<20, error(nil)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		down.Body.Close()
		<-over
	})
}

// A counter reads as zeros, and counts.
type counter struct{ n *atomic.Int64 }

func (c counter) Read(p []byte) (int, error) {
	clear(p)
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// The states of a connection are net/http's, and all of one net.Conn.
func TestHTTP2ConnState(t *testing.T) {
	overTLS(t, func(t *testing.T, serve func(*http.Server) *tlsServer) {
		var mu sync.Mutex
		states := make(map[net.Conn][]http.ConnState)
		closed := make(chan bool, 1)
		s := serve(&http.Server{
			Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
			ConnState: func(c net.Conn, state http.ConnState) {
				mu.Lock()
				defer mu.Unlock()
				if states[c] = append(states[c], state); state == http.StateClosed {
					closed <- true
				}
			},
		})
		client := s.client(t)
		for range 2 {
			answer, err := client.Get("https://" + s.addr)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
		}
		client.CloseIdleConnections()
		<-closed
		mu.Lock()
		defer mu.Unlock()
		if len(states) != 1 {
			t.Error(states)
		}
		for _, got := range states {
			if want := "[new active idle active idle active idle closed]"; fmt.Sprint(got) != want {
				t.Errorf("%v, want %s", got, want)
			}
		}
	})
}

// Shutdown waits for a stream in progress, within its context, and calls the functions of
// RegisterOnShutdown once.
func TestHTTP2Shutdown(t *testing.T) {
	overTLS(t, func(t *testing.T, serve func(*http.Server) *tlsServer) {
		begun, finish := make(chan bool, 1), make(chan bool)
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			begun <- true
			<-finish
			w.Write(make([]byte, 1<<20))
		})}
		var calls atomic.Int64
		srv.RegisterOnShutdown(func() { calls.Add(1) })
		s := serve(srv)
		answer, err := s.client(t).Get("https://" + s.addr)
		if err != nil {
			t.Fatal(err)
		}
		<-begun
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if err := srv.Shutdown(ctx); err != context.DeadlineExceeded {
			t.Errorf("Shutdown with a stream in progress: %v", err)
		}
		if calls.Load() != 1 {
			t.Errorf("%d calls of the function of RegisterOnShutdown", calls.Load())
		}
		if c, err := net.Dial("tcp", s.addr); err == nil {
			c.Close()
			t.Error("it still listens")
		}
		close(finish)
		if n, err := io.Copy(io.Discard, answer.Body); n != 1<<20 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		answer.Body.Close()
		ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown without streams: %v", err)
		}
	})
}

// Close ends streams in progress.
func TestHTTP2Close(t *testing.T) {
	overTLS(t, func(t *testing.T, serve func(*http.Server) *tlsServer) {
		begun, over := make(chan bool, 1), make(chan error, 1)
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun <- true
			<-r.Context().Done()
			over <- r.Context().Err()
		})}
		s := serve(srv)
		failed := make(chan error, 1)
		client := s.client(t)
		go func() {
			_, err := client.Get("https://" + s.addr)
			failed <- err
		}()
		<-begun
		srv.Close()
		if err := <-over; err != context.Canceled {
			t.Error(err)
		}
		if err := <-failed; err == nil {
			t.Error("the client got an answer")
		}
	})
}

// What the configuration allows is what a client gets.
func TestHTTP2Protocols(t *testing.T) {
	protocols := func(h1, h2 bool) *http.Protocols {
		p := new(http.Protocols)
		p.SetHTTP1(h1)
		p.SetHTTP2(h2)
		return p
	}
	next := map[string]func(*http.Server, *tls.Conn, http.Handler){}
	for name, c := range map[string]struct {
		srv     *http.Server
		offered []string
		want    string // "": no answer
	}{
		"default":        {&http.Server{}, []string{"h2", "http/1.1"}, "HTTP/2.0"},
		"an old client":  {&http.Server{}, nil, "HTTP/1.1"},
		"HTTP/1":         {&http.Server{Protocols: protocols(true, false)}, []string{"h2", "http/1.1"}, "HTTP/1.1"},
		"HTTP/2":         {&http.Server{Protocols: protocols(false, true)}, []string{"h2", "http/1.1"}, "HTTP/2.0"},
		"HTTP/2 alone":   {&http.Server{Protocols: protocols(false, true)}, nil, ""},
		"as of old":      {&http.Server{TLSNextProto: next}, []string{"h2", "http/1.1"}, "HTTP/1.1"},
		"its own list":   {&http.Server{TLSConfig: &tls.Config{NextProtos: []string{"x", "http/1.1"}}}, []string{"h2", "http/1.1"}, "HTTP/1.1"},
		"its own choice": {&http.Server{TLSConfig: &tls.Config{NextProtos: []string{"x"}}}, []string{"h2", "http/1.1"}, "HTTP/2.0"},
		"a challenge":    {&http.Server{TLSConfig: &tls.Config{NextProtos: []string{"acme-tls/1"}}}, []string{"acme-tls/1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			overTLS(t, func(t *testing.T, serve func(*http.Server) *tlsServer) {
				srv := &http.Server{Protocols: c.srv.Protocols, TLSNextProto: c.srv.TLSNextProto, TLSConfig: c.srv.TLSConfig.Clone(),
					Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) })}
				s := serve(srv)
				config := s.config.Clone()
				config.NextProtos = c.offered
				conn, err := tls.Dial("tcp", s.addr, config)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(patience))
				if conn.ConnectionState().NegotiatedProtocol == "h2" {
					answer, err := s.client(t).Get("https://" + s.addr)
					if err != nil {
						t.Fatal(err)
					}
					got, _ := io.ReadAll(answer.Body)
					answer.Body.Close()
					if string(got) != c.want {
						t.Errorf("%q, want %q", got, c.want)
					}
					return
				}
				io.WriteString(conn, get)
				if got, _ := io.ReadAll(conn); !strings.HasSuffix(string(got), c.want) || c.want == "" && len(got) > 0 {
					t.Errorf("%q, want %q", got, c.want)
				}
			})
		})
	}
}

// HTTP/2 is refused to a client whose cipher suite is too weak for it, and to one that does
// not begin as it must.
func TestHTTP2Inadequate(t *testing.T) {
	overTLS(t, func(t *testing.T, serve func(*http.Server) *tlsServer) {
		s := serve(&http.Server{TLSConfig: &tls.Config{MinVersion: tls.VersionTLS10, CipherSuites: []uint16{
			tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA}}})
		weak := s.config.Clone()
		weak.MaxVersion, weak.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA}
		old := s.config.Clone()
		old.MinVersion, old.MaxVersion = tls.VersionTLS11, tls.VersionTLS11
		const begins = preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
		for _, c := range []struct {
			config *tls.Config
			send   string
			goaway bool // with INADEQUATE_SECURITY
		}{{weak, begins, true}, {old, begins, true}, {s.config, get, false}} {
			config := c.config.Clone()
			config.NextProtos = []string{"h2"}
			conn, err := tls.Dial("tcp", s.addr, config)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			io.WriteString(conn, c.send)
			got, err := io.ReadAll(conn)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Error("it is not closed")
			}
			if bytes.Contains(got, []byte{0, 0, 0, 0, 0, 0, 0, 0xc}) != c.goaway || bytes.HasPrefix(got, []byte("HTTP")) {
				t.Errorf("%q", got)
			}
		}
	})
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// unencrypted returns what speaks HTTP/1 and HTTP/2 without TLS.
func unencrypted() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// A client may begin HTTP/2 without TLS, if the server allows it, in pieces of any size.
func TestHTTP2Unencrypted(t *testing.T) {
	srv := &http.Server{Protocols: unencrypted(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil {
			t.Error("it has TLS")
		}
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.Proto, n)
	})}
	addr := serve(t, srv)
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	for _, piece := range []int{1, 5, 23, 24, 1 << 20} {
		transport := &http.Transport{Protocols: p, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := net.Dial(network, address)
			return &inPieces{Conn: c, size: piece, left: 60}, err
		}}
		client := &http.Client{Transport: transport, Timeout: time.Minute}
		answer, err := client.Post("http://"+addr, "a/b", bytes.NewReader(make([]byte, 100_000)))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		transport.CloseIdleConnections()
		if string(got) != "HTTP/2.0100000" {
			t.Errorf("%q", got)
		}
	}
	if got := raw(t, addr, get); !strings.HasSuffix(got, "HTTP/1.10") {
		t.Errorf("%q", got)
	}
	for i := range len(preface) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(patience))
		io.WriteString(c, preface[:i])
		c.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(c); len(got) > 0 || err != nil {
			t.Errorf("%d bytes and the end: %q, %v", i, got, err)
		}
		c.Close()
	}
	if got := raw(t, addr, "PRI * HTTP/2.0\r\n\r\nSN\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.") { // as a request, as with net/http
		t.Errorf("%q", got)
	}
}

// An inPieces sends its first bytes in pieces.
type inPieces struct {
	net.Conn
	size, left int
}

func (c *inPieces) Write(p []byte) (n int, err error) {
	for n < len(p) && c.left > 0 && err == nil {
		var k int
		k, err = c.Conn.Write(p[n:min(len(p), n+c.size)])
		n += k
		c.left -= k
		time.Sleep(time.Millisecond)
	}
	if n < len(p) && err == nil {
		var k int
		k, err = c.Conn.Write(p[n:])
		n += k
	}
	return n, err
}

// An engine of the caller's: its Shutdown waits for streams too, and a Server that serves
// two engines loses only the connections of the one.
func TestHTTP2Engines(t *testing.T) {
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) {
			begun, finish := make(chan bool, 2), make(chan bool)
			s := httpd.Server{HTTP: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					begun <- true
					<-finish
				}
				io.WriteString(w, r.Proto)
			})}}
			authority := testcert.New("test")
			open := rondo.Filtered(s.Open, rtls.Server(&tls.Config{
				Certificates: []tls.Certificate{authority.Issue(testcert.ECDSA, "localhost")}, NextProtos: []string{"h2", "http/1.1"}}))
			var engines [2]rondo.Engine
			var addrs [2]string
			for i := range engines {
				engines[i].Backend = backend
				ln, err := engines[i].Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, open)
				if err != nil {
					t.Fatal(err)
				}
				defer engines[i].Close()
				addrs[i] = ln.Addr().String()
			}
			server := &tlsServer{config: &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}}
			client := server.client(t)
			answers := make(chan string, 2)
			ask := func(i int) {
				answer, err := client.Get("https://" + addrs[i] + "/slow")
				if err != nil {
					answers <- err.Error()
					return
				}
				got, _ := io.ReadAll(answer.Body)
				answer.Body.Close()
				answers <- string(got)
			}
			for i := range 2 {
				go ask(i)
				<-begun
			}
			down := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				down <- engines[0].Shutdown(ctx)
			}()
			time.Sleep(50 * time.Millisecond)
			close(finish)
			if got := []string{<-answers, <-answers}; !slices.Equal(got, []string{"HTTP/2.0", "HTTP/2.0"}) {
				t.Error(got)
			}
			if err := <-down; err != nil {
				t.Error(err)
			}
			go ask(1)
			if got := <-answers; got != "HTTP/2.0" {
				t.Error(got)
			}
		})
	}
}

// One http.Server may serve several listeners; each has its BaseContext.
func TestServeTwice(t *testing.T) {
	const n = 8
	var mu sync.Mutex
	var bases []string
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Context().Value(contextKey("base")))
		}),
		BaseContext: func(ln net.Listener) context.Context {
			mu.Lock()
			defer mu.Unlock()
			bases = append(bases, ln.Addr().String())
			return context.WithValue(context.Background(), contextKey("base"), ln.Addr().String())
		},
		ConnState:   func(net.Conn, http.ConnState) {},
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context { return ctx },
	}
	ended := make(chan error, n)
	var want []string
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, ln.Addr().String())
		go func() { ended <- httpd.Serve(srv, ln) }()
	}
	for _, addr := range want {
		if got := raw(t, addr, get); !strings.HasSuffix(got, addr) {
			t.Errorf("%q, want %s", got, addr)
		}
	}
	srv.Close()
	for range n {
		if err := <-ended; err != http.ErrServerClosed {
			t.Error(err)
		}
	}
	slices.Sort(want)
	slices.Sort(bases)
	if !slices.Equal(bases, want) {
		t.Errorf("BaseContext was called for %v, want %v", bases, want)
	}
}

// A connection that a handler has taken over outlives the server, with TLS too.
func TestHijackedOutlives(t *testing.T) {
	overTLS(t, func(t *testing.T, serve func(*http.Server) *tlsServer) {
		taken := make(chan net.Conn, 1)
		srv := &http.Server{TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
				}
				taken <- c
			})}
		s := serve(srv)
		c, err := tls.Dial("tcp", s.addr, s.config)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		h := <-taken
		defer h.Close()
		if err := srv.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		time.Sleep(100 * time.Millisecond)
		c.SetDeadline(time.Now().Add(patience))
		io.WriteString(h, "hello")
		if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
			t.Error(err)
		}
	})
}

// A failed handshake is logged as net/http does.
func TestHandshakeError(t *testing.T) {
	overTLS(t, func(t *testing.T, serve func(*http.Server) *tlsServer) {
		lines := make(chan string, 10)
		s := serve(&http.Server{ErrorLog: log.New(sender(lines), "", 0), ReadHeaderTimeout: 200 * time.Millisecond})
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		want := "http: TLS handshake error from " + c.LocalAddr().String() + ": "
		if got := <-lines; !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

type sender chan string

func (s sender) Write(p []byte) (int, error) {
	s <- string(p)
	return len(p), nil
}
