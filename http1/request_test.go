package http1

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestTarget(t *testing.T) {
	for _, c := range []struct {
		line                      string
		form                      Form
		scheme, host, path, query string
	}{
		{"GET / HTTP/1.1", OriginForm, "", "a.example", "/", ""},
		{"GET /a%20b?c?d HTTP/1.1", OriginForm, "", "a.example", "/a%20b", "c?d"},
		{"GET //b/c HTTP/1.1", OriginForm, "", "a.example", "//b/c", ""},
		{"GET http://b:80/c?d HTTP/1.1", AbsoluteForm, "http", "b:80", "/c", "d"},
		{"GET http://b HTTP/1.1", AbsoluteForm, "http", "b", "", ""},
		{"GET http://b?c HTTP/1.1", AbsoluteForm, "http", "b", "", "c"},
		{"CONNECT b:443 HTTP/1.1", AuthorityForm, "", "b:443", "", ""},
		{"OPTIONS * HTTP/1.1", AsteriskForm, "", "a.example", "*", ""},
	} {
		var r Request
		if _, err := r.Parse([]byte(line(c.line)), Rules{}); err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		if r.Form != c.form || string(r.Scheme) != c.scheme || string(r.Host) != c.host || string(r.Path) != c.path || string(r.Query) != c.query {
			t.Errorf("%s: %s, %q, %q, %q, %q", c.line, r.Form, r.Scheme, r.Host, r.Path, r.Query)
		}
	}
}

func TestConnection(t *testing.T) {
	for _, c := range []struct {
		version, connection string
		close, keepAlive    bool
	}{
		{"1.1", "", false, false},
		{"1.1", "close", true, false},
		{"1.1", "Close", true, false},
		{"1.1", "Upgrade , close", true, false},
		{"1.1", "keep-alive", false, false},
		{"1.1", "closed", false, false},
		{"1.1", "a close", false, false},
		{"1.1", "a\r\nConnection: close", true, false},
		{"1.0", "", true, false},
		{"1.0", "Keep-Alive", false, true},
		{"1.0", "keep-alive, close", true, false},
		{"1.2", "", false, false},
	} {
		in := "GET / HTTP/" + c.version + "\r\nHost: a\r\nConnection: " + c.connection + "\r\n\r\n"
		var r Request
		if _, err := r.Parse([]byte(in), Rules{}); err != nil || r.Close != c.close || r.KeepAlive() != c.keepAlive {
			t.Errorf("%q: Close %t, KeepAlive %t, %v", in, r.Close, r.KeepAlive(), err)
		}
		compareRequest(t, []byte(in), Rules{})
	}
	for in, want := range map[string]bool{
		head("Expect: 100-continue"):                     true,
		head("expect: 100-Continue"):                     true,
		head("Expect: 100-continued"):                    false,
		"GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n": false,
	} {
		var r Request
		if _, err := r.Parse([]byte(in), Rules{}); err != nil || r.ExpectContinue != want {
			t.Errorf("%q: %t, %v", in, r.ExpectContinue, err)
		}
	}
}

// A limit is the greatest number that is accepted.
func TestLimits(t *testing.T) {
	in := []byte("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n")
	var r Request
	for _, c := range []struct {
		name     string
		exact    Rules
		tooSmall Rules
		status   int
	}{
		{"Line", Rules{Line: 16}, Rules{Line: 15}, 414},
		{"Head", Rules{Head: len(in)}, Rules{Head: len(in) - 1}, 431},
		{"Fields", Rules{Fields: 2}, Rules{Fields: 1}, 431},
		{"Body", Rules{Body: 7}, Rules{Body: 6}, 413},
	} {
		if n, err := r.Parse(in, c.exact); n != len(in) {
			t.Errorf("%s: %d, %v", c.name, n, err)
		}
		if n, err := r.Parse(in, c.tooSmall); n != 0 || statusOf(err) != c.status {
			t.Errorf("%s: %d, %v, want %d", c.name, n, err, c.status)
		}
	}
	body := "4\r\nabcd\r\n3\r\nefg\r\n0\r\nA: b\r\n\r\n"
	for _, c := range []struct {
		name   string
		rules  Rules
		status int
	}{
		{"Body", Rules{Body: 7}, ok},
		{"Body", Rules{Body: 6}, 413},
		{"Trailer", Rules{Trailer: 8}, ok},
		{"Trailer", Rules{Trailer: 7}, 431},
	} {
		if status, err := outcome([]byte(chunks(body)), c.rules); status != c.status {
			t.Errorf("%s: %v: %d, %v", c.name, c.rules, status, err)
		}
	}
}

// A limit holds as soon as it is reached: a head without an end is not waited for.
func TestLimitsOfIncompleteHeads(t *testing.T) {
	for in, want := range map[string]int{
		"GET /" + strings.Repeat("a", DefaultLine):                 414,
		"GET / HTTP/1.1\r\nA: " + strings.Repeat("a", DefaultHead): 431,
		"GET / HTTP/1.1\r\n" + strings.Repeat("A: b\r\n", 257):     431,
		strings.Repeat("a", DefaultLine+2):                         501,
		strings.Repeat("a", DefaultLine):                           incomplete,
		"GET / HTTP/1.1\r\nA: ":                                    incomplete,
	} {
		if status, err := outcome([]byte(in), Rules{}); status != want {
			t.Errorf("%.30q: %d, %v, want %d", in, status, err, want)
		}
	}
}

