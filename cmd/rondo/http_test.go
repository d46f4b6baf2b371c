package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serveHTTP starts "rondo http" on a port of its own.
func serveHTTP(t *testing.T, args ...string) (p *process, address string) {
	t.Helper()
	p, addresses := start(t, append([]string{"http", "--addr", "127.0.0.1:0", "--access-log", "off"}, args...)...)
	return p, addresses[0]
}

// An ended is an answer with its body.
type ended struct {
	*http.Response
	body string
}

// ask sends a request on a new connection, and reads the answer. The request is a method and a
// path; fields are lines of its head.
func ask(t *testing.T, address, request string, fields ...string) ended {
	t.Helper()
	return askWith(t, dial(t, address), request, "", fields...)
}

// askWith is ask on a connection, with a body.
func askWith(t *testing.T, conn io.ReadWriter, request, body string, fields ...string) ended {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: example.test\r\nConnection: close\r\n", method, path)
	if body != "" {
		head += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	for _, f := range fields {
		head += f + "\r\n"
	}
	if _, err := io.WriteString(conn, head+"\r\n"+body); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	return ended{answer, string(b)}
}

func TestHTTPEcho(t *testing.T) {
	_, address := serveHTTP(t, "--echo", "--max-body", "1MiB", "--max-header", "2KiB", "--loops", "2")
	large := strings.Repeat("0123456789abcdef", 60000)
	for _, body := range []string{"hello", large} {
		got := askWith(t, dial(t, address), "POST /", body, "Content-Type: text/x")
		if got.StatusCode != 200 || got.body != body || got.ContentLength != int64(len(body)) || got.Header.Get("Content-Type") != "text/x" {
			t.Errorf("echo of %d bytes: %s, %v, %d bytes", len(body), got.Status, got.Header, len(got.body))
		}
	}
	got := ask(t, address, "POST /", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0")
	if got.StatusCode != 200 || got.body != "hello world" {
		t.Errorf("echo of chunks: %s, %q", got.Status, got.body)
	}
	if got := ask(t, address, "GET /any/path"); got.StatusCode != 200 || got.body != "" || got.ContentLength != 0 {
		t.Errorf("echo of nothing: %s, %v, %q", got.Status, got.Header, got.body)
	}
	if got := ask(t, address, "POST /", "Content-Length: 1048577"); got.StatusCode != 413 {
		t.Errorf("a body that is too long: %s", got.Status)
	}
	if got := ask(t, address, "GET /", "X: "+strings.Repeat("x", 8<<10)); got.StatusCode != 431 {
		t.Errorf("a head that is too long: %s", got.Status)
	}
	conn := dial(t, address)
	talk(t, conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n")
	talk(t, conn, "ok", "HTTP/1.1 200 OK\r\n")
}

// The body is sent back while it comes.
func TestHTTPEchoStreams(t *testing.T) {
	_, address := serveHTTP(t, "--echo")
	conn := dial(t, address)
	talk(t, conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 80000\r\n\r\n"+strings.Repeat("x", 40000), "HTTP/1.1 200 OK\r\n")
}

func TestHTTPLimits(t *testing.T) {
	_, address := serveHTTP(t, "--echo", "--header-timeout", "100ms", "--read-timeout", "150ms", "--timeout", "50ms", "--maxclients", "2")
	closed := func(what, send string) {
		t.Helper()
		conn := dial(t, address)
		io.WriteString(conn, send)
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	closed("nothing", "")
	closed("half a head", "GET / HTTP/1.1\r\nHo")
	closed("no further request", "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	closed("half a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")

	_, address = serveHTTP(t, "--echo", "--maxclients", "1")
	conn := dial(t, address)
	talk(t, conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n")
	if got := ask(t, address, "GET /"); got.StatusCode != 503 || !strings.Contains(got.body, "too many clients") {
		t.Errorf("the second of one client: %s, %q", got.Status, got.body)
	}
}

// started runs "rondo http" with its standard output in a buffer.
func startWithOutput(t *testing.T, args ...string) (p *process, address string, out *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"http", "--addr", "127.0.0.1:0"}, args...)...)
	out = new(bytes.Buffer)
	cmd.Stdout = out
	p, addresses := startCommand(t, cmd)
	return p, addresses[0], out
}

// The combined log has a line for each request, complete when the program has ended, and no
// client can forge one.
func TestHTTPAccessLog(t *testing.T) {
	p, address, out := startWithOutput(t, "--echo")
	conn := dial(t, address)
	askWith(t, conn, "POST /a?b=\"c\"", "hello", `User-Agent: quo"te\`+"\xff", "Referer: http://there/")
	ask(t, address, "HEAD /")
	p.stop(syscall.SIGTERM, 0)
	host, _, _ := net.SplitHostPort(conn.LocalAddr().String())
	date := `\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [-+]\d{4}\]`
	want := regexp.MustCompile(`^` + regexp.QuoteMeta(host) + ` - - ` + date + ` "POST /a\?b=\\"c\\" HTTP/1\.1" 200 5 "http://there/" "quo\\"te\\\\\\xff" \d+\.\d{6}\n` +
		regexp.QuoteMeta(host) + ` - - ` + date + ` "HEAD / HTTP/1\.1" 200 0 "-" "-" \d+\.\d{6}\n$`)
	if !want.MatchString(out.String()) {
		t.Errorf("the access log is %q, want %s", out, want)
	}
}

func TestHTTPAccessLogAsText(t *testing.T) {
	p, address, out := startWithOutput(t, "--echo", "--access-log", "text")
	askWith(t, dial(t, address), "POST /a", "hello")
	p.stop(syscall.SIGTERM, 0)
	want := regexp.MustCompile(`level=INFO msg=request client=127\.0\.0\.1 method=POST uri=/a status=200 bytes=5 duration=\S+`)
	if !want.MatchString(p.stderr()) || out.Len() > 0 {
		t.Errorf("output %q, errors %q, want %s", out, p.stderr(), want)
	}
}

// A request in progress is answered after the signal, and idle connections close.
func TestHTTPServesUntilASignal(t *testing.T) {
	entered, leave := make(chan bool, 1), make(chan bool)
	backend := serveBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- true
			<-leave
		}
		io.WriteString(w, "done")
	})
	p, address := serveHTTP(t, "--proxy", backend)
	idle := dial(t, address)
	talk(t, idle, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n")
	answers := make(chan ended, 1)
	go func() { answers <- ask(t, address, "GET /slow") }()
	<-entered
	p.signal(syscall.SIGTERM)
	if _, err := io.Copy(io.Discard, idle); err != nil {
		t.Errorf("an idle connection: %v", err)
	}
	idle.Close()
	close(leave)
	if got := <-answers; got.StatusCode != 200 || got.body != "done" {
		t.Errorf("the request in progress: %s, %q", got.Status, got.body)
	}
	p.wait(0)
}

// The certificate's reload, and a whole request over TLS.
func TestTLSHTTP(t *testing.T) {
	f := newKeyFiles(t)
	args := f.args("http", "--echo", "--access-log", "off")
	_, addresses := start(t, args...)
	conn := f.connect(t, addresses[0], false)
	if got := askWith(t, conn, "POST /", "hello"); got.StatusCode != 200 || got.body != "hello" {
		t.Errorf("%s, %q", got.Status, got.body)
	}
	_, addresses = start(t, append(args, "--tls-auth-clients", "yes", "--tls-ca", f.ca)...)
	if got := askWith(t, f.connect(t, addresses[0], true), "POST /", "hello"); got.body != "hello" {
		t.Errorf("with a certificate: %s, %q", got.Status, got.body)
	}
	stranger := f.connect(t, addresses[0], false)
	io.WriteString(stranger, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := stranger.Read(make([]byte, 1)); err == nil {
		t.Error("a client without a certificate is served")
	}
}

func TestHTTPMistakes(t *testing.T) {
	const dir = "."
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"", "there is nothing to serve: give --dir DIR, --echo or --proxy URL", 2},
		{"--echo --dir " + dir, "--dir, --echo and --proxy exclude each other: give one of them", 2},
		{"--proxy http://a --dir " + dir, "--dir, --echo and --proxy exclude each other: give one of them", 2},
		{"--echo --proxy http://a", "--dir, --echo and --proxy exclude each other: give one of them", 2},
		{"--echo --hidden", "--no-list, --hidden and --no-compressed are for files: give them with --dir", 2},
		{"--proxy http://a --no-list", "--no-list, --hidden and --no-compressed are for files: give them with --dir", 2},
		{"--proxy 127.0.0.1:9000", "--proxy 127.0.0.1:9000: want the URL of a server, as in http://127.0.0.1:9000", 2},
		{"--proxy ftp://a", "--proxy ftp://a: want the URL of a server, as in http://127.0.0.1:9000", 2},
		{"--proxy http://", "--proxy http://: want the URL of a server, as in http://127.0.0.1:9000", 2},
		{"--echo --max-header 10", "--max-header is 10: want 1024 or more", 2},
		{"--echo --max-header 1GiB", "--max-header is 1073741824: want 16777216 or less", 2},
		{"--echo --max-body lots", `--max-body: "lots" is not a size: want bytes, as in 65536 or 64KiB or 1GiB`, 2},
		{"--echo --send-timeout never", `--send-timeout: "never" is not a duration: want seconds, or a unit, as in 90s or 5m`, 2},
		{"--echo --access-log loud", `--access-log must be one of "combined","text","off" but got "loud"`, 2},
		{"--echo --tls-ca ca.crt --tls-cert a", "--tls-ca is for clients' certificates: give --tls-auth-clients yes or optional too", 2},
		{"--dir " + dir + "/none", "cannot serve " + dir + "/none: no such file or directory; give a directory with --dir", 1},
	} {
		if c.code == 1 && runtime.GOOS == "windows" {
			continue // Windows has other words
		}
		out, code := run(t, append([]string{"http", "--addr", "127.0.0.1:0"}, strings.Fields(c.args)...)...)
		if want := "rondo: " + c.want + "\n"; code != c.code || out != want {
			t.Errorf("rondo http %s: exit code %d, output %q, want %q", c.args, code, out, want)
		}
	}
}

