package httpd_test

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/rondotest"
)

var seeds = flag.Int("seeds", 200, "random clients on simulated networks")

// The limits of time hold on a simulated clock, to the second.
func TestSimulatedLimits(t *testing.T) {
	const request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	failed := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/read":
			_, err := io.ReadAll(r.Body)
			failed <- err
		case "/own": // its own limit
			http.NewResponseController(w).SetReadDeadline(time.Date(2000, 1, 1, 0, 30, 0, 0, time.UTC))
			_, err := io.ReadAll(r.Body)
			failed <- err
		case "/write":
			for {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					failed <- err
					return
				}
			}
		}
	})
	for _, c := range []struct {
		name, send string
		after      time.Duration
		fails      bool // the handler's Read or Write, by a deadline
	}{
		{"no request", "", 10 * time.Second, false},
		{"half a head", "GET / HTTP/1.1\r\nHos", 10 * time.Second, false},
		{"idle", request, time.Hour, false},
		{"half a second head", request + "GET /", 10 * time.Second, false},
		{"half a body", "POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello", time.Minute, true},
		{"half a body, SetReadDeadline", "POST /own HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello", 30 * time.Minute, true},
		{"nobody reads the answer", "GET /write HTTP/1.1\r\nHost: a\r\n\r\n", 2 * time.Minute, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := rondotest.New(t, rondotest.Options{})
			s := httpd.Server{HTTP: &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
				WriteTimeout: 2 * time.Minute, IdleTimeout: time.Hour}}
			if strings.Contains(c.name, "Set") {
				s.HTTP.WriteTimeout = 0
			}
			e := n.Serve(":80", s.Open)
			conn := n.Dial("tcp", "127.0.0.1:80")
			began := n.Now()
			conn.Send(c.send)
			gone := func() bool { return e.Stats().Accepted > 0 && e.Stats().Open == 0 }
			switch {
			case c.fails && strings.Contains(c.send, "GET"):
				n.Until(gone)
			default:
				io.Copy(io.Discard, conn)
			}
			if took := n.Now().Sub(began); (took - c.after).Abs() > 2*time.Second { // limits of a crew's connections are looked at each second
				t.Errorf("it took %v, want %v", took, c.after)
			}
			if c.fails {
				if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("the handler got %v", err)
				}
			}
			conn.Close()
			n.Until(gone)
		})
	}
}

// A plan is what a random client sends, and what must come back.
type plan struct {
	out    []byte
	ends   []int // of the requests in out
	bodies []string
}

func newPlan(rng *rand.Rand) *plan {
	p := new(plan)
	var out bytes.Buffer
	for range 1 + rng.IntN(12) {
		body := strings.Repeat(string(rune('a'+rng.IntN(26))), rng.IntN(1<<rng.IntN(16)))
		fmt.Fprintf(&out, "POST /%s HTTP/1.1\r\nHost: a\r\n", strings.Repeat("p", rng.IntN(50)))
		answer := body
		if rng.IntN(4) == 0 {
			out.WriteString("X-Part: yes\r\n")
			answer = body[:min(3, len(body))]
		}
		p.bodies = append(p.bodies, answer)
		if rng.IntN(2) == 0 {
			fmt.Fprintf(&out, "Content-Length: %d\r\n\r\n%s", len(body), body)
		} else {
			out.WriteString("Transfer-Encoding: chunked\r\n\r\n")
			for len(body) > 0 {
				k := min(len(body), 1+rng.IntN(1<<rng.IntN(15)))
				fmt.Fprintf(&out, "%x\r\n%s\r\n", k, body[:k])
				body = body[k:]
			}
			out.WriteString("0\r\n\r\n")
		}
		p.ends = append(p.ends, out.Len())
	}
	p.out = out.Bytes()
	return p
}

// check compares answers with the plan. sent is how many bytes the server may have seen; all
// says that it has seen them, and that every answer must be there.
func (p *plan) check(t *testing.T, answers []byte, sent int, all bool) {
	r := bufio.NewReader(bytes.NewReader(answers))
	for i, want := range p.bodies {
		if p.ends[i] > sent {
			break
		}
		answer, err := http.ReadResponse(r, nil)
		var body []byte
		if err == nil {
			body, err = io.ReadAll(answer.Body)
		}
		if err != nil && !all {
			return // it was cut
		}
		if err != nil || string(body) != want || answer.StatusCode != 200 || answer.Header.Get("X-Read") != fmt.Sprint(len(want)) {
			t.Errorf("answer %d of %d: %d bytes, want %d, %v", i, len(p.bodies), len(body), len(want), err)
			return
		}
	}
	if all && sent == len(p.out) {
		if rest, _ := io.ReadAll(r); len(rest) > 0 {
			t.Errorf("behind the answers: %.100q", rest)
		}
	}
}

