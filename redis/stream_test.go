package redis

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/resp"
)

func TestStreams(t *testing.T) {
	newBench(t, &Server{}).script(`
		XADD s 1-1 a 1 b x => $3 1-1
		XADD s 1-* a 2 b y => $3 1-2
		XADD s 1-1 a 2 => -ERR The ID specified in XADD is equal or smaller than the target stream top item
		XADD s * a 3 => $15 1700000000000-0
		XADD s * a 3 => $15 1700000000000-1
		XADD s MAXLEN 2 2000000000000-0 c 4 => $15 2000000000000-0
		XRANGE s - + => *2 *2 $15 1700000000000-1 *2 $1 a $1 3 *2 $15 2000000000000-0 *2 $1 c $1 4
		XLEN s => :2
		XDEL s 2000000000000-0 1-1 => :1
		XADD s * a 5 => $15 2000000000000-1
		OBJECT ENCODING s => $6 stream
		TYPE s => +stream
		LPUSH s x => -WRONGTYPE Operation against a key holding the wrong kind of value
		XTRIM s MAXLEN 0 => :2
		XLEN s => :0
		EXISTS s => :1
	`)
}

// Clients that wait for entries of a group are told when the stream goes, in every way.
func TestBlockedGroupReadersAreTold(t *testing.T) {
	const lost = "-UNBLOCKED the stream key no longer exists"
	for _, x := range []struct{ name, script, want string }{
		{"DEL", "c: DEL s => :1", lost},
		{"SET", "c: SET s x => +OK", lost},
		{"RENAME", "c: RENAME s other => +OK", lost},
		{"MOVE", "c: MOVE s 3 => :1", lost},
		{"FLUSHALL", "c: FLUSHALL => +OK", lost},
		{"SWAPDB", "c: SWAPDB 0 5 => +OK", lost},
		{"EXPIRE", "c: PEXPIRE s 0 => :1", lost},
		{"late EXPIRE", "c: PEXPIRE s 10 => :1\n+20ms\nc: GET s => $-1", lost},
		{"transaction", "c: MULTI => +OK\nc: DEL s => +QUEUED\nc: SADD s x => +QUEUED\nc: EXEC => *2 :1 :1", lost},
		{"DESTROY", "c: XGROUP DESTROY s g => :1", "-NOGROUP the consumer group this client was blocked on no longer exists"},
		{"XDEL", "c: XDEL s 1-1 => :1", ""},
		{"XADD", "c: XADD s 2-1 a b => $3 2-1", "*1 *2 $1 s *1 *2 $3 2-1 *2 $1 a $1 b"},
	} {
		t.Run(x.name, func(t *testing.T) {
			b := newBench(t, &Server{})
			b.script(`
				c: XADD s 1-1 a b => $3 1-1
				c: XGROUP CREATE s g $ => +OK
				a: XREADGROUP GROUP g alice BLOCK 0 STREAMS s > =>
				b: XREAD BLOCK 0 STREAMS s $ =>
			` + x.script + `
				a? => ` + x.want)
			if x.name != "XADD" {
				b.script(`b? =>`)
			}
			b.s.clients.end((*client).close)
			b.nobodyWaits()
		})
	}
}

// A timer that deletes an expired stream, or evicts it, tells them too.
func TestBlockedGroupReadersAndTimers(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		c: XADD s 1-1 a b => $3 1-1
		c: XGROUP CREATE s g $ => +OK
		c: PEXPIRE s 10 => :1
		a: XREADGROUP GROUP g alice BLOCK 0 STREAMS s > =>
		+20ms
	`)
	b.s.tick()
	b.s.space.expire(100)
	b.s.published()
	b.script(`a? => -UNBLOCKED the stream key no longer exists`)
	b.nobodyWaits()
}

func TestBlockedStreamReaders(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		d: XGROUP CREATE s g $ MKSTREAM => +OK
		a: XREADGROUP GROUP g alice COUNT 1 BLOCK 0 STREAMS s > =>
		b: XREADGROUP GROUP g bob BLOCK 1000 STREAMS s > =>
		c: XREAD BLOCK 0 COUNT 1 STREAMS none s 0 5-5 =>
		d: MULTI => +OK
		d: XADD s 1-1 a 1 => +QUEUED
		d: XADD s 1-2 a 2 => +QUEUED
		d: XADD s 1-3 a 3 => +QUEUED
		d: EXEC => *3 $3 1-1 $3 1-2 $3 1-3
		a? => *1 *2 $1 s *1 *2 $3 1-1 *2 $1 a $1 1
		b? => *1 *2 $1 s *2 *2 $3 1-2 *2 $1 a $1 2 *2 $3 1-3 *2 $1 a $1 3
		c? =>
		d: XADD s 5-6 a 4 => $3 5-6
		c? => *1 *2 $1 s *1 *2 $3 5-6 *2 $1 a $1 4
		d: XPENDING s g => *4 :3 $3 1-1 $3 1-3 *2 *2 $5 alice $1 1 *2 $3 bob $1 2
		a: HELLO 3 => %7...
		a: XREAD BLOCK 50 STREAMS s $ =>
		+50ms
		a? => _
		a: XREAD BLOCK 0 STREAMS s $ =>
		d: XADD s MAXLEN 0 6-1 a 5 => $3 6-1
		a? => %1 $1 s *0
		a: MULTI => +OK
		a: XREAD BLOCK 0 STREAMS s $ => +QUEUED
		a: EXEC => *1 _
	`)
	b.nobodyWaits()
}

