package load

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const (
	getRequest = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	withLength = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nDate: today\r\n\r\nhello world"
	withChunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: x\r\n\r\n"
)

// httpTalk is a talk of requests whose answers have the body.
func httpTalk(t *testing.T, request, body string) Talk {
	t.Helper()
	w, err := HTTP(HTTPOptions{Pipeline: 8, Request: []byte(request), Status: 200, Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	return w.Talk(0)
}

// Answers are taken in any pieces, however their length is told.
func TestHTTPAnswersInPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for name, c := range map[string]struct{ request, answer, body string }{
		"length":  {getRequest, withLength, "hello world"},
		"chunks":  {getRequest, withChunks, "hello world"},
		"both":    {getRequest, withLength + withChunks + withLength, "hello world"},
		"early":   {getRequest, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + withLength, "hello world"},
		"nothing": {getRequest, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""},
		"HEAD":    {"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			talk := httpTalk(t, c.request, c.body)
			each := strings.Count(c.answer, "HTTP/1.1 200")
			for range 200 {
				n := 1 + random.IntN(4)
				check(t, talk.Replies, []byte(strings.Repeat(c.answer, n)), n*each, random)
			}
		})
	}
}

// What is wrong is found, where it is, also behind right answers and in pieces.
func TestHTTPMismatches(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n":                           `at byte 9 of the head: got "HTTP/1.1 404 Not Found`,
		"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello_world":                      `at byte 5 of the body: got "hello_world", want "hello world"`,
		"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello worl":                       `at byte 10 of the body: got "", want "d"`,
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n":                                  `at byte 0 of the body: got "", want "hello world"`,
		"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello world!":                     `at byte 11 of the body: `,
		"-ERR unknown command\r\n":                                                      `at byte 0 of the head, `,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello world\r\n0\r\n\r\n": `at byte 0 of the body, `,
	} {
		for _, cut := range []int{0, 1, 20, len(answer) / 2, len(answer) - 1} {
			talk := httpTalk(t, getRequest, "hello world")
			in := []byte(withLength + answer)
			cut += len(withLength)
			n, replies, wrong := talk.Replies.Check(in[:cut], 8)
			if wrong == nil {
				if n != cut {
					t.Fatalf("%q: %d bytes of %d are right", answer, n, cut)
				}
				var more int
				_, more, wrong = talk.Replies.Check(in[cut:], 8-replies)
				replies += more
			}
			if wrong == nil || replies != 1 || !strings.Contains(wrong.Error(), want) && cut == len(withLength) {
				t.Errorf("%q, cut at %d: %d replies, %v, want %q", answer, cut, replies, wrong, want)
			}
		}
	}
}

func TestHTTPStopsAtTheLimit(t *testing.T) {
	talk := httpTalk(t, getRequest, "hello world")
	two := []byte(withLength + withChunks)
	if n, replies, wrong := talk.Replies.Check(two, 1); n != len(withLength) || replies != 1 || wrong != nil {
		t.Errorf("with limit 1: %d bytes, %d replies, %v", n, replies, wrong)
	}
	if n, replies, wrong := talk.Replies.Check(two, 0); n != 0 || replies != 0 || wrong != nil {
		t.Errorf("with limit 0: %d bytes, %d replies, %v", n, replies, wrong)
	}
	talk = httpTalk(t, getRequest, "hello world")
	talk.Replies.Check(two[:10], 1)
	if n, replies, wrong := talk.Replies.Check(two[10:], 1); n != len(withLength)-10 || replies != 1 || wrong != nil {
		t.Errorf("with limit 1, in pieces: %d bytes, %d replies, %v", n, replies, wrong)
	}
}

// Bodies that differ may be allowed.
func TestHTTPAnyBody(t *testing.T) {
	w, err := HTTP(HTTPOptions{Pipeline: 1, Request: []byte(getRequest), Status: 200, Body: []byte("x"), AnyBody: true})
	if err != nil {
		t.Fatal(err)
	}
	if n, replies, wrong := w.Talk(0).Replies.Check([]byte(withLength+withChunks), 2); n != len(withLength+withChunks) || replies != 2 || wrong != nil {
		t.Errorf("%d bytes, %d replies, %v", n, replies, wrong)
	}
}

func TestHTTPRequestsAreChecked(t *testing.T) {
	for _, request := range []string{"", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\n\r\n", "GET /\r\nHost: a\r\n\r\n"} {
		if _, err := HTTP(HTTPOptions{Pipeline: 1, Request: []byte(request), Status: 200}); err == nil {
			t.Errorf("%q is accepted", request)
		}
	}
	if _, err := HTTP(HTTPOptions{Pipeline: MaxInFlight / 20, Request: []byte(getRequest), Status: 200}); err == nil {
		t.Error("too many requests in flight are accepted")
	}
}

func TestHTTPAllocatesNothing(t *testing.T) {
	for _, answer := range []string{withLength, strings.Replace(withChunks, "X-Sum: x\r\n", "", 1)} {
		talk := httpTalk(t, getRequest, "hello world")
		in := []byte(strings.Repeat(answer, 8))
		halves := slices.Collect(slices.Chunk(in, len(in)/2+7))
		n := testing.AllocsPerRun(100, func() {
			talk.Requests.Next(nil, 8)
			left := 8
			for _, half := range halves {
				_, replies, _ := talk.Replies.Check(half, left)
				left -= replies
			}
			if left != 0 {
				t.Fatalf("%d replies are missing", left)
			}
		})
		if n != 0 {
			t.Errorf("%q: 8 requests make %v allocations", answer, n)
		}
	}
}
