package resp

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// pieces cuts in at places drawn from cuts. As a connection does, it calls read with
// more and more of the bytes after those already used; without cuts, with all of
// them. A patient caller waits for as many bytes as read wants. read returns how many
// bytes it used, how many it wants, and whether it failed.
func pieces(t *testing.T, in, cuts []byte, patient bool, read func(in []byte) (n, want int, failed bool)) {
	done, have, want := 0, 0, 1
	for i := 0; have < len(in); i++ {
		step := len(in)
		if len(cuts) > 0 {
			step = 1 + int(cuts[i%len(cuts)])
		}
		have = min(have+step, len(in))
		if patient && have-done < want && have < len(in) {
			continue
		}
		for done < have {
			n, w, failed := read(slices.Clone(in[done:have])) // a copy: nothing may depend on its address
			if failed {
				return
			}
			if n < 0 || n > have-done || n == 0 && w <= have-done {
				t.Fatalf("n %d, want %d, of %d bytes", n, w, have-done)
			}
			if want = w; n == 0 {
				break
			}
			done, want = done+n, 1
		}
	}
}

func requestLog(t *testing.T, in, cuts []byte, lim Limits, patient bool) (log []string) {
	var p PartialRequest
	var args [][]byte
	pieces(t, in, cuts, patient, func(in []byte) (int, int, bool) {
		out, n, want, err := p.Read(in, args, lim)
		args = out
		total := 0
		for _, arg := range out {
			total += len(arg)
		}
		if total > n || (err != nil || n == 0) && len(out) > 0 {
			t.Fatalf("%d bytes of arguments in a request of %d, err %v", total, n, err)
		}
		if err != nil {
			log = append(log, "error: "+err.Error())
			return 0, 0, true
		}
		if n > 0 {
			log = append(log, fmt.Sprintf("%d %q", n, out))
		}
		return n, want, false
	})
	return log
}

// longRequestLog is requestLog for a caller that reads incomplete arrays with a
// LongRequest. With direct, the caller receives into the LongRequest's memory.
func longRequestLog(t *testing.T, in, cuts []byte, lim Limits, patient, direct bool) (log []string) {
	var long *LongRequest
	taken := 0 // bytes of the request that long has taken
	pieces(t, in, cuts, patient, func(in []byte) (int, int, bool) {
		var args [][]byte
		var n, want int
		var err error
		if long == nil {
			args, n, want, err = ReadRequest(in, nil, lim)
			if err == nil && n == 0 && in[0] == '*' {
				long = new(LongRequest)
			}
		}
		if long != nil {
			direct := readDirect(t, long, in, lim, direct)
			args, n, want, err = long.Read(in[direct:], lim)
			n += direct
			taken += n
			if held := long.Size() - len(long.sizes)*argumentOverhead; want > 0 && held > taken+lim.withDefaults().Bulk {
				t.Fatalf("%d bytes are held of %d", held, taken)
			}
		}
		switch {
		case err != nil:
			log = append(log, "error: "+err.Error())
			return 0, 0, true
		case want > 0:
			return n, n + want, false // pieces counts from the bytes not taken before
		}
		if long == nil {
			taken = n
		}
		if n > 0 || long != nil {
			log = append(log, fmt.Sprintf("%d %q", taken, args))
		}
		long, taken = nil, 0
		return n, 0, false
	})
	return log
}

// readDirect puts bytes into the Room of a LongRequest, passes them to Read, and
// returns their number.
func readDirect(t *testing.T, r *LongRequest, in []byte, lim Limits, direct bool) int {
	if !direct {
		return 0
	}
	room := r.Room()
	k := copy(room, in)
	if k == 0 {
		return 0
	}
	if _, n, want, err := r.Read(room[:k], lim); n != k || want != 1 || err != nil {
		t.Fatalf("%d bytes of %d were taken, want %d, err %v", n, k, want, err)
	}
	return k
}