func TestStreamEvents(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		CONFIG SET notify-keyspace-events Et => +OK
		b: PSUBSCRIBE * => *3 $10 psubscribe $1 * :1
		XADD s MAXLEN 1 1-1 a b => $3 1-1
		XADD s MAXLEN 1 1-2 a b => $3 1-2
		XGROUP CREATE s g 0 => +OK
		XREADGROUP GROUP g c STREAMS s > => *1...
		XGROUP CREATECONSUMER s g d => :1
		XGROUP DELCONSUMER s g d => :0
		XGROUP SETID s g 0 => +OK
		XSETID s 5-5 => +OK
		XDEL s 1-2 => :1
		XTRIM s MAXLEN 0 => :0
		XGROUP DESTROY s g => :1
	`)
	got := b.connect("b").take()
	var events []string
	for _, word := range strings.Fields(got) {
		if name, ok := strings.CutPrefix(word, "__keyevent@0__:"); ok {
			events = append(events, name)
		}
	}
	want := "xadd xadd xtrim xgroup-create xgroup-createconsumer xgroup-createconsumer xgroup-delconsumer xgroup-setid xsetid xdel xgroup-destroy"
	if strings.Join(events, " ") != want {
		t.Errorf("events are\n%s, want\n%s", strings.Join(events, " "), want)
	}
}

// manyPending makes a group with n pending entries of consumer c.
func (b *bench) manyPending(n int) {
	f := b.connect("a")
	var in []byte
	for i := range n {
		in = resp.AppendRequest(in, "XADD", "s", strconv.Itoa(i+1)+"-1", "f", "v")
		if len(in) > 32<<10 {
			b.send(f, in)
			in, f.out = in[:0], f.out[:0]
		}
	}
	b.send(f, in)
	f.out = nil
	b.do("a", "XGROUP", "CREATE", "s", "g", "0")
	b.do("a", "XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
}

// A group with very many pending entries takes little memory, and is destroyed in slices.
func TestManyPendingEntries(t *testing.T) {
	const n = 200_000
	b := newBench(t, &Server{})
	b.manyPending(n)
	b.script(`
		XLEN s => :200000
		XPENDING s g => *4 :200000 $3 1-1 $8 200000-1 *1 *2 $1 c $6 200000
		XPENDING s g 150000 + 1 c => *1 *4 $8 150000-1 $1 c :0 :1
		XAUTOCLAIM s g d 0 199999 COUNT 1 JUSTID => *3 $8 200000-1 *1 $8 199999-1 *0
		XCLAIM s g d 0 100000-1 JUSTID => *1 $8 100000-1
		XPENDING s g - + 5 d => *2 *4 $8 100000-1 $1 d :0 :1 *4 $8 199999-1 $1 d :0 :1
	`)
	memory := func() int64 { return b.s.space.store.Memory().Used }
	waiting := func() int64 { return b.s.space.store.Memory().Waiting }
	before := memory()
	if most := int64(n * 90); before > most {
		t.Errorf("%d bytes for %d entries that are pending", before, n)
	}
	b.script(`XGROUP DESTROY s g => :1`)
	if waiting() < before/2 {
		t.Errorf("%d bytes of %d wait to be freed", waiting(), before)
	}
	b.drain()
	if now := memory(); now > before/2 {
		t.Errorf("%d bytes of %d are left", now, before)
	}
}

// A long reply goes out in pieces.
func TestStreamRepliesSpill(t *testing.T) {
	b := newBench(t, &Server{})
	b.manyPending(50_000)
	for _, request := range [][]string{
		{"XRANGE", "s", "-", "+"}, {"XREVRANGE", "s", "+", "-"}, {"XREAD", "STREAMS", "s", "0"}, {"XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", "0"},
		{"XPENDING", "s", "g", "-", "+", "50000"}, {"XINFO", "STREAM", "s", "FULL", "COUNT", "0"}, {"XAUTOCLAIM", "s", "g", "d", "0", "-", "COUNT", "50000"},
	} {
		f := b.connect("a")
		f.most = 0
		b.send(f, resp.AppendRequest(nil, request...))
		if len(f.out) < 1_000_000 || f.most > 2*spillSize {
			t.Errorf("%q: %d bytes, up to %d of them at once", request, len(f.out), f.most)
		}
		if _, n, _, err := resp.ReadValue(f.out); err != nil || n != len(f.out) {
			t.Errorf("%q: %d of %d bytes are the reply: %v", request, n, len(f.out), err)
		}
		f.out = nil
	}
}

// What RESTORE gets is what DUMP has returned, also of groups, and nonsense is refused.
func TestStreamDump(t *testing.T) {
	b := newBench(t, &Server{})
	b.manyPending(300)
	b.script(`
		XGROUP CREATE s empty $ => +OK
		XDEL s 7-1 20-1 => :2
		XACK s g 9-1 => :1
	`)
	payload := b.reply("DUMP", "s").Str
	payload = bytes.Clone(payload)
	if got := b.do("a", "RESTORE", "copy", "0", string(payload)); got != "+OK" {
		t.Fatal(got)
	}
	for _, request := range []string{"XRANGE %s - +", "XINFO STREAM %s FULL COUNT 0", "DUMP %s", "DEBUG DIGEST-VALUE %s"} {
		x, y := b.do("a", strings.Fields(fmt.Sprintf(request, "s"))...), b.do("a", strings.Fields(fmt.Sprintf(request, "copy"))...)
		if x != y {
			t.Errorf("%s differs after RESTORE:\n%.300s\n%.300s", request, x, y)
		}
	}
	b.script(`
		DEL s copy => :2
		RESTORE bad 0 "\x13\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01g\x00\x00\x00\x01AAAAAAAABBBBBBBBCCCCCCCC\x01\x00\n\x00........" => -ERR DUMP payload version or checksum are wrong
	`)
	b.drain()
	if used := b.s.space.store.Memory(); used.Used > 4000 {
		t.Errorf("%+v", used)
	}
}

func TestStreamDefragAndExpiry(t *testing.T) {
	b := newBench(t, &Server{})
	b.manyPending(5000)
	b.do("a", "PEXPIRE", "s", "100")
	b.drain()
	b.now = b.now.Add(time.Second)
	b.script(`EXISTS s => :0`)
	b.drain()
	if used := b.s.space.store.Memory(); used.Used > 4000 {
		t.Errorf("%+v", used)
	}
}

func BenchmarkStreams(b *testing.B) {
	for _, request := range []string{"XADD s * field value", "XADD m MAXLEN ~ 1000 * field value", "XRANGE full - + COUNT 100",
		"XREADGROUP GROUP g c COUNT 10 STREAMS full >", "XPENDING full g - + 10"} {
		b.Run(strings.ReplaceAll(request, " ", "_"), func(b *testing.B) {
			w := newBench(b, &Server{})
			for i := range 20_000 {
				w.do("a", "XADD", "full", strconv.Itoa(i+1)+"-1", "field", "value")
			}
			w.do("a", "XGROUP", "CREATE", "full", "g", "0")
			if strings.HasPrefix(request, "XPENDING") {
				w.do("a", "XREADGROUP", "GROUP", "g", "c", "STREAMS", "full", ">")
			}
			f := w.connect("a")
			in, n := []byte(request+"\r\n"), 0
			b.ReportAllocs()
			for b.Loop() {
				w.send(f, in)
				f.out = f.out[:0]
				if n++; n%1000 == 0 && request[1:10] == "READGROUP" {
					w.do("a", "XGROUP", "SETID", "full", "g", "0")
				}
			}
		})
	}
}

// XSETID may set the last ID to one before those of deleted entries, which stay in their blocks.
// What is added then is found, in each way.
func TestXsetidBehindDeletedEntries(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		XADD s 1-1 a 1 => $3 1-1
		XADD s 5-1 a 2 => $3 5-1
		XDEL s 5-1 => :1
		XSETID s 2-1 => +OK
		XADD s 3-1 a 3 => $3 3-1
		XRANGE s - 4 => *2 *2 $3 1-1 *2 $1 a $1 1 *2 $3 3-1 *2 $1 a $1 3
		XREVRANGE s 4 - => *2 *2 $3 3-1 *2 $1 a $1 3 *2 $3 1-1 *2 $1 a $1 1
		XRANGE s 3-1 3-1 => *1 *2 $3 3-1 *2 $1 a $1 3
		XADD s 5-1 a 4 => $3 5-1
		XRANGE s 4 + => *1 *2 $3 5-1 *2 $1 a $1 4
		XGROUP CREATE s g 0 => +OK
		XREADGROUP GROUP g c STREAMS s > => *1 *2 $1 s *3 *2 $3 1-1 *2 $1 a $1 1 *2 $3 3-1 *2 $1 a $1 3 *2 $3 5-1 *2 $1 a $1 4
		XDEL s 3-1 => :1
		XTRIM s MINID 4 => :1
		XDEL s 5-1 => :1
		XLEN s => :0
	`)
	// A block of deleted entries alone may stay, too: it begins with an ID that is greater.
	b.script(`
		XADD t 5-1 a 1 => $3 5-1
		XADD t 5-2 a 1 => $3 5-2
		XDEL t 5-2 => :1
		XTRIM t MINID 5-2 => :1
		XSETID t 3-1 => +OK
		XADD t 4-1 a 2 => $3 4-1
		XRANGE t 4-1 4-1 => *1 *2 $3 4-1 *2 $1 a $1 2
		XDEL t 4-1 => :1
	`)
}