// A client that does not read an answer is cut off.
func TestHTTPSendTimeout(t *testing.T) {
	const size = 50_000_000 // more than the system takes
	backend := serveBackend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Write(make([]byte, size))
	})
	_, address := serveHTTP(t, "--proxy", backend, "--send-timeout", "300ms")
	conn := dial(t, address)
	talk(t, conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n")
	time.Sleep(time.Second)
	if n, _ := io.Copy(io.Discard, conn); n >= size {
		t.Errorf("a client that read nothing for a second got all %d bytes", n)
	}

	// One that reads slowly, but does read, gets everything. If the machine stood still for most of
	// the time that a client has, the result proves nothing.
	const timeout = 2 * time.Second
	_, address = serveHTTP(t, "--proxy", backend, "--send-timeout", timeout.String())
	for try := range 10 {
		n, longest := readSlowly(t, dial(t, address))
		if n >= size {
			return
		}
		if longest < timeout/2 {
			t.Fatalf("try %d: a slow client, which never waited for more than %v, got %d bytes of %d", try, longest, n, size)
		}
	}
	t.Error("the machine stood still each time")
}

// readSlowly asks for the answer of TestHTTPSendTimeout, and takes three seconds to read it. It
// returns how much came, and the longest time between two reads.
func readSlowly(t *testing.T, conn net.Conn) (n int, longest time.Duration) {
	talk(t, conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 OK\r\n")
	last := time.Now()
	for p := make([]byte, 1<<20); ; time.Sleep(60 * time.Millisecond) {
		k, err := io.ReadFull(conn, p)
		longest = max(longest, time.Since(last))
		last = time.Now()
		if n += k; err != nil {
			return n, longest
		}
	}
}

// Clients that do not close their side delay the end of the program by --shutdown-timeout if
// they have not got their answer, and otherwise not at all.
func TestHTTPShutdownTimeout(t *testing.T) {
	backend := serveBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			w.Write(make([]byte, 50_000_000)) // more than the system takes
		}
	})
	p, address := serveHTTP(t, "--proxy", backend, "--shutdown-timeout", "1h")
	for range 3 {
		talk(t, dial(t, address), "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n")
	}
	dial(t, address) // sends nothing
	p.stop(syscall.SIGTERM, 0)

	p, address = serveHTTP(t, "--proxy", backend, "--shutdown-timeout", "700ms")
	talk(t, dial(t, address), "GET /large HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n")
	p.stop(syscall.SIGTERM, 0)
	if want := "cut off clients"; !strings.Contains(p.stderr(), want) {
		t.Errorf("no %q in\n%s", want, p.stderr())
	}
}
