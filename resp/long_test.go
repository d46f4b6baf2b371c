package resp

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// readLong passes input to a LongRequest in pieces of a size, and returns the
// arguments and the bytes after the request.
func readLong(t *testing.T, in []byte, piece int) (args [][]byte, rest []byte, r *LongRequest) {
	t.Helper()
	r = new(LongRequest)
	have, at, want := 0, 0, 1
	for have < len(in) {
		have = min(have+piece, len(in))
		if have-at < want {
			continue
		}
		args, n, more, err := r.Read(in[at:have], Limits{})
		if err != nil {
			t.Fatal(err)
		}
		at += n
		if more == 0 {
			return args, in[at:], r
		}
		if have-at >= LongArgument+64 {
			t.Fatalf("%d bytes are not taken", have-at)
		}
		want = more
	}
	t.Fatal("incomplete")
	return nil, nil, nil
}

func TestLongRequest(t *testing.T) {
	for _, sent := range [][]string{
		{"SET", "k", strings.Repeat("x", 1<<20)},
		{"SET", "k", strings.Repeat("x", LongArgument)},
		{"MSET", "a", strings.Repeat("x", LongArgument-1), "b", strings.Repeat("y", LongArgument+1), "c", "", "d", strings.Repeat("z", 100_000)},
		slices.Repeat([]string{"key"}, 100_000),
		{"", ""},
	} {
		in := append(AppendRequest(nil, sent...), "PING\r\n"...)
		for _, piece := range []int{1 << 30, 64 << 10, 100_003, 4096, 977, 100} {
			args, rest, _ := readLong(t, in, piece)
			if !slices.Equal(words(args), sent) || !bytes.HasPrefix([]byte("PING\r\n"), rest) {
				t.Errorf("%d arguments in pieces of %d: got %d, and %q behind them", len(sent), piece, len(args), rest)
			}
		}
	}
}

// A caller can keep a long argument without keeping anything else. No argument
// shares memory with the input.
func TestLongRequestGivesMemoryAway(t *testing.T) {
	in := AppendRequest(nil, "MSET", "a", strings.Repeat("x", LongArgument), "b", strings.Repeat("y", 500_000))
	args, _, _ := readLong(t, in, 10_000)
	clear(in)
	for i, want := range []string{"MSET", "a", strings.Repeat("x", LongArgument), "b", strings.Repeat("y", 500_000)} {
		if string(args[i]) != want {
			t.Errorf("argument %d is %.20q", i, args[i])
		}
		if len(want) >= LongArgument && cap(args[i]) != len(want) {
			t.Errorf("argument %d of %d bytes has memory of %d", i, len(want), cap(args[i]))
		}
	}
}

// Allocation is at most a few times what has arrived, whatever was announced.
func TestLongRequestMemory(t *testing.T) {
	for _, begin := range []string{"*2\r\n$3\r\nGET\r\n$500000000\r\nx", "*2000000000\r\n$1\r\nx\r\n"} {
		r := new(LongRequest)
		if _, _, want, err := r.Read([]byte(begin), Limits{}); want == 0 || err != nil {
			t.Fatalf("%q: want %d, %v", begin, want, err)
		}
		if c := cap(r.long) + held(r); c > 128<<10 {
			t.Errorf("%q made it take %d bytes", begin, c)
		}
	}
	many := AppendRequest(nil, slices.Repeat([]string{"k"}, 200_000)...)
	for name, in := range map[string][]byte{"one long": AppendRequest(nil, "SET", "k", strings.Repeat("x", 16<<20)), "many short": many} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		readLong(t, in, 16<<10)
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		if most := uint64(10 * len(in)); allocated > most {
			t.Errorf("%s: %d bytes are allocated for a request of %d", name, allocated, len(in))
		}
	}
}

// Bytes received into Room are not copied, and the size of Room also follows what
// has arrived.
func TestLongRequestRoom(t *testing.T) {
	const size = 16 << 20
	r := new(LongRequest)
	begin := fmt.Sprintf("*2\r\n$1\r\nk\r\n$%d\r\n", size)
	if _, n, _, err := r.Read([]byte(begin), Limits{}); n != len(begin) || err != nil || r.Room() != nil {
		t.Fatalf("%d bytes taken, %v, and room for %d", n, err, len(r.Room()))
	}
	r.Read(make([]byte, 1000), Limits{})
	arrived := 1000
	for arrived < size {
		room := r.Room()
		if most := max(longStart, longGrowth*(arrived+1)); len(room) == 0 || arrived < size/32 && len(room) > most {
			t.Fatalf("room for %d bytes when %d of %d have arrived", len(room), arrived, size)
		}
		for i := range room {
			room[i] = byte(arrived + i)
		}
		if _, n, want, err := r.Read(room, Limits{}); n != len(room) || want != 1 || err != nil {
			t.Fatalf("%d bytes of %d taken, want %d, err %v", n, len(room), want, err)
		}
		arrived += len(room)
	}
	if r.Room() != nil {
		t.Error("there is room beyond the argument")
	}
	args, _, want, err := r.Read([]byte("\r\n"), Limits{})
	if len(args) != 2 || want != 0 || err != nil || len(args[1]) != size || cap(args[1]) != size {
		t.Fatalf("%d arguments, want %d, err %v", len(args), want, err)
	}
	for i := 1000; i < size; i++ {
		if args[1][i] != byte(i) {
			t.Fatalf("byte %d is %d", i, args[1][i])
		}
	}
}

// held is the memory of the arguments that are complete.
func held(r *LongRequest) int {
	n := 2 * cap(r.sizes)
	for _, b := range r.blocks {
		n += cap(b)
	}
	return n
}

func TestLongRequestSize(t *testing.T) {
	r := new(LongRequest)
	r.Read([]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\nxyz"), Limits{})
	if got, want := r.Size(), 3+1+100000+2*argumentOverhead; got != want {
		t.Errorf("Size is %d, want %d", got, want)
	}
}

func TestLongRequestErrors(t *testing.T) {
	begin := fmt.Sprintf("*3\r\n$20000\r\n%s\r\n", strings.Repeat("x", 20000))
	for _, c := range []struct{ in, want string }{
		{begin + "4\r\n", errNoDollar('4').Error()},
		{begin + "$-1\r\n", errBulkLength.Error()},
		{begin + "$" + strings.Repeat("1", 70000), errBulkLine.Error()},
		{begin + "$999999999999\r\n", errBulkLength.Error()},
		{"*x\r\n", errMultibulkLength.Error()},
	} {
		for piece := 1000; piece < 200_000; piece *= 3 {
			r := new(LongRequest)
			var err error
			at := 0
			for have := 0; have < len(c.in) && err == nil; {
				have = min(have+piece, len(c.in))
				var n int
				_, n, _, err = r.Read([]byte(c.in[at:have]), Limits{})
				at += n
			}
			if err == nil || err.Error() != c.want {
				t.Errorf("%.30q in pieces of %d: %v, want %s", c.in, piece, err, c.want)
			}
		}
	}
}

func TestIsLong(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int
		long bool
	}{
		{"*1\r\n", 5, false}, {"*1\r\n$70000\r\n", 70_016, true}, {"", 70_000, false},
		{strings.Repeat("x", 65_000), 70_000, false}, {"*2\r\n$60000\r\n" + strings.Repeat("x", 70_000), 70_014, true},
	} {
		if IsLong([]byte(c.in), c.want) != c.long {
			t.Errorf("IsLong(%.20q, %d) is %v", c.in, c.want, !c.long)
		}
	}
}
