package http1

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// feed cuts in at places drawn from cuts. As a connection does, it calls read with more and
// more of the bytes after those already used; without cuts, with all of them. read returns
// how many bytes it used, and whether it failed.
func feed(in, cuts []byte, read func(in []byte) (n int, failed bool)) {
	done, have := 0, 0
	for i := 0; have < len(in); i++ {
		step := len(in)
		if len(cuts) > 0 {
			step = 1 + int(cuts[i%len(cuts)])
		}
		have = min(have+step, len(in))
		for done < have {
			n, failed := read(slices.Clone(in[done:have])) // a copy: nothing may depend on its address
			if failed {
				return
			}
			if n == 0 {
				break
			}
			done += n
		}
	}
}

// bodyLog appends what a Body finds to a log; successive data are one entry.
type bodyLog struct {
	body Body
	data []byte
}

func (l *bodyLog) read(in []byte, log *[]string) (n int, failed bool) {
	data, n, err := l.body.Next(in)
	l.data = append(l.data, data...)
	if err != nil {
		*log = append(*log, fmt.Sprintf("body %q", l.data), fmt.Sprintf("error: %v", err))
		return 0, true
	}
	if l.body.Done() {
		*log = append(*log, fmt.Sprintf("body %q, trailer %q", l.data, l.body.Trailer))
		l.data = nil
	}
	return n, false
}

// streamLog reads a stream of requests, cut into pieces.
func streamLog(in, cuts []byte, rules Rules) (log []string) {
	var p Partial
	var r Request
	var body bodyLog
	feed(in, cuts, func(in []byte) (int, bool) {
		if !body.body.Done() {
			return body.read(in, &log)
		}
		n, err := p.Parse(&r, in, rules)
		again, err2 := r.Parse(in, rules) // from the start: the same
		if n != again || err != err2 {
			log = append(log, fmt.Sprintf("Partial: %d, %v, from the start: %d, %v", n, err, again, err2))
		}
		switch {
		case err != nil:
			log = append(log, "error: "+err.Error())
			return 0, true
		case n == 0:
			return 0, false
		case r.Preface:
			log = append(log, "preface")
			return 0, true
		}
		log = append(log, fmt.Sprintf("%d %s %s %q %q %q %q HTTP/1.%d %q length %d close %t continue %t", n, r.Method, r.Form,
			r.Host, r.Scheme, r.Path, r.Query, r.Minor, r.Fields, r.ContentLength, r.Close, r.ExpectContinue))
		body.body = r.Body()
		return n, false
	})
	if len(body.data) > 0 {
		log = append(log, fmt.Sprintf("half a body %q", body.data))
	}
	return log
}

// responseLog is streamLog for responses to requests with a method.
func responseLog(in, cuts []byte, method string, rules Rules) (log []string) {
	var p Partial
	var r Response
	var body bodyLog
	feed(in, cuts, func(in []byte) (int, bool) {
		if !body.body.Done() {
			return body.read(in, &log)
		}
		n, err := p.ParseResponse(&r, in, rules)
		switch {
		case err != nil:
			log = append(log, "error: "+err.Error())
			return 0, true
		case n == 0:
			return 0, false
		}
		log = append(log, fmt.Sprintf("%d HTTP/1.%d %d %q %q length %d close %t", n, r.Minor, r.Status, r.Reason, r.Fields,
			r.ContentLength(), r.Close))
		body.body = r.Body(method)
		return n, false
	})
	if len(body.data) > 0 {
		log = append(log, fmt.Sprintf("half a body %q", body.data))
	}
	return log
}

// readAll reads a body that is whole in in. n is -1 if it is incomplete or invalid.
func readAll(body *Body, in []byte) (data []byte, n int) {
	for !body.Done() {
		d, k, err := body.Next(in[n:])
		if err != nil || k == 0 {
			return nil, -1
		}
		data, n = append(data, d...), n+k
	}
	return data, n
}

