package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A tree is a directory for tests.
type tree struct {
	t   *testing.T
	dir string
}

func newTree(t *testing.T) *tree { return &tree{t, t.TempDir()} }

// write writes a file that was changed at a time.
func (d *tree) write(name, content string, changed time.Time) {
	d.t.Helper()
	file := filepath.Join(d.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Chtimes(file, changed, changed); err != nil {
		d.t.Fatal(err)
	}
}

var (
	early = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	late  = early.Add(time.Hour)
)

func TestHTTPFiles(t *testing.T) {
	d := newTree(t)
	d.write("a.txt", "0123456789", early)
	d.write("sub/index.html", "<p>index</p>", early)
	d.write("list/one.txt", "1", early)
	d.write("list/.secret", "2", early)
	d.write(".git/config", "3", early)
	d.write("a b%.txt", "4", early)
	d.write("page", "<!DOCTYPE html>", early)
	_, address := serveHTTP(t, "--dir", d.dir)
	for _, c := range []struct {
		request string
		status  int
		body    string
	}{
		{"GET /a.txt", 200, "0123456789"},
		{"HEAD /a.txt", 200, ""},
		{"GET /a%20b%25.txt", 200, "4"},
		{"GET /sub/", 200, "<p>index</p>"},
		{"GET /sub", 301, ""},
		{"GET /sub/index.html", 301, ""},
		{"GET /a.txt/", 301, ""},
		{"GET /none", 404, "404 page not found\n"},
		{"GET /a.txt/none", 404, "404 page not found\n"},
		{"GET /" + strings.Repeat("x", 300), 404, "404 page not found\n"},
		{"GET /%00", 404, "404 page not found\n"},
		{"GET /list/.secret", 404, "404 page not found\n"},
		{"GET /.git/config", 404, "404 page not found\n"},
		{"GET /.git/", 404, "404 page not found\n"},
		{"GET /list/../a.txt", 200, "0123456789"},
		{"GET /../../../a.txt", 200, "0123456789"},
		{"POST /a.txt", 405, "405 Method Not Allowed\n"},
		{"DELETE /a.txt", 405, "405 Method Not Allowed\n"},
	} {
		got := ask(t, address, c.request)
		if got.StatusCode != c.status || got.body != c.body {
			t.Errorf("%s: %s, %q, want %d, %q", c.request, got.Status, got.body, c.status, c.body)
		}
	}
	got := ask(t, address, "GET /list/")
	if got.StatusCode != 200 || !strings.Contains(got.body, ">one.txt<") || strings.Contains(got.body, "secret") {
		t.Errorf("a list: %s, %q", got.Status, got.body)
	}
	if got := ask(t, address, "GET /page"); got.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("a page without an extension: %v", got.Header)
	}
	if got := ask(t, address, "HEAD /a.txt"); got.ContentLength != 10 || got.Header.Get("Vary") != "" {
		t.Errorf("HEAD: %v", got.Header)
	}

	_, address = serveHTTP(t, "--dir", d.dir, "--no-list", "--hidden")
	for request, status := range map[string]int{"GET /list/": 403, "GET /list": 403, "GET /": 403, "GET /sub": 301, "GET /sub/": 200, "GET /list/.secret": 200, "GET /.git/config": 200} {
		if got := ask(t, address, request); got.StatusCode != status {
			t.Errorf("%s: %s, want %d", request, got.Status, status)
		}
	}
}