// Any split of the bytes gives the same requests and the same error, whether the
// caller tries at every piece or waits for want bytes, and with either type.
func FuzzReadRequest(f *testing.F) {
	for _, in := range []string{
		"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n", "SET \"a\\x41\" 'b'\r\n*0\r\n\r\n", "*1\r\n4\r\n", "*3\r\n$100\r\n",
		"*1\r\n$-1\r\n", "*99999999999\r\n", "*20\r\n$0\r\n\r\n$1\r\nx\r\n", "*1\x00\r\n", "\"a\"b\n", "*1\r\n$17000\r\n",
	} {
		f.Add([]byte(in), []byte{0}, false, 40)
		f.Add([]byte(in), []byte{3, 0, 9}, true, 0)
	}
	long := AppendRequest(nil, "SET", strings.Repeat("k", LongArgument), strings.Repeat("v", LongArgument+1), "PX", "1")
	f.Add(append(long, "PING\r\n"...), []byte{255, 100}, false, 0)
	f.Fuzz(func(t *testing.T, in, cuts []byte, noAuth bool, inline int) {
		lim := Limits{Unauthenticated: noAuth, Inline: inline & 0xff}
		want := requestLog(t, in, nil, lim, false)
		for _, patient := range []bool{false, true} {
			got := requestLog(t, in, cuts, lim, patient)
			if !slices.Equal(got, want) {
				t.Fatalf("cut as %v: %q\nnot cut: %q", cuts, got, want)
			}
			for _, direct := range []bool{false, true} {
				got = longRequestLog(t, in, cuts, lim, patient, direct)
				if !slices.Equal(got, want) {
					t.Fatalf("LongRequest, cut as %v, direct %v: %q\nnot cut: %q", cuts, direct, got, want)
				}
			}
		}
	})
}

func FuzzRequestRoundTrip(f *testing.F) {
	f.Add([]byte("GET"), []byte("key"), []byte("\r\n*1"), 3)
	f.Add([]byte(""), []byte{}, []byte{0}, 1)
	f.Fuzz(func(t *testing.T, a, b, c []byte, count int) {
		sent := [][]byte{a, b, c}[:min(max(count, 1), 3)]
		in := AppendArray(nil, len(sent))
		for _, arg := range sent {
			in = AppendBulk(in, arg)
		}
		got, n, _, err := ReadRequest(in, nil, Limits{})
		if err != nil || n != len(in) || !slices.EqualFunc(got, sent, bytes.Equal) {
			t.Fatalf("%q became %q, n %d of %d, err %v", sent, got, n, len(in), err)
		}
	})
}

func valueLog(t *testing.T, in, cuts []byte, patient bool) (log []string) {
	var p PartialValue
	pieces(t, in, cuts, patient, func(in []byte) (int, int, bool) {
		v, n, want, err := p.Read(in)
		if err != nil {
			log = append(log, "error: "+err.Error())
			return 0, 0, true
		}
		if n > 0 {
			log = append(log, fmt.Sprintf("%d %v", n, v))
		}
		return n, want, false
	})
	return log
}

// Any split of the bytes gives the same values and the same error, and AppendValue
// and ReadValue round-trip each value.
func FuzzReadValue(f *testing.F) {
	for _, in := range []string{
		"+OK\r\n-ERR x\r\n:1\r\n", "$3\r\nabc\r\n$-1\r\n*-1\r\n_\r\n", "*2\r\n%1\r\n+a\r\n#t\r\n~1\r\n,1.5\r\n",
		"|1\r\n+k\r\n:1\r\n>1\r\n(12\r\n", "=7\r\ntxt:abc\r\n!3\r\nERR\r\n", "*1\r\n*1\r\n*1\r\n*0\r\n", "$5\r\nabc\r\nde", ",nan\r\n,inf\r\n",
	} {
		f.Add([]byte(in), []byte{0})
		f.Add([]byte(in), []byte{2, 5})
	}
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		want := valueLog(t, in, nil, false)
		for _, patient := range []bool{false, true} {
			if got := valueLog(t, in, cuts, patient); !slices.Equal(got, want) {
				t.Fatalf("cut as %v: %q\nnot cut: %q", cuts, got, want)
			}
		}
		v, n, _, err := ReadValue(in)
		if err != nil || n == 0 {
			return
		}
		again, m, _, err := ReadValue(AppendValue(nil, v))
		if err != nil || m == 0 || !sameValue(v, again) {
			t.Fatalf("%v became %v, err %v", v, again, err)
		}
	})
}

// sameValue is DeepEqual, with NaN equal to itself.
func sameValue(a, b Value) bool {
	same := func(x, y []Value) bool { return slices.EqualFunc(x, y, sameValue) }
	if !same(a.Elems, b.Elems) || !same(a.Attr, b.Attr) {
		return false
	}
	if math.IsNaN(a.Float) && math.IsNaN(b.Float) {
		a.Float, b.Float = 0, 0
	}
	a.Elems, b.Elems, a.Attr, b.Attr = nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}
