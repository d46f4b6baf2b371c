package load

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/rondo-go/rondo/resp"
)

// served is a workload and a server for it.
type served struct {
	Workload
	serve func(requests []byte) (replies []byte)
}

// workloads are some of each kind.
func workloads(t *testing.T) map[string]served {
	t.Helper()
	all := map[string]served{}
	for _, size := range []int{1, 64, 70_000} {
		w, err := Echo(size, 3)
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprint("echo ", size)] = served{w, func(b []byte) []byte { return b }}
		for _, test := range RedisTests {
			for _, keys := range []int{1, 7, 100} {
				for _, zipf := range []float64{0, 1.01} {
					w, err := Redis(test, RedisOptions{Conns: 3, Pipeline: 3, Size: size, Keyspace: keys, Zipf: zipf, Password: "secret"})
					if err != nil {
						t.Fatal(err)
					}
					all[fmt.Sprint(test, " ", size, " of ", keys, " zipf ", zipf)] = served{w, newModel(t).serve}
				}
			}
		}
	}
	return all
}

// prepared passes the connections' preparations to the server, and returns connection 0's
// talk.
func (w served) prepared() Talk {
	var buf []byte
	for id := range 3 {
		if w.Prepare != nil {
			for _, p := range w.Prepare(id) {
				w.serve(p.Requests.Next(&buf, p.Count))
			}
		}
	}
	return w.Talk(0)
}

// model is a Redis server that knows the commands of the workloads.
type model struct {
	t    *testing.T
	keys map[string]string
}

func newModel(t *testing.T) *model { return &model{t, map[string]string{}} }

func (m *model) serve(in []byte) (out []byte) {
	for len(in) > 0 {
		v, n := value(m.t, in)
		in = in[n:]
		args := make([]string, len(v.Elems))
		for i, e := range v.Elems {
			args[i] = string(e.Str)
		}
		out = m.do(out, args)
	}
	return out
}

func value(t *testing.T, in []byte) (resp.Value, int) {
	t.Helper()
	v, n, _, err := resp.ReadValue(in)
	if err != nil || n == 0 {
		t.Fatalf("%.200q is no request: %v", in, err)
	}
	return v, n
}

func (m *model) do(out []byte, args []string) []byte {
	switch {
	case len(args) == 1 && args[0] == "PING":
		return resp.AppendSimple(out, "PONG")
	case len(args) == 2 && args[0] == "AUTH" && args[1] == "secret":
	case len(args) == 2 && args[0] == "GET":
		v, ok := m.keys[args[1]]
		if !ok {
			return resp.AppendNull(out)
		}
		return resp.AppendBulkString(out, v)
	case len(args) == 2 && args[0] == "INCR":
		v, err := strconv.Atoi(m.keys[args[1]])
		if err != nil {
			return resp.AppendError(out, "ERR value is not an integer or out of range")
		}
		m.keys[args[1]] = strconv.Itoa(v + 1)
		return resp.AppendInt(out, int64(v+1))
	case len(args) == 3 && args[0] == "SET", len(args) == 21 && args[0] == "MSET":
		for i := 1; i < len(args); i += 2 {
			m.keys[args[i]] = args[i+1]
		}
	default:
		return resp.AppendError(out, "ERR unknown request")
	}
	return resp.AppendSimple(out, "OK")
}

// check passes the expected bytes to r in pieces, and fails unless they are so many
// replies.
func check(t *testing.T, r Replies, in []byte, replies int, random *rand.Rand) {
	t.Helper()
	for len(in) > 0 {
		piece := in[:1+random.IntN(min(len(in), 1+len(in)/2))]
		n, some, wrong := r.Check(piece, replies)
		if wrong != nil || n != len(piece) {
			t.Fatalf("of %d bytes %d are right: %v", len(piece), n, wrong)
		}
		replies -= some
		in = in[n:]
	}
	if replies != 0 {
		t.Fatalf("%d replies were not noticed", replies)
	}
}