// What DUMP returns of numbers that have overflown, RESTORE takes.
func TestStreamNumbersThatOverflow(t *testing.T) {
	const most = "9223372036854775807"
	b := newBench(t, &Server{})
	b.script(`
		XADD s 1-1 a b => $3 1-1
		XSETID s 1-1 ENTRIESADDED ` + most + ` => +OK
		XADD s 2-1 a b => $3 2-1
		XGROUP CREATE s g 0 ENTRIESREAD ` + most + ` => +OK
		XREADGROUP GROUP g c STREAMS s > => *1...
		XCLAIM s g c 0 1-1 RETRYCOUNT ` + most + ` JUSTID => *1 $3 1-1
		XCLAIM s g c 0 1-1 => *1...
	`)
	payload := string(bytes.Clone(b.reply("DUMP", "s").Str))
	if got := b.do("a", "RESTORE", "t", "0", payload); got != "+OK" {
		t.Fatal(got)
	}
	for _, request := range []string{"XINFO STREAM %s FULL", "XPENDING %s g - + 10"} {
		x, y := b.do("a", strings.Fields(fmt.Sprintf(request, "s"))...), b.do("a", strings.Fields(fmt.Sprintf(request, "t"))...)
		if x != y {
			t.Errorf("%s differs after RESTORE:\n%s\n%s", request, x, y)
		}
	}
}