// compareRequest reads a request with http.ReadRequest too, if it is accepted here, and
// wants the same Request, body, trailer fields and rest.
func compareRequest(t *testing.T, in []byte, rules Rules) {
	t.Helper()
	var r Request
	n, err := r.Parse(in, rules)
	if n == 0 || err != nil {
		return
	}
	got, err := r.ToHTTP()
	if err != nil {
		t.Fatalf("%q: ToHTTP: %v", in, err)
	}
	buffered := bufio.NewReader(bytes.NewReader(in))
	want, err := http.ReadRequest(buffered)
	if err != nil {
		t.Fatalf("%q: net/http refuses it: %v", in, err)
	}
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"Method", got.Method, want.Method},
		{"URL", got.URL, want.URL},
		{"Proto", fmt.Sprint(got.Proto, got.ProtoMajor, got.ProtoMinor), fmt.Sprint(want.Proto, want.ProtoMajor, want.ProtoMinor)},
		{"Header", got.Header, want.Header},
		{"ContentLength", got.ContentLength, want.ContentLength},
		{"TransferEncoding", got.TransferEncoding, want.TransferEncoding},
		{"Trailer", got.Trailer, want.Trailer},
		{"Close", got.Close, want.Close},
		{"Host", got.Host, want.Host},
		{"RequestURI", got.RequestURI, want.RequestURI},
		{"NoBody", got.Body == http.NoBody, want.Body == http.NoBody},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Fatalf("%q: %s is %#v, net/http's %#v", in, c.name, c.got, c.want)
		}
	}
	if r.Form != AbsoluteForm && r.Form != AuthorityForm && string(r.Host) != want.Host {
		t.Fatalf("%q: for %q, net/http's %q", in, r.Host, want.Host)
	}
	body := r.Body()
	compareBody(t, in[n:], &body, got.Trailer, buffered, want.Body, func() http.Header { return want.Trailer })
}

// compareBody compares the bodies in the same way. announced are the trailer fields that the
// head announced.
func compareBody(t *testing.T, in []byte, body *Body, announced http.Header, buffered *bufio.Reader, theirs io.Reader, trailer func() http.Header) {
	t.Helper()
	data, n := readAll(body, in)
	if n < 0 {
		return
	}
	want, err := io.ReadAll(theirs)
	if err != nil || !bytes.Equal(data, want) {
		t.Fatalf("%q: body %q, net/http's %q, %v", in, data, want, err)
	}
	fields := make(http.Header)
	maps.Copy(fields, announced)
	AddFields(fields, body.Trailer)
	if len(fields)+len(trailer()) > 0 && !reflect.DeepEqual(fields, trailer()) {
		t.Fatalf("%q: trailer %v, net/http's %v", in, fields, trailer())
	}
	if rest, _ := io.ReadAll(buffered); !bytes.Equal(rest, in[n:]) {
		t.Fatalf("%q: %q remains, net/http has %q", in, in[n:], rest)
	}
}

// seeds adds the cases of the tables, but for very long ones.
func seeds(add func(in []byte)) {
	for _, c := range syntaxCases {
		if len(c.in) < 4096 {
			add([]byte(c.in))
		}
	}
	add([]byte(browserHead + "GET /b HTTP/1.1\r\nHost: b\r\n\r\n"))
	add([]byte(first("3\r\n") + line("GET / HTTP/1.0")))
	add([]byte(trailed("A: b\r\nC: d\r\n\r\n") + trailed("\r\n") + sized("5") + line("GET /")))
}

// Any split of the bytes gives the same requests, bodies and errors, for any limits.
func FuzzAnySplit(f *testing.F) {
	seeds(func(in []byte) {
		f.Add(in, []byte{0}, uint16(0), uint16(0), uint8(0), false)
		f.Add(in, []byte{6, 0, 40}, uint16(200), uint16(30), uint8(3), true)
	})
	f.Fuzz(func(t *testing.T, in, cuts []byte, head, line uint16, fields uint8, bareLF bool) {
		rules := Rules{Line: int(line), Head: int(head), Fields: int(fields), Trailer: int(head) / 4, Body: int64(line) * 4, BareLF: bareLF, NonASCII: bareLF}
		want := streamLog(in, nil, rules)
		if got := streamLog(in, cuts, rules); !slices.Equal(got, want) {
			t.Fatalf("cut as %v: %q\nnot cut: %q", cuts, got, want)
		}
	})
}

