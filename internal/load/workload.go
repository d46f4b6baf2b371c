package load

import "fmt"

// A Workload is what connections say, and what they must hear.
type Workload struct {
	// Name is for reports: "echo", or one of RedisTests.
	Name string
	// Talk is what connection id, from 0, says while the load runs.
	Talk func(id int) Talk
	// Prepare is what it says before the load runs on any connection, part
	// after part. nil: nothing.
	Prepare func(id int) []Part
	// RequestSize is how long a request is at most, in bytes.
	RequestSize int
}

// A Talk is one connection's requests and the replies that they must have, both
// without end. It belongs to the connection's loop.
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
	// Next returns the next n of them, to be read until it is called again for
	// any connection of the loop. It may build them in buf, which is the loop's.
	Next(buf *[]byte, n int) []byte
}

// Replies are the sequence of replies that must come.
type Replies interface {
	// Check compares in with what must come next. It takes all of it, n bytes
	// in which that many replies ended, but for what lies behind the limit-th
	// reply; or wrong tells the first byte that differs.
	Check(in []byte, limit int) (n, replies int, wrong *Mismatch)
}

// A Mismatch is the error of a reply that is not what it must be.
type Mismatch struct {
	Reply int64 // which of the connection, from 1
	Byte  int   // the first that differs, in that reply, from 0
	// Got and Want begin a few bytes before that one, or with the reply or the
	// bytes at hand, and end some bytes behind it. Got is cut where what had
	// been received ended.
	Got, Want []byte
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("reply %d is wrong at byte %d: got %q, want %q", m.Reply, m.Byte, m.Got, m.Want)
}

// How much a Mismatch shows: before the byte, and all together.
const (
	shownBefore = 16
	shown       = 64
)

// excerpt is what a Mismatch shows of b, at whose index i the difference is, if
// it may begin at most back bytes before that.
func excerpt(b []byte, i, back int) []byte {
	b = b[i-min(i, back, shownBefore):]
	return append([]byte(nil), b[:min(len(b), shown)]...)
}

// taped are requests that follow each other on a tape, each of size bytes.
type taped struct {
	head
	size int
}

func (t *taped) Next(_ *[]byte, n int) []byte { return t.next(n * t.size) }

// tapedReplies are replies on a tape, each of size bytes.
type tapedReplies struct {
	head
	size int
	seen int // bytes of the reply at hand
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

// built are requests that are made one by one.
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

// variedReplies are replies that differ in the middle: first, what middle
// returns, and last. middle is called once for each; what it returns is read
// until it is called again.
type variedReplies struct {
	first, last []byte
	middle      func() []byte

	begun bool   // the reply at hand
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

// match is how many bytes of in are those that the reply at hand goes on with.
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
