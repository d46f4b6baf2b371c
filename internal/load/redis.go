package load

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rondo-go/rondo/resp"
)

// RedisTests are the names of the Redis tests, in a sensible order.
var RedisTests = []string{"ping", "set", "get", "incr", "mset"}

// RedisOptions configure a Redis workload.
type RedisOptions struct {
	Conns, Pipeline int     // as in Config
	Size            int     // of values, in bytes
	Keyspace        int     // number of keys to choose from at random
	Zipf            float64 // above 1: by Zipf's law with this exponent; 0: all keys are equally likely
	Password        string  // "": none
}

// msetKeys is the number of keys of an MSET.
const msetKeys = 10

// Redis is the workload for a Redis server with one of RedisTests:
//
//	ping  PING
//	set   SET key:<n> <value>
//	get   GET key:<n>, of keys that were set before
//	incr  INCR counter:<n>, of counters that were set to 0 before
//	mset  MSET, of 10 keys key:<n>
//
// n is a random number of the keyspace, in 12 digits. A key's value depends
// only on n, so the reply to GET is known, whichever connection set the key
// last. Each connection has its own counters, at least one, so the reply to
// INCR is known.
func Redis(test string, o RedisOptions) (Workload, error) {
	if !slices.Contains(RedisTests, test) {
		return Workload{}, fmt.Errorf("no test %q: choose from %s", test, strings.Join(RedisTests, ", "))
	}
	largest := o.Size
	if test == "mset" {
		largest = min(o.Size, MaxInFlight) * msetKeys
	}
	if err := fits(largest, o.Pipeline); err != nil {
		return Workload{}, err
	}
	r := &redisTest{RedisOptions: o, text: pattern(o.Size)}
	w := Workload{Name: test, Prepare: func(id int) []Part { return r.login() }}
	switch test {
	case "ping":
		w.Talk = r.one(resp.AppendRequest(nil, "PING"), "+PONG\r\n")
	case "set":
		w.Talk = r.keyed(r.appendSet)
	case "mset":
		w.Talk = r.mset()
	case "get":
		w.Talk = r.get()
		w.Prepare = func(id int) []Part { return append(r.login(), r.fill(id)...) }
	case "incr":
		w.Talk = r.incr
		w.Prepare = func(id int) []Part { return append(r.login(), r.zero(id)) }
	}
	one := w.Talk(0).Requests.Next(new([]byte), 1)
	w.RequestSize = max(len(one), r.requestSize())
	return w, nil
}

// redisTest makes the workload of a test.
type redisTest struct {
	RedisOptions
	text tape
}

// requestSize is the size of the requests that prepare a connection.
func (r *redisTest) requestSize() int { return len(r.appendSet(nil, 0)) + len(r.Password) }

const digits = 12

// appendKey appends a key as a bulk string.
func appendKey(b []byte, prefix string, n int) []byte {
	b = append(b, '$')
	b = strconv.AppendInt(b, int64(len(prefix)+digits), 10)
	b = append(b, '\r', '\n')
	b = append(b, prefix...)
	b = append(b, "000000000000"...)
	for i := len(b) - 1; n > 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return append(b, '\r', '\n')
}

// value returns the value of key n.
func (r *redisTest) value(n int) []byte { return r.text.from(place(n), r.Size) }

func (r *redisTest) appendSet(b []byte, n int) []byte {
	b = append(b, "*3\r\n$3\r\nSET\r\n"...)
	b = appendKey(b, "key:", n)
	return resp.AppendBulk(b, r.value(n))
}

func appendGet(b []byte, n int) []byte {
	b = append(b, "*2\r\n$3\r\nGET\r\n"...)
	return appendKey(b, "key:", n)
}

func appendIncr(b []byte, n int) []byte {
	b = append(b, "*2\r\n$4\r\nINCR\r\n"...)
	return appendKey(b, "counter:", n)
}

func appendZero(b []byte, n int) []byte {
	b = append(b, "*3\r\n$3\r\nSET\r\n"...)
	b = appendKey(b, "counter:", n)
	return resp.AppendBulkString(b, "0")
}

// one is a constant request with a constant reply.
func (r *redisTest) one(request []byte, reply string) func(int) Talk {
	requests := repeat(request, r.Pipeline*len(request))
	replies := repeat([]byte(reply), leastPiece)
	return func(int) Talk {
		return Talk{
			&taped{head{tape: requests}, len(request)},
			&tapedReplies{head: head{tape: replies}, size: len(reply)},
		}
	}
}

