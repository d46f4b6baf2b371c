package script

import (
	"strings"
	"testing"

	"github.com/rondo-go/rondo/resp"
)

// fakeHost is a server with few commands.
type fakeHost struct {
	e     *Engine
	proto int
	ticks int
	limit int // of ticks; 0: none
	logs  []string
}

func (h *fakeHost) Call(args [][]byte) (reply []byte, refusal string) {
	switch string(args[0]) {
	case "echo":
		return resp.AppendBulk(nil, args[1]), ""
	case "raw":
		return args[1], ""
	case "panic":
		panic("a fault of the server")
	case "mark": // from here on a script may tick so often
		h.ticks, h.limit = 0, 25
		return resp.AppendSimple(nil, "OK"), ""
	case "due":
		h.e.due.Store(true)
		return resp.AppendSimple(nil, "OK"), ""
	case "ticks":
		return resp.AppendInt(nil, int64(h.ticks)), ""
	}
	return nil, "Unknown Redis command called from script"
}

func (h *fakeHost) Permitted(args [][]byte) (permitted, known bool) {
	return string(args[0]) == "echo", string(args[0]) != "no"
}
func (h *fakeHost) SetProtocol(version int)    { h.proto = version }
func (h *fakeHost) Log(level int, text string) { h.logs = append(h.logs, text) }
func (h *fakeHost) Outside() int64             { return 0 }
func (h *fakeHost) Tick() {
	if h.ticks++; h.limit > 0 && h.ticks > h.limit {
		h.e.Kill("too long")
	}
}

func newEngine() (*Engine, *fakeHost) {
	h := &fakeHost{proto: 2}
	h.e = New(h, "7.0.15")
	return h.e, h
}

// eval runs a script and returns its reply with a blank for each line break.
func eval(e *Engine, h *fakeHost, source string) string {
	h.proto = 2
	f, err := e.Compile(source, "user_script")
	if err != nil {
		return "compile: " + err.Error()
	}
	v, failure := e.Eval(f, [][]byte{[]byte("k1"), []byte("k2")}, [][]byte{[]byte("a1")})
	if failure != nil {
		return "-" + failure.Text + " " + failure.Source + ":" + failure.Line
	}
	r := &Replier{Reply: &resp.Reply{Proto: 2}, Protocol: h.proto}
	r.Fail = func(text string, counted bool) { r.Error(text) }
	r.Add(v)
	return strings.TrimSpace(strings.ReplaceAll(string(r.B), "\r\n", " "))
}

func TestScripts(t *testing.T) {
	e, h := newEngine()
	for _, x := range []struct{ source, want string }{
		{"return 1", ":1"},
		{"return 3.99", ":3"},
		{"return 'x'", "$1 x"},
		{"return {1,2,{3,'four'},nil,5}", "*3 :1 :2 *2 :3 $4 four"},
		{"return KEYS[1]..ARGV[1]..#KEYS", "$5 k1a12"},
		{"return 1 .. 2 .. 0.1+0.2", "$5 120.3"},
		{"return tostring(2^53)..' '..tostring(1e15)..' '..tostring(100)", "$28 9.007199254741e+15 1e+15 100"},
		{"return redis.call('echo', 'hi')", "$2 hi"},
		{"return redis.pcall('nothing')", "-ERR Unknown Redis command called from script"},
		{"return redis.call('nothing')", "-ERR Unknown Redis command called from script @user_script:1"},
		{"local ok, e = pcall(redis.call, 'nothing') return e", "$44 ERR Unknown Redis command called from script"},
		{"return redis.status_reply('FINE')", "+FINE"},
		{"return redis.error_reply('MY err')", "-MY err"},
		{"return redis.sha1hex('')", "$40 da39a3ee5e6b4b0d3255bfef95601890afd80709"},
		{"x = 1", "-ERR user_script:1: Attempt to modify a readonly table @user_script:1"},
		{"return x", "-ERR user_script:1: Script attempted to access nonexistent global variable 'x' @user_script:1"},
		{"redis.call = nil", "-ERR user_script:1: Attempt to modify a readonly table @user_script:1"},
		{"rawset(_G, 'x', 1)", "-ERR Attempt to modify a readonly table @user_script:1"},
		{"return getmetatable(_G).x == nil", ":1"},
		{"\n\nerror('boom')", "-ERR user_script:3: boom @user_script:3"},
		{"error({err='MY boom'})", "-MY boom @user_script:1"},
		{"return nil + 1", "-ERR user_script:1: attempt to perform arithmetic on a nil value @user_script:1"},
		{"local t = nil; return t.x", "-ERR user_script:1: attempt to index a nil value @user_script:1"},
		{"return {err='E', 1}", "-E"},
		{"return #'abc' + ('5' * 2)", ":13"},
		{"return ('x'):rep(3):upper()", "$3 XXX"},
		{"return cjson.encode({1,2,{a=1}})", "$13 [1,2,{\"a\":1}]"},
		{"return cjson.decode('[1,{\"a\":null}]')[2].a == cjson.null", ":1"},
		{"return {cmsgpack.unpack(cmsgpack.pack(1,'x',{1,2}))}", "*3 :1 $1 x *2 :1 :2"},
		{"return bit.band(7,12)", ":4"},
		{"local co = coroutine.wrap(function(a) local b = coroutine.yield(a+1) return b*2 end) return {co(1), co(10)}", "*2 :2 :20"},
		{"return string.format('%5.2f|%-4s|%03d|%x', 3.14159, 'ab', 7, 255)", "$17  3.14|ab  |007|ff"},
		{"return ({('hello world'):find('o w')})[1]", ":5"},
		{"return (('a,b,c'):gsub(',', ';'))", "$5 a;b;c"},
		{"return 1 +", "compile: user_script:1: unexpected symbol near '<eof>'"},
		{"return os", "-ERR user_script:1: Script attempted to access nonexistent global variable 'os' @user_script:1"},
		{"local a = {10,2,33} table.sort(a) return a", "*3 :2 :10 :33"},
		{"return loadstring('return 1 .. 2')()", "$2 12"},
		{"return math.huge > 1e308", ":1"},
		{"return select('#', ...)", ":0"},
		{"return {pcall(error, {err='X y'})}", "*2 $-1 $3 X y"},
		{"return redis.setresp(3)", "$-1"},
		{"return tostring(-48 % 6) .. ' ' .. 5 % -3 .. ' ' .. '7' % 4 .. ' ' .. -1 % 3 .. ' ' .. 2^53 % 3 .. ' ' .. 5.3 % 1", "$14 0 -1 3 2 2 0.3"},
		{"return 5 % {}", "-ERR user_script:1: attempt to perform arithmetic on a table value @user_script:1"},
		{"return nil % 5", "-ERR user_script:1: attempt to perform arithmetic on a nil value @user_script:1"},
		{"return setmetatable({}, {__mod = function(a, b) return b * 2 end}) % 5", ":10"},
		{"return redis.call('raw', '%1\\r\\n+a\\r\\n:1\\r\\n').map.a == nil", ":1"},
	} {
		if got := eval(e, h, x.source); got != x.want {
			t.Errorf("%s\n got %s\nwant %s", x.source, got, x.want)
		}
	}
}