// A head that arrives byte by byte costs about two passes, not one for each byte.
func TestPartialIsLinear(t *testing.T) {
	const size = 4 << 20
	rules := Rules{Head: 2 * size, Fields: size}
	for name, text := range map[string]string{
		"long line":   "GET / HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("b", size),
		"short lines": "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("A: b\r\n", size/6),
		"long target": "GET /" + strings.Repeat("a", size),
	} {
		var p Partial
		var r Request
		rules.Line = 2 * size
		in := []byte(text)
		begun := time.Now()
		for have := 64; have <= len(in); have += 64 {
			if n, err := p.Parse(&r, in[:have], rules); n != 0 || err != nil {
				t.Fatal(n, err)
			}
			if time.Since(begun) > 20*time.Second {
				t.Fatalf("%s: %d of %d bytes in 20 s", name, have, len(in))
			}
		}
	}
}

// Into keeps the context and the URL's memory, and takes no memory of the input.
func TestInto(t *testing.T) {
	type key struct{}
	in := []byte("GET /a?b HTTP/1.1\r\nHost: a.example\r\nX-Unknown-name: c\r\nCookie: d\r\nCookie: e\r\n\r\n")
	var r Request
	if _, err := r.Parse(in, Rules{}); err != nil {
		t.Fatal(err)
	}
	req := new(http.Request).WithContext(context.WithValue(context.Background(), key{}, 1))
	if err := r.Into(req); err != nil {
		t.Fatal(err)
	}
	target := req.URL
	if err := r.Into(req); err != nil || req.URL != target || req.Context().Value(key{}) != 1 {
		t.Error("the context or the URL is another one", err)
	}
	clear(in)
	if req.URL.String() != "/a?b" || req.Host != "a.example" || req.Header.Get("X-Unknown-Name") != "c" ||
		strings.Join(req.Header["Cookie"], " ") != "d e" {
		t.Errorf("%v, %v, %v", req.URL, req.Host, req.Header)
	}
	req.Header.Add("X-Unknown-Name", "f") // must not reach into the next value
	if strings.Join(req.Header["Cookie"], " ") != "d e" {
		t.Errorf("%v", req.Header)
	}
	r.Reset()
	if r.Host != nil || cap(r.Fields) < 4 || r.Fields[:1][0].Value != nil {
		t.Errorf("after Reset: %+v", r)
	}
}

// Heads of many fields, known and unknown names in all spellings.
func TestHeaders(t *testing.T) {
	var names []string
	for _, name := range knownNames {
		names = append(names, name, strings.ToLower(name), strings.ToUpper(name), name+"x", "x"+name)
	}
	for at := 0; at < len(names); at += 50 {
		var in bytes.Buffer
		in.WriteString("GET / HTTP/1.1\r\nHost: a\r\n")
		for i, name := range names[at:min(at+50, len(names))] {
			switch strings.ToLower(name) {
			case "host", "content-length", "transfer-encoding", "trailer":
				continue
			}
			in.WriteString(name + ": " + strings.Repeat("v", i) + "\r\n")
		}
		in.WriteString("\r\n")
		var r Request
		if n, err := r.Parse(in.Bytes(), Rules{}); n == 0 {
			t.Fatal(err)
		}
		compareRequest(t, in.Bytes(), Rules{})
	}
}

// The known names are in net/http's spelling, and found.
func TestKnownNames(t *testing.T) {
	for _, name := range knownNames {
		if http.CanonicalHeaderKey(name) != name {
			t.Errorf("%s: net/http writes %s", name, http.CanonicalHeaderKey(name))
		}
		for _, spelling := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			if got := knownName([]byte(spelling)); got != name {
				t.Errorf("%s: %q", spelling, got)
			}
		}
		if got := knownName([]byte(name + "~")); got != "" {
			t.Errorf("%s~: %q", name, got)
		}
	}
}

// Control characters are found at each place of a word, beside each other byte.
func TestControl(t *testing.T) {
	for size := range 20 {
		b := bytes.Repeat([]byte{'a'}, size)
		if at := control(b); at != size {
			t.Errorf("%d letters: %d", size, at)
		}
		for i := range b {
			for c := range 256 {
				b[i] = byte(c)
				want := size
				if c < ' ' || c == 0x7f {
					want = i
				}
				if at := control(b); at != want {
					t.Errorf("%q: %d, want %d", b, at, want)
				}
				if i+1 < size { // a second one behind it
					b[i+1] = '\x01'
					if at := control(b); at != min(want, i+1) {
						t.Errorf("%q: %d, want %d", b, at, min(want, i+1))
					}
					b[i+1] = 'a'
				}
			}
			b[i] = 'a'
		}
	}
}
