package redis

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/resp"
	"github.com/rondo-go/rondo/rondotest"
)

// longPipeline is a pipeline in which some requests are longer than any buffer.
func longPipeline() []byte {
	var p []byte
	long := func(c string, n int) string { return strings.Repeat(c, n) }
	p = resp.AppendRequest(p, "SET", "a", long("x", 200_000))
	p = resp.AppendRequest(p, "STRLEN", "a")
	p = resp.AppendRequest(p, "APPEND", "a", long("y", 70_000))
	p = resp.AppendRequest(p, "MSET", "b", long("z", 80_000), "c", "short", "d", long("w", resp.LongArgument), "e", "")
	p = resp.AppendRequest(p, "MULTI")
	p = resp.AppendRequest(p, "SET", "f", long("v", 100_000))
	p = resp.AppendRequest(p, "EXEC")
	p = resp.AppendRequest(p, "SETRANGE", "a", "199990", long("r", 90_000))
	p = resp.AppendRequest(p, "GETSET", "b", long("u", 66_000))
	p = resp.AppendRequest(p, slices.Concat([]string{"EXISTS"}, slices.Repeat([]string{"a"}, 20_000))...)
	p = resp.AppendRequest(p, "SETRANGE", "d", "5", "inside")
	p = resp.AppendRequest(p, "MSET", "g", long("t", 1_500_000), "h", long("s", 300_000))
	p = resp.AppendRequest(p, "GET", "h")
	p = resp.AppendRequest(p, "MGET", "a", "b", "c", "d", "e", "f")
	return resp.AppendRequest(p, "QUIT")
}

func TestLongRequestsInAnySplit(t *testing.T) {
	in := longPipeline()
	whole := newBench(t, &Server{})
	want := whole.feed(whole.connect("a"), in) // complete, so never taken as long ones
	if !strings.Contains(want, "\r\n:20000\r\n") || !strings.HasSuffix(want, "+OK\r\n") {
		t.Fatalf("%d bytes of replies: %.100q", len(want), want)
	}
	for _, piece := range []int{1 << 20, 64 << 10, 17 << 10, 4096, 1000} {
		b := newBench(t, &Server{})
		pieces := slices.Repeat([]int{piece}, len(in)/piece)
		if got := b.feed(b.connect("a"), in, pieces...); got != want {
			t.Errorf("in pieces of %d: %d bytes of replies, want %d", piece, len(got), len(want))
		}
	}
}

func TestNetworkLongRequests(t *testing.T) {
	in := longPipeline()
	b := newBench(t, &Server{})
	want := b.feed(b.connect("a"), in)
	seeds(t, 8, func(t *testing.T, net *rondotest.Network, loops int) {
		serve(t, net, loops, &Server{})
		other := dial(t, net) // so that the next one is served by another loop
		c := dial(t, net)
		c.Send(string(in))
		c.Expect(want)
		c.ExpectEOF()
		other.do("PING", "+PONG")
	})
}