// keyed is a request for random keys, whose reply is always "+OK".
func (r *redisTest) keyed(request func(b []byte, n int) []byte) func(int) Talk {
	if r.Keyspace == 1 {
		return r.one(request(nil, 0), ok)
	}
	replies := repeat([]byte(ok), leastPiece)
	return func(id int) Talk {
		keys := r.picker(id, r.Keyspace)
		return Talk{
			&built{func(b []byte) []byte { return request(b, keys.next()) }},
			&tapedReplies{head: head{tape: replies}, size: len(ok)},
		}
	}
}

const ok = "+OK\r\n"

func (r *redisTest) picker(id, n int) *picker { return newPicker(id, n, r.Zipf) }

func (r *redisTest) mset() func(int) Talk {
	start := resp.AppendBulkString(resp.AppendArray(nil, 1+2*msetKeys), "MSET")
	request := func(b []byte, key func() int) []byte {
		b = append(b, start...)
		for range msetKeys {
			n := key()
			b = appendKey(b, "key:", n)
			b = resp.AppendBulk(b, r.value(n))
		}
		return b
	}
	if r.Keyspace == 1 {
		return r.one(request(nil, func() int { return 0 }), ok)
	}
	replies := repeat([]byte(ok), leastPiece)
	return func(id int) Talk {
		next := r.picker(id, r.Keyspace).next
		return Talk{
			&built{func(b []byte) []byte { return request(b, next) }},
			&tapedReplies{head: head{tape: replies}, size: len(ok)},
		}
	}
}

func (r *redisTest) get() func(int) Talk {
	if r.Keyspace == 1 {
		return r.one(appendGet(nil, 0), string(resp.AppendBulk(nil, r.value(0))))
	}
	reply := resp.AppendBulk(nil, r.value(0))
	first := reply[:bytes.IndexByte(reply, '\n')+1]
	last := []byte("\r\n")
	return func(id int) Talk {
		asked, expected := r.picker(id, r.Keyspace), r.picker(id, r.Keyspace)
		return Talk{
			&built{func(b []byte) []byte { return appendGet(b, asked.next()) }},
			&variedReplies{first: first, last: last, middle: func() []byte { return r.value(expected.next()) }},
		}
	}
}

// counters is the number of counters of a connection. Connection id has the
// counters id, id+Conns, id+2*Conns and so on.
func (r *redisTest) counters() int { return max(1, r.Keyspace/r.Conns) }

func (r *redisTest) incr(id int) Talk {
	asked, expected := r.picker(id, r.counters()), r.picker(id, r.counters())
	counts := make([]int64, r.counters())
	var digits [20]byte
	return Talk{
		&built{func(b []byte) []byte { return appendIncr(b, id+r.Conns*asked.next()) }},
		&variedReplies{first: []byte(":"), last: []byte("\r\n"), middle: func() []byte {
			i := expected.next()
			counts[i]++
			return strconv.AppendInt(digits[:0], counts[i], 10)
		}},
	}
}

// login returns the requests with which every connection begins.
func (r *redisTest) login() []Part {
	if r.Password == "" {
		return nil
	}
	request := resp.AppendRequest(nil, "AUTH", r.Password)
	return []Part{{r.always(&built{func(b []byte) []byte { return append(b, request...) }}), 1}}
}

// fill sets a connection's share of the keys before the load gets them.
func (r *redisTest) fill(id int) []Part {
	if id >= r.Keyspace {
		return nil
	}
	next := id
	return []Part{{r.always(&built{func(b []byte) []byte {
		b = r.appendSet(b, next)
		next += r.Conns
		return b
	}}), (r.Keyspace - id + r.Conns - 1) / r.Conns}}
}

// zero sets a connection's counters.
func (r *redisTest) zero(id int) Part {
	next := id
	return Part{r.always(&built{func(b []byte) []byte {
		b = appendZero(b, next)
		next += r.Conns
		return b
	}}), r.counters()}
}

// always expects "+OK" as the reply to each request.
func (r *redisTest) always(requests Requests) Talk {
	return Talk{requests, &variedReplies{first: []byte(ok), middle: func() []byte { return nil }}}
}