// A client of a simulated network sends a plan in pieces, reads when it likes, and ends in
// some way. Answers come in their order with the right bytes, and nothing is left.
func simulatedClient(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	n := rondotest.New(t, rondotest.Options{Seed: seed, Buffer: 1 << (10 + rng.IntN(8)), Faults: rondotest.Harmless(rng.Float64() / 4)})
	var running atomic.Int64
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Add(-1)
		answerRandomly(w, r)
	})
	s := httpd.Server{HTTP: &http.Server{Handler: counted}}
	if rng.IntN(2) == 0 {
		s.HTTP.Handler = httpd.OnLoop(counted)
	}
	e := n.Serve(":80", s.Open)
	c := n.Dial("tcp", "127.0.0.1:80")
	p := newPlan(rng)
	end := rng.IntN(4) // how it ends
	stop := len(p.out)
	if end >= 2 && rng.IntN(4) > 0 {
		stop = rng.IntN(stop + 1)
	}
	var got []byte
	buf := make([]byte, 32<<10)
	read := func() error {
		k, err := c.Read(buf[:1+rng.IntN(len(buf))])
		got = append(got, buf[:k]...)
		return err
	}
	sent := 0
	for until := n.Now().Add(time.Hour); sent < stop; {
		c.SetWriteDeadline(n.Now().Add(time.Duration(rng.IntN(5)) * time.Millisecond))
		k, err := c.Write(p.out[sent:min(stop, sent+1+rng.IntN(1<<rng.IntN(16)))])
		sent += k
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || n.Now().After(until) {
			t.Fatalf("%d bytes of %d: %v", sent, stop, err)
		}
		for c.Buffered() > 0 && rng.IntN(3) > 0 {
			read()
		}
		if rng.IntN(4) == 0 {
			n.Advance(time.Duration(rng.IntN(10)) * time.Millisecond)
		}
	}
	switch end {
	case 0: // half closed: all is answered, then comes the end
		c.CloseWrite()
		for read() == nil {
		}
		p.check(t, got, sent, true)
	case 1: // it stays
		for c.SetReadDeadline(n.Now().Add(time.Minute)); read() == nil; {
		}
		p.check(t, got, sent, true)
	case 2:
		c.Reset()
		p.check(t, got, sent, false)
	case 3:
		p.check(t, got, sent, false)
	}
	c.Close()
	n.Advance(time.Minute)
	if open, handlers := e.Stats().Open, running.Load(); open != 0 || handlers != 0 {
		t.Errorf("%d connections and %d handlers are left", open, handlers)
	}
}

func TestSimulatedClients(t *testing.T) {
	n := uint64(*seeds)
	if testing.Short() {
		n = min(n, 20)
	}
	for seed := range n {
		ok := t.Run(fmt.Sprint(seed+1), func(t *testing.T) { simulatedClient(t, seed+1) })
		if !ok {
			return
		}
	}
}

// An idle time of an hour takes no time to test, and a client sees what net/http's would.
func Example_simulated() {
	n := rondotest.New(nil, rondotest.Options{Seed: 1})
	defer n.Close()
	s := httpd.Server{HTTP: &http.Server{
		IdleTimeout: time.Hour,
		Handler:     http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "Hello, %s!", r.URL.Path[1:]) }),
	}}
	n.Serve(":80", s.Open)

	c := n.Dial("tcp", "127.0.0.1:80")
	fmt.Fprint(c, "GET /loop HTTP/1.1\r\nHost: example.com\r\n\r\n")
	r := bufio.NewReader(c)
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _ := io.ReadAll(answer.Body)
	fmt.Println(answer.Status, string(body))

	began := n.Now()
	_, err = r.ReadByte()
	fmt.Println(err, "after", n.Now().Sub(began).Round(time.Minute))
	// Output:
	// 200 OK Hello, loop!
	// EOF after 1h0m0s
}