// Ranges and conditions, of a file and of its variant.
func TestHTTPFilesInParts(t *testing.T) {
	d := newTree(t)
	d.write("a.txt", "0123456789", early)
	d.write("b.txt", "not compressed", early)
	d.write("b.txt.gz", "abcdefghij", early)
	_, address := serveHTTP(t, "--dir", d.dir)
	const gzip = "Accept-Encoding: gzip"
	for _, c := range []struct{ path, whole, encoding string }{{"/a.txt", "0123456789", ""}, {"/b.txt", "abcdefghij", "gzip"}} {
		first := ask(t, address, "GET "+c.path, gzip)
		tag, changed := first.Header.Get("ETag"), first.Header.Get("Last-Modified")
		if first.body != c.whole || first.ContentLength != 10 || first.Header.Get("Content-Encoding") != c.encoding || tag == "" || changed == "" {
			t.Errorf("%s: %v, %q", c.path, first.Header, first.body)
		}
		for _, r := range []struct {
			fields string
			status int
			body   string
		}{
			{"Range: bytes=2-4", 206, c.whole[2:5]},
			{"Range: bytes=-3", 206, c.whole[7:]},
			{"Range: bytes=2-4\r\nIf-Range: " + tag, 206, c.whole[2:5]},
			{`Range: bytes=2-4` + "\r\n" + `If-Range: "other"`, 200, c.whole},
			{"Range: bytes=20-", 416, "invalid range: failed to overlap\n"},
			{"If-None-Match: " + tag, 304, ""},
			{`If-None-Match: "other"`, 200, c.whole},
			{"If-Modified-Since: " + changed, 304, ""},
			{`If-Match: "other"`, 412, ""},
		} {
			got := ask(t, address, "GET "+c.path, gzip, r.fields)
			if got.StatusCode != r.status || got.body != r.body {
				t.Errorf("%s with %q: %s, %q, want %d, %q", c.path, r.fields, got.Status, got.body, r.status, r.body)
			}
			if want := c.encoding; r.status/100 == 2 && (got.Header.Get("Content-Encoding") != want || got.ContentLength != int64(len(r.body))) {
				t.Errorf("%s with %q: %v", c.path, r.fields, got.Header)
			}
		}
		got := ask(t, address, "GET "+c.path, gzip, "Range: bytes=0-0,9-9")
		if got.StatusCode != 206 || !strings.HasPrefix(got.Header.Get("Content-Type"), "multipart/byteranges") {
			t.Errorf("%s, two ranges: %s, %v", c.path, got.Status, got.Header)
		}
		if got.Header.Get("Content-Encoding") != "" || got.Header.Get("Vary") != first.Header.Get("Vary") {
			t.Errorf("%s, two ranges, whose frame is in no encoding: %v", c.path, got.Header)
		}
	}
}

// A variant beside a file is sent to clients that accept it.
func TestHTTPFilesCompressed(t *testing.T) {
	d := newTree(t)
	d.write("both.js", "plain", early)
	d.write("both.js.gz", "gzipped", late)
	d.write("both.js.br", "brotli", early)
	d.write("stale.js", "plain", late)
	d.write("stale.js.gz", "gzipped", early)
	d.write("index.html", "<p>plain", early)
	d.write("index.html.gz", "gzipped", early)
	d.write("bare", "<html>plain", early)
	d.write("bare.gz", "\x1f\x8bgzipped", early)
	d.write("only.js.gz", "gzipped", early)
	_, address := serveHTTP(t, "--dir", d.dir)
	tags := make(map[string]string)
	for _, c := range []struct{ path, accept, body, encoding, kind, vary string }{
		{"/both.js", "gzip, deflate, br", "brotli", "br", "text/javascript; charset=utf-8", "Accept-Encoding"},
		{"/both.js", "gzip", "gzipped", "gzip", "text/javascript; charset=utf-8", "Accept-Encoding"},
		{"/both.js", "br;q=0.5, gzip", "gzipped", "gzip", "text/javascript; charset=utf-8", "Accept-Encoding"},
		{"/both.js", "br;q=0, gzip;q=0", "plain", "", "text/javascript; charset=utf-8", "Accept-Encoding"},
		{"/both.js", "", "plain", "", "text/javascript; charset=utf-8", "Accept-Encoding"},
		{"/stale.js", "gzip", "plain", "", "text/javascript; charset=utf-8", ""},
		{"/", "gzip", "gzipped", "gzip", "text/html; charset=utf-8", "Accept-Encoding"},
		{"/bare", "gzip", "\x1f\x8bgzipped", "gzip", "text/html; charset=utf-8", "Accept-Encoding"},
		{"/only.js", "gzip", "404 page not found\n", "", "text/plain; charset=utf-8", ""},
		{"/only.js.gz", "gzip", "gzipped", "", "application/gzip", ""},
	} {
		got := ask(t, address, "GET "+c.path, "Accept-Encoding: "+c.accept)
		h := got.Header
		if got.body != c.body || h.Get("Content-Encoding") != c.encoding || h.Get("Vary") != c.vary || got.ContentLength != int64(len(c.body)) {
			t.Errorf("%s with %q: %q, %v, want %+v", c.path, c.accept, got.body, h, c)
		}
		if kind := h.Get("Content-Type"); kind != c.kind && c.path != "/only.js.gz" { // systems differ
			t.Errorf("%s with %q: the type is %q", c.path, c.accept, kind)
		}
		if tag := h.Get("ETag"); got.StatusCode == 200 {
			if other, has := tags[tag]; has && other != c.body {
				t.Errorf("%q and %q have the tag %s", other, c.body, tag)
			}
			tags[tag] = c.body
		}
	}
	if got := ask(t, address, "HEAD /both.js", "Accept-Encoding: gzip"); got.ContentLength != 7 || got.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("HEAD: %v", got.Header)
	}
	if got := ask(t, address, "HEAD /both.js", "Accept-Encoding: gzip", "If-None-Match: *"); got.StatusCode != 304 || got.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("HEAD with a condition: %s, %v", got.Status, got.Header)
	}

	_, address = serveHTTP(t, "--dir", d.dir, "--no-compressed")
	if got := ask(t, address, "GET /both.js", "Accept-Encoding: gzip"); got.body != "plain" || got.Header.Get("Vary") != "" {
		t.Errorf("with --no-compressed: %q, %v", got.body, got.Header)
	}
}