// A client may ask for new entries of a key several times at once: each time gets some.
func TestNewEntriesOfAKeySeveralTimes(t *testing.T) {
	b := newBench(t, &Server{})
	b.manyPending(5)
	for _, x := range []struct {
		count, times int
		want         []int
	}{
		{1, 7, []int{1, 1, 1, 1, 1}}, {2, 7, []int{2, 2, 1}}, {2, 2, []int{2, 2}}, {5, 3, []int{5}}, {4, 3, []int{4, 1}}, {0, 3, []int{5}}, {6, 2, []int{5}},
	} {
		b.do("a", "XGROUP", "SETID", "s", "g", "0")
		args := []string{"XREADGROUP", "GROUP", "g", "c", "COUNT", strconv.Itoa(x.count), "STREAMS"}
		args = append(args, slices.Repeat([]string{"s"}, x.times)...)
		var got []int
		for _, key := range b.reply(append(args, slices.Repeat([]string{">"}, x.times)...)...).Elems {
			got = append(got, len(key.Elems[1].Elems))
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("COUNT %d, %d times: %v entries, want %v", x.count, x.times, got, x.want)
		}
	}
}

// XGROUP SETID goes back within a block: the group gets all entries behind.
func TestGroupGoesBackWithinABlock(t *testing.T) {
	newBench(t, &Server{}).script(`
		XADD s 1-1 a b => $3 1-1
		XADD s 2-1 a b => $3 2-1
		XADD s 3-1 a b => $3 3-1
		XADD s 4-1 a b => $3 4-1
		XGROUP CREATE s g 0 => +OK
		XREADGROUP GROUP g c COUNT 3 STREAMS s > => *1...
		XGROUP SETID s g 1-1 => +OK
		XREADGROUP GROUP g c COUNT 1 STREAMS s > => *1 *2 $1 s *1 *2 $3 2-1 *2 $1 a $1 b
		XREADGROUP GROUP g c STREAMS s > => *1 *2 $1 s *2 *2 $3 3-1 *2 $1 a $1 b *2 $3 4-1 *2 $1 a $1 b
	`)
}