// The memory, and so the copying, of a request is proportional to its length, even
// if it arrives in small pieces.
func TestLongRequestsAreLinear(t *testing.T) {
	pairs := []string{"MSET"}
	for i := range 50_000 {
		pairs = append(pairs, fmt.Sprintf("%010d", i), "vvvvvvvvvv")
	}
	for name, in := range map[string][]byte{
		"MSET of many pairs": resp.AppendRequest(nil, pairs...),
		"a long value":       resp.AppendRequest(nil, "SET", "k", strings.Repeat("x", 8<<20)),
		"many arguments":     resp.AppendRequest(nil, slices.Concat([]string{"EXISTS"}, slices.Repeat([]string{"k"}, 200_000))...),
	} {
		b := newBench(t, &Server{})
		f := b.connect("a")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var held []byte
		taken, most := 0, 0
		for chunk := range slices.Chunk(in, 16<<10) {
			held = append(held, chunk...)
			n := b.send(f, held)
			taken += n
			held = held[:copy(held, held[n:])]
			most = max(most, len(held))
		}
		runtime.ReadMemStats(&after)
		if got := f.take(); taken != len(in) || got == "" || got[0] == '-' {
			t.Errorf("%s: %d bytes of %d were taken: %q", name, taken, len(in), got)
		}
		if most > 80<<10 {
			t.Errorf("%s: %d bytes waited to be taken", name, most)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > uint64(16*len(in)) {
			t.Errorf("%s: %d bytes were allocated for %d", name, allocated, len(in))
		}
	}
}

// The store keeps the memory that a long value was received into.
func TestLongValuesAreNotCopied(t *testing.T) {
	b := newBench(t, &Server{})
	f := b.connect("a")
	const size = 32 << 20
	in := resp.AppendRequest(nil, "SET", "k", strings.Repeat("x", size))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for chunk := range slices.Chunk(in, 64<<10) {
		if n := b.send(f, chunk); n != len(chunk) {
			t.Fatalf("%d bytes of %d were taken", n, len(chunk))
		}
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > size*3/2 {
		t.Errorf("%d bytes were allocated for a value of %d", allocated, size)
	}
	clear(in)
	b.script(`
		ECHO x => +OK $1 x
		STRLEN k => :33554432
		GETRANGE k 33554430 -1 => $2 xx
	`)
}

// client-query-buffer-limit also counts the memory of a long request.
func TestLongRequestsAreBounded(t *testing.T) {
	for _, in := range [][]byte{
		[]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000\r\n"),
		bytes.Join([][]byte{[]byte("*1000000\r\n"), bytes.Repeat([]byte("$1\r\nk\r\n"), 100_000)}, nil),
		bytes.Join([][]byte{[]byte("*100\r\n"), bytes.Repeat([]byte("$300000\r\n"+strings.Repeat("x", 300_000)+"\r\n"), 5)}, nil),
	} {
		for loops := 1; loops <= 3; loops += 2 {
			net := rondotest.New(t, rondotest.Options{Seed: 1})
			s := &Server{}
			serve(t, net, loops, s)
			a := dial(t, net)
			a.do("CONFIG SET client-query-buffer-limit 1mb", "+OK")
			for _, c := range []peer{a, dial(t, net), dial(t, net)} {
				c.Send(string(in))
				c.ExpectEOF()
			}
			net.Close()
		}
	}
}

// A protocol error within a long request, or one caused by its limits, is found
// where it is.
func TestNetworkErrorsInLongRequests(t *testing.T) {
	begin := "*4\r\n$4\r\nMSET\r\n$1\r\nk\r\n$100000\r\n" + strings.Repeat("x", 100_000) + "\r\n"
	seeds(t, 4, func(t *testing.T, net *rondotest.Network, loops int) {
		serve(t, net, loops, &Server{})
		for range 2 {
			c := dial(t, net)
			c.Send("PING\r\n" + begin + "+")
			c.Send("\r\n")
			c.Expect("+PONG\r\n-ERR Protocol error: expected '$', got '+'\r\n")
			c.ExpectEOF()
		}
		admin := dial(t, net)
		admin.do("CONFIG SET proto-max-bulk-len 1mb", "+OK")
		for range 2 {
			c := dial(t, net)
			c.Send(begin + "$2000000\r\n")
			c.Expect("-ERR Protocol error: invalid bulk length\r\n")
			c.ExpectEOF()
		}
	})
}

// A client may close, or be closed, in the middle of a long value. Nothing of the
// value stays, and other clients are served.
func TestNetworkLongRequestsThatDoNotEnd(t *testing.T) {
	begin := "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000\r\n" + strings.Repeat("x", 300_000)
	for name, end := range map[string]func(c, other peer){
		"half-close": func(c, _ peer) { c.CloseWrite(); c.ExpectEOF() },
		"close":      func(c, _ peer) { c.Close() },
		"reset":      func(c, _ peer) { c.Reset() },
		"timeout":    func(c, other peer) { other.do("CONFIG SET timeout 1", "+OK"); c.ExpectEOF() },
		"KILL": func(c, other peer) {
			other.do("CLIENT KILL SKIPME yes", ":1")
			c.Write([]byte(strings.Repeat("x", 100_000)))
			c.ExpectEOF()
		},
		"none": func(c, _ peer) {
			c.Send(strings.Repeat("x", 1_700_000) + "\r\nGET k\r\nQUIT\r\n")
			c.expect("+OK $2000000 " + strings.Repeat("x", 2_000_000) + " +OK")
			c.ExpectEOF()
		},
	} {
		t.Run(name, func(t *testing.T) {
			seeds(t, 6, func(t *testing.T, net *rondotest.Network, loops int) {
				s := &Server{}
				serve(t, net, loops, s)
				for range loops {
					other, c := dial(t, net), dial(t, net)
					other.do("PING", "+PONG")
					c.Send(begin)
					net.Run()
					end(c, other)
					net.Advance(maxStill)
					if name != "timeout" {
						other.do("PING", "+PONG")
					}
					other.Close()
					c.Close()
					net.Advance(maxStill)
				}
				if n := s.clients.connections; n != 0 {
					t.Errorf("seed %d: %d connections are left", net.Seed(), n)
				}
			})
		})
	}
}