// What http.ReadRequest refuses is refused, and what both accept is the same request with
// the same body.
func FuzzAgainstReadRequest(f *testing.F) {
	seeds(func(in []byte) { f.Add(in, false) })
	f.Fuzz(func(t *testing.T, in []byte, lax bool) {
		compareRequest(t, in, Rules{BareLF: lax, NonASCII: lax})
	})
}

// The same for chunked bodies alone, so that mutations do not waste themselves on the head.
func FuzzChunked(f *testing.F) {
	const head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, c := range syntaxCases {
		if _, body, ok := strings.Cut(c.in, "\r\n\r\n"); ok && len(body) < 4096 && strings.Contains(c.in, "chunked") {
			f.Add([]byte(body), []byte{0})
			f.Add([]byte(body), []byte{1, 7})
		}
	}
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		in = append([]byte(head), in...)
		compareRequest(t, in, Rules{})
		if whole, cut := streamLog(in, nil, Rules{}), streamLog(in, cuts, Rules{}); !slices.Equal(whole, cut) {
			t.Fatalf("cut as %v: %q\nnot cut: %q", cuts, cut, whole)
		}
	})
}

// Any split of the bytes gives the same responses, and those that are accepted are
// http.ReadResponse's.
func FuzzResponse(f *testing.F) {
	for _, in := range responseSeeds {
		f.Add([]byte(in), []byte{0}, "GET")
		f.Add([]byte(in), []byte{5}, "HEAD")
	}
	f.Fuzz(func(t *testing.T, in, cuts []byte, method string) {
		if whole, cut := responseLog(in, nil, method, Rules{}), responseLog(in, cuts, method, Rules{}); !slices.Equal(whole, cut) {
			t.Fatalf("cut as %v: %q\nnot cut: %q", cuts, cut, whole)
		}
		compareResponse(t, in, method)
	})
}

func compareResponse(t *testing.T, in []byte, method string) {
	t.Helper()
	var r Response
	n, err := r.Parse(in, Rules{})
	if n == 0 || err != nil {
		return
	}
	buffered := bufio.NewReader(bytes.NewReader(in))
	want, err := http.ReadResponse(buffered, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%q: net/http refuses it: %v", in, err)
	}
	if r.Status != want.StatusCode || r.Minor != want.ProtoMinor {
		t.Fatalf("%q: status %d of HTTP/1.%d, net/http's %d of %s", in, r.Status, r.Minor, want.StatusCode, want.Proto)
	}
	if method == "CONNECT" || r.Status < 200 {
		return // ReadResponse has no tunnels
	}
	body := r.Body(method)
	if body.state == bodyStream {
		data, err := io.ReadAll(want.Body)
		if err != nil || !bytes.Equal(data, in[n:]) {
			t.Fatalf("%q: net/http's body is %q, %v", in, data, err)
		}
		return
	}
	var announced http.Header
	if want.Trailer != nil {
		announced = maps.Clone(want.Trailer)
	}
	compareBody(t, in[n:], &body, announced, buffered, want.Body, func() http.Header { return want.Trailer })
}

// Whatever an answer quotes, it cannot forge a field, or end the head.
func FuzzAppendField(f *testing.F) {
	f.Add("A", "b\r\nSet-Cookie: c")
	f.Add("A: b\r\nC", "d")
	f.Add("Location", "\r\n\r\nbody")
	f.Add("", " \t ")
	f.Fuzz(func(t *testing.T, name, value string) {
		b := AppendField(AppendStatus(nil, 1, 200), name, value)
		end := len(AppendEnd(b))
		var r Response
		n, err := r.Parse(append(AppendEnd(b), "rest"...), Rules{Head: 1 << 20})
		switch {
		case err == errValue || err == errLength || err == errEncoding || err == errHeadSize: // not forged
		case err != nil || n != end || len(r.Fields) > 1:
			t.Fatalf("%q: %d of %d bytes, %q, %v", b, n, end, r.Fields, err)
		case len(r.Fields) == 1 && string(r.Fields[0].Name) != name:
			t.Fatalf("%q: the name is %q", b, r.Fields[0].Name)
		}
	})
}