// All connections get the replies they expect from a correct server, in any pieces.
func TestWorkloadsExpectWhatComes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for name, w := range workloads(t) {
		t.Run(name, func(t *testing.T) {
			var buf []byte
			var talks []Talk
			for id := range 3 {
				if w.Prepare != nil {
					for _, p := range w.Prepare(id) {
						requests := p.Requests.Next(&buf, p.Count)
						check(t, p.Replies, w.serve(requests), p.Count, random)
					}
				}
				talks = append(talks, w.Talk(id))
			}
			for round := range 60 {
				talk, n := talks[round%3], 1+random.IntN(3)
				requests := talk.Requests.Next(&buf, n)
				if len(requests) > n*w.RequestSize {
					t.Fatalf("%d requests have %d bytes, more than RequestSize %d", n, len(requests), w.RequestSize)
				}
				check(t, talk.Replies, w.serve(slices.Clone(requests)), n, random)
			}
		})
	}
}

// A byte that is changed anywhere is found, where it is.
func TestMismatchTellsWhere(t *testing.T) {
	for name, w := range workloads(t) {
		t.Run(name, func(t *testing.T) {
			var buf []byte
			replies := w.serve(slices.Clone(w.prepared().Requests.Next(&buf, 3)))
			step := max(1, len(replies)/50)
			for i := 0; i < len(replies); i += step {
				talk := w.prepared()
				bad := slices.Clone(replies)
				bad[i] ^= 0x20
				first, whole := 0, int64(1) // where the reply of byte i begins
				for {
					end := first + replySize(t, name, replies[first:], w.RequestSize)
					if i < end {
						break
					}
					first = end
					whole++
				}
				// Pass some bytes first, so that the difference is not in the first piece.
				cut := i / 2
				n, some, wrong := talk.Replies.Check(bad[:cut], 3)
				if wrong != nil || n != cut {
					t.Fatalf("byte %d is wrong, but of the first %d only %d are right: %v", i, cut, n, wrong)
				}
				_, _, wrong = talk.Replies.Check(bad[cut:], 3-some)
				if wrong == nil {
					t.Fatalf("byte %d is wrong, and not found", i)
				}
				wrong.Reply += int64(some)
				if wrong.Reply != whole || wrong.Byte != i-first {
					t.Fatalf("byte %d of reply %d is wrong, found %v", i-first, whole, wrong)
				}
				at := common(wrong.Got, wrong.Want)
				if max(len(wrong.Got), len(wrong.Want)) > shown || at >= len(wrong.Got) || wrong.Got[at] != bad[i] || wrong.Want[at] != replies[i] {
					t.Fatalf("%q is not shown as wrong, but %v", bad[i], wrong)
				}
			}
		})
	}
}

// replySize is the length of the first reply in in.
func replySize(t *testing.T, name string, in []byte, requestSize int) int {
	if name[:4] == "echo" {
		return requestSize
	}
	_, n := value(t, in)
	return n
}

// Check leaves the bytes after the last outstanding reply.
func TestCheckStopsAtTheLimit(t *testing.T) {
	for name, w := range workloads(t) {
		var buf []byte
		talk := w.prepared()
		two := w.serve(slices.Clone(talk.Requests.Next(&buf, 2)))
		first := replySize(t, name, two, w.RequestSize)
		if n, replies, wrong := talk.Replies.Check(two, 1); n != first || replies != 1 || wrong != nil {
			t.Errorf("%s: with limit 1: %d bytes, %d replies, %v; want %d bytes", name, n, replies, wrong, first)
		}
		if n, replies, wrong := talk.Replies.Check(two[first:], 0); n != 0 || replies != 0 || wrong != nil {
			t.Errorf("%s: with limit 0: %d bytes, %d replies, %v", name, n, replies, wrong)
		}
	}
}

// Different connections and messages have different bytes.
func TestEchoesDiffer(t *testing.T) {
	w, err := Echo(16, 1)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for id := range 100 {
		talk := w.Talk(id)
		for k := range 100 {
			msg := string(talk.Requests.Next(nil, 1))
			where := fmt.Sprintf("message %d of connection %d", k, id)
			if other, ok := seen[msg]; ok {
				t.Fatalf("%s is %s", where, other)
			}
			seen[msg] = where
		}
	}
}

func TestTooMuchInFlight(t *testing.T) {
	if _, err := Echo(MaxInFlight/4, 4); err != nil {
		t.Error(err)
	}
	if _, err := Echo(MaxInFlight/4, 5); err == nil {
		t.Error("too large messages were accepted")
	}
	for _, test := range RedisTests[1:] {
		if _, err := Redis(test, RedisOptions{Conns: 1, Pipeline: 1 << 20, Size: 1000, Keyspace: 1}); err == nil {
			t.Errorf("too large %s requests were accepted", test)
		}
	}
}
