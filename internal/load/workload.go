package load

import "fmt"

// A Workload is what connections send, and the replies they expect.
type Workload struct {
	// Name is for reports: "echo", or one of RedisTests.
	Name string
	// Talk returns what connection id, from 0, sends and expects while the load
	// runs.
	Talk func(id int) Talk
	// Prepare returns what connection id sends and expects, part after part,
	// before the load begins on any connection. nil means nothing.
	Prepare func(id int) []Part
	// RequestSize is the maximum size of a request in bytes.
	RequestSize int
}

// A Talk is the endless requests of one connection and the replies it expects.
// It belongs to the connection's loop.
type Talk struct {
	Requests Requests
	Replies  Replies
}

// A Part is the first Count requests of a Talk.
type Part struct {
	Talk
	Count int
}

// Requests are a sequence of requests.
type Requests interface {
	// Next returns the next n requests. The result is valid until the next call
	// for any connection of the loop. Next may build the requests in buf, which
	// belongs to the loop.
	Next(buf *[]byte, n int) []byte
}

// Replies are the sequence of expected replies.
type Replies interface {
	// Check compares in with the next expected bytes, up to the end of the
	// limit-th reply. It takes n bytes, in which that many replies ended. If a
	// byte differs, wrong describes the first one.
	Check(in []byte, limit int) (n, replies int, wrong *Mismatch)
}

// A Mismatch is the error of a wrong reply.
type Mismatch struct {
	Reply int64  // the number of the reply on its connection, from 1
	Byte  int    // the first different byte in that reply, from 0
	Part  string // " of the body", where Byte counts in a part of the reply; "": in all of it
	// Got and Want begin a few bytes before that byte, but not before the reply or
	// the received bytes, and end some bytes after it. Got ends where the received
	// bytes end.
	Got, Want []byte
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("reply %d is wrong at byte %d%s: got %q, want %q", m.Reply, m.Byte, m.Part, m.Got, m.Want)
}

// The number of bytes that a Mismatch shows: before the wrong byte, and in all.
const (
	shownBefore = 16
	shown       = 64
)

// excerpt returns the part of b that a Mismatch shows. i is the index of the
// difference; the part begins at most back bytes before i.
func excerpt(b []byte, i, back int) []byte {
	b = b[i-min(i, back, shownBefore):]
	return append([]byte(nil), b[:min(len(b), shown)]...)
}

// taped are consecutive requests on a tape, each of size bytes.
type taped struct {
	head
	size int
}

func (t *taped) Next(_ *[]byte, n int) []byte { return t.next(n * t.size) }

// tapedReplies are replies on a tape, each of size bytes.
type tapedReplies struct {
	head
	size int
	seen int // bytes of the current reply
}

func (t *tapedReplies) Check(in []byte, limit int) (n, replies int, wrong *Mismatch) {
	most := min(len(in), limit*t.size-t.seen)
	n = t.match(in[:most])
	t.seen += n
	replies, t.seen = t.seen/t.size, t.seen%t.size
	if n < most {
		back := min(t.seen, n, shownBefore)
		from := (t.at - back + t.period*(1+back/t.period)) % t.period
		want := t.from(from, min(back+t.size-t.seen, leastPiece)) // to the reply's end
		wrong = &Mismatch{Reply: int64(replies) + 1, Byte: t.seen, Got: excerpt(in, n, back), Want: excerpt(want, back, back)}
	}
	return n, replies, wrong
}

// built are requests built one by one.
type built struct {
	append func(b []byte) []byte
}

func (q *built) Next(buf *[]byte, n int) []byte {
	b := (*buf)[:0]
	for range n {
		b = q.append(b)
	}
	*buf = b
	return b
}

// variedReplies are replies that consist of first, the result of middle, and
// last. middle is called once for each reply, and its result is used until the
// next call.
type variedReplies struct {
	first, last []byte
	middle      func() []byte

	begun bool   // the current reply has begun
	now   []byte // its middle
	seen  int    // bytes of it
}

func (v *variedReplies) Check(in []byte, limit int) (n, replies int, wrong *Mismatch) {
	for n < len(in) && replies < limit {
		if !v.begun {
			v.now, v.begun = v.middle(), true
		}
		k := v.match(in[n:])
		n += k
		v.seen += k
		switch {
		case v.seen == len(v.first)+len(v.now)+len(v.last):
			replies++
			v.begun, v.seen = false, 0
		case n < len(in):
			want := append(append(append([]byte(nil), v.first...), v.now...), v.last...)
			back := min(v.seen, n)
			return n, replies, &Mismatch{Reply: int64(replies) + 1, Byte: v.seen, Got: excerpt(in, n, back), Want: excerpt(want, v.seen, back)}
		}
	}
	return n, replies, nil
}

// match returns the number of bytes of in that continue the current reply.
func (v *variedReplies) match(in []byte) int {
	total, skip := 0, v.seen
	for _, part := range [...][]byte{v.first, v.now, v.last} {
		if skip >= len(part) {
			skip -= len(part)
			continue
		}
		part = part[skip:]
		skip = 0
		n := common(in[total:], part)
		total += n
		if n < len(part) {
			break
		}
	}
	return total
}