// Links to the outside are not found, those to the inside are followed.
func TestHTTPFilesStayInside(t *testing.T) {
	outside, d := newTree(t), newTree(t)
	outside.write("secret.txt", "secret", early)
	d.write("sub/a.txt", "inside", early)
	links := map[string]string{"out": outside.dir, "out.txt": filepath.Join(outside.dir, "secret.txt"), "up": "..", "loop": "loop", "in": "sub", "in.txt": "sub/a.txt"}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(d.dir, name)); err != nil {
			t.Logf("this system has no symbolic links: %v", err)
			return
		}
	}
	_, address := serveHTTP(t, "--dir", d.dir)
	for path, want := range map[string]string{
		"/out/secret.txt": "404 page not found\n", "/out.txt": "404 page not found\n", "/up/": "404 page not found\n", "/out/": "404 page not found\n",
		"/loop": "404 page not found\n", "/in/a.txt": "inside", "/in.txt": "inside",
		"/..%2f..%2f" + filepath.Base(outside.dir) + "/secret.txt": "404 page not found\n",
	} {
		if got := ask(t, address, "GET "+path); got.body != want {
			t.Errorf("%s: %s, %q, want %q", path, got.Status, got.body, want)
		}
	}
}

// A large file arrives whole, over TLS too.
func TestHTTPLargeFile(t *testing.T) {
	d := newTree(t)
	content := bytes.Repeat([]byte("0123456789abcdefghijklmnopqrstuvwxyz"), 100_000)
	d.write("large", string(content), early)
	_, address := serveHTTP(t, "--dir", d.dir)
	if got := ask(t, address, "GET /large"); got.body != string(content) {
		t.Errorf("%s, %d bytes", got.Status, len(got.body))
	}
	if got := ask(t, address, "GET /large", "Range: bytes=1000000-2999999"); got.body != string(content[1000000:3000000]) {
		t.Errorf("%s, %d bytes", got.Status, len(got.body))
	}
	f := newKeyFiles(t)
	_, addresses := start(t, f.args("http", "--dir", d.dir, "--access-log", "off")...)
	if got := askWith(t, f.connect(t, addresses[0], false), "GET /large", ""); got.body != string(content) {
		t.Errorf("over TLS: %s, %d bytes", got.Status, len(got.body))
	}
}

func TestPreferred(t *testing.T) {
	both := []string{"br", "gzip"}
	for _, c := range []struct {
		accept  string
		offered []string
		want    string
	}{
		{"", both, ""},
		{"gzip", both, "gzip"},
		{"GZIP", both, "gzip"},
		{"x-gzip", both, "gzip"},
		{"gzip, br", both, "br"},
		{"gzip;q=1.0, br;q=0.999", both, "gzip"},
		{"gzip ; q=0.2 , br ; q=0.3", both, "br"},
		{"*", both, "br"},
		{"*;q=0", both, ""},
		{"br;q=0, *", both, "gzip"},
		{"gzip;q=0", both, ""},
		{"identity, gzip;q=0.5", both, ""},
		{"identity;q=0.5, gzip;q=0.5", both, "gzip"},
		{"identity;q=0", both, ""},
		{"identity;q=0, *", both, "br"},
		{"deflate, zstd", both, ""},
		{"gzip;q=2", both, ""},
		{"gzip;q=nan", both, ""},
		{"gzip;q=", both, ""},
		{",,;q=1, gzip", both, "gzip"},
		{"br", []string{"gzip"}, ""},
	} {
		if got := preferred([]string{c.accept}, c.offered); got != c.want {
			t.Errorf("%q of %v: %q, want %q", c.accept, c.offered, got, c.want)
		}
	}
	if got := preferred([]string{"deflate", "gzip"}, both); got != "gzip" {
		t.Errorf("of two fields: %q", got)
	}
	if got := preferred(nil, both); got != "" {
		t.Errorf("without a field: %q", got)
	}
}

// What a client sends does not reach the log as it is.
func TestAppendEscaped(t *testing.T) {
	for text, want := range map[string]string{"plain": "plain", "a\"b\\c": `a\"b\\c`, "a\n\x7f\xff": `a\x0a\x7f\xff`} {
		if got := string(appendEscaped(nil, text)); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
