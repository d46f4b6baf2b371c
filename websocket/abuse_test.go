package websocket

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
)

// An abuse is what every hostile client does with its connection behind the handshake.
type abuse struct {
	name  string
	bytes int    // of memory that a connection may take
	once  string // is sent first
	again string // is sent again and again; "": the client is silent
	deaf  bool   // nothing is read
}

const (
	ofIdle = 1 << 10 // an idle connection
	ofPart = 4 << 10 // the beginning of a frame
	// ofRest is what is left of a receive when others have their turn. Bombs get more, since
	// they are still being served when the memory is looked at.
	ofRest = 70 << 10
	// ofUnread is output that the peer does not read: HighWater, what comes of a receive
	// beyond, and room to grow in.
	ofUnread = 4 * (64 << 10)
)

func abuses() []abuse {
	zeros := func(n int) string { return (&stock{}).deflate(strings.Repeat("\x00", n)) }
	many := func(s string) string { return strings.Repeat(s, 1+20000/len(s)) }
	x := strings.Repeat("x", 10000)
	return []abuse{
		{"silence", ofIdle, "", "", false},
		{"a frame that does not come", ofPart, frame(fin|binOp, strings.Repeat("x", 1<<20))[:20], "", false},
		{"half a message", 5 * len(x), frame(binOp, x), "", false},
		{"half a compressed message", 5 * len(x), deflated(binOp, x, "")[:len(x)], "", false},
		{"pings", ofRest, "", many(ping("x")), false},
		{"pings, and no pong is read", ofUnread, "", many(ping(x[:125])), true},
		{"pongs", ofRest, "", many(pong("")), false},
		{"empty messages", ofRest, "", many(bin("")), false},
		{"messages, and no echo is read", ofUnread, "", many(bin(x[:1000])), true},
		{"empty fragments", ofRest, frame(binOp, ""), many(frame(0, "")), false},
		{"tiny fragments", ofRest, "", many(fragments(binOp, strings.Split(x[:100], "")...)), false},
		{"pings between fragments", ofRest, frame(binOp, "x"), many(ping("") + frame(0, "")), false},
		{"bombs", 4 * ofRest, strings.Repeat(deflated(binOp, zeros(200<<10)), 20), "", false},
		{"bombs over the limit", ofPart, deflated(binOp, zeros(8<<20)), "", false},
	}
}

// TestAbuse: many hostile connections, of another process, take little memory each, and others
// are served. Memory and times are tested with -long only.
func TestAbuse(t *testing.T) {
	n := 5 // the other tests' load says more of memory and times then than a few connections
	if *long {
		n = 50
	}
	for _, a := range abuses() {
		t.Run(a.name, func(t *testing.T) { a.test(t, n) })
	}
}

func (a *abuse) test(t *testing.T, n int) {
	var open atomic.Int32
	s := &Server{
		Open: func(*Conn, *http.Request) Handler {
			open.Add(1)
			return &abused{&open}
		},
		Options: Options{Compression: &Compression{NoContextTakeover: true, PeerNoContextTakeover: true}},
	}
	address := testkit.Listen(t, &rondo.Engine{NumLoops: 1, Backend: *backend, HighWater: 64 << 10, Linger: 50 * time.Millisecond}, s.OpenFunc())
	bystander := upgradeTo(t, testkit.Dial(t, address))
	before := memory()
	end := startAbuse(t, a.name, address, n)
	var latencies []time.Duration
	for range 15 {
		begin := time.Now()
		bystander.send(bin("hello"))
		bystander.expect("binary hello")
		latencies = append(latencies, time.Since(begin))
		time.Sleep(time.Millisecond)
	}
	each := (memory() - before) / n
	if extra := (2 << 20) / n; *long && each > a.bytes+extra { // what the loop's connections share
		t.Errorf("%d bytes for each connection, want at most %d", each, a.bytes+extra)
	}
	slices.Sort(latencies)
	middle := latencies[len(latencies)/2]
	if *long && middle > 5*time.Second {
		t.Errorf("an echo of a bystander took %v", middle)
	}
	t.Logf("%d bytes for each of %d connections; an echo of a bystander took %v in the median, %v at most", each, n, middle, latencies[len(latencies)-1])
	end()
	bystander.bye()
	for deadline := time.Now().Add(patience); open.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections have not closed", open.Load())
		}
	}
}

// abused is an echo of messages that are not long.
type abused struct{ open *atomic.Int32 }

func (*abused) Message(c *Conn, op Opcode, p []byte) error {
	if len(p) > 10000 {
		return nil
	}
	return c.WriteMessage(op, p)
}

func (a *abused) Closed(*Conn, error) { a.open.Add(-1) }

// memory returns how many bytes of memory the process uses, without garbage.
func memory() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// abuseVariable has the arguments of the process of hostile clients.
const abuseVariable = "RONDO_WEBSOCKET_ABUSE"

// startAbuse starts a process of hostile clients, and returns when they are connected.
func startAbuse(t *testing.T, name, address string, n int) (end func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run", "^TestAbusers$")
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%s", abuseVariable, address, n, name), "GOMAXPROCS=1")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	end = func() {
		in.Close()
		c.Wait()
	}
	t.Cleanup(end)
	if said, err := bufio.NewReader(out).ReadString('\n'); said != "ready\n" {
		t.Fatalf("the hostile clients say %q, %v", said, err)
	}
	return end
}

// TestAbusers is the process of hostile clients. It ends with its standard input.
func TestAbusers(t *testing.T) {
	arguments := os.Getenv(abuseVariable)
	if arguments == "" {
		return // TestAbuse runs it
	}
	address, rest, _ := strings.Cut(arguments, "|")
	number, name, _ := strings.Cut(rest, "|")
	n, err := strconv.Atoi(number)
	all := abuses()
	i := slices.IndexFunc(all, func(a abuse) bool { return a.name == name })
	if err != nil || i < 0 {
		t.Fatalf("the arguments are %q", arguments)
	}
	var conns []net.Conn
	for range n {
		c := testkit.Dial(t, address)
		upgradeTo(t, c, "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover")
		c.SetLinger(0) // the server need not handle what it has not read when this process ends
		conns = append(conns, c)
	}
	for _, c := range conns {
		go all[i].run(c)
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// run does the abuse.
func (a *abuse) run(c net.Conn) {
	if !a.deaf {
		go io.Copy(io.Discard, c)
	}
	_, err := io.WriteString(c, a.once)
	for a.again != "" && err == nil {
		_, err = io.WriteString(c, a.again)
	}
}
