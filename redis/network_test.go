package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/resp"
	"github.com/rondo-go/rondo/rondotest"
)

// seeds runs a test on many simulated networks, with a server of one loop and
// with one of three. -short means a tenth of them, with and without faults.
func seeds(t *testing.T, n int, test func(t *testing.T, net *rondotest.Network, loops int)) {
	if testing.Short() {
		n = max(n/10, min(n, 2))
	}
	for _, loops := range []int{1, 3} {
		t.Run(fmt.Sprint(loops, "loops"), func(t *testing.T) {
			for seed := range n {
				o := rondotest.Options{Seed: uint64(seed + 1)}
				if seed%2 == 1 {
					o.Faults = rondotest.Harmless(0.1)
				}
				net := rondotest.New(t, o)
				test(t, net, loops)
				net.Close()
				if t.Failed() {
					return
				}
			}
		})
	}
}

// serve makes s serve 127.0.0.1:6379.
func serve(t *testing.T, net *rondotest.Network, loops int, s *Server, filters ...rondo.FilterOpenFunc) {
	t.Helper()
	s.Engine = net.Engine(&rondo.Engine{NumLoops: loops, Linger: closingTime})
	s.Logger = s.Engine.Logger
	var err error
	net.Await(func() { _, err = s.Listen("tcp", ":6379", rondo.SocketOptions{}, filters...) })
	if err != nil {
		t.Fatal(err)
	}
}

// peer is a client on the simulated network.
type peer struct {
	*rondotest.Conn
	t testing.TB
}

func dial(t testing.TB, net *rondotest.Network) peer {
	return peer{net.Dial("tcp", "127.0.0.1:6379"), t}
}

func (p peer) request(line string) {
	p.Send(string(resp.AppendRequest(nil, splitWords(line)...)))
}

// do sends a request and expects a reply, with a blank for each line break.
func (p peer) do(line, want string) {
	p.t.Helper()
	p.request(line)
	p.expect(want)
}

func (p peer) expect(want string) {
	p.t.Helper()
	p.Expect(strings.ReplaceAll(want, " ", "\r\n") + "\r\n")
}

func TestNetworkAnySplitGivesTheSameReplies(t *testing.T) {
	in := pipeline()
	b := newBench(t, &Server{})
	want := b.feed(b.connect("a"), in)
	seeds(t, 150, func(t *testing.T, net *rondotest.Network, loops int) {
		serve(t, net, loops, &Server{})
		c := dial(t, net)
		c.Send(string(in))
		got, err := io.ReadAll(c)
		if err != nil || string(got) != want {
			t.Errorf("seed %d: %v\ngot  %q\nwant %q", net.Seed(), err, got, want)
		}
	})
}

func TestNetworkActiveExpiry(t *testing.T) {
	seeds(t, 20, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		c := dial(t, net)
		for i := range 1000 {
			c.do(fmt.Sprintf("SET k%d v PX %d", i, 100000+i), "+OK")
		}
		c.do("SET stays v", "+OK")
		c.do("SET first v PX 50000", "+OK")
		net.Advance(60 * time.Second)
		if n := s.space.dbs[0].len(); n != 1001 {
			t.Errorf("seed %d: %d keys are left after a minute, want 1001", net.Seed(), n)
		}
		net.Advance(60 * time.Second)
		if n := s.space.dbs[0].len(); n != 1 {
			t.Errorf("seed %d: %d keys are left after two minutes, want 1", net.Seed(), n)
		}
	})
}

// Expired keys do not pile up, however many keys are set.
func TestNetworkExpiryKeepsUp(t *testing.T) {
	seeds(t, 1, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		c := dial(t, net)
		const perMillisecond, lives = 1000, 20
		most := 0
		for i := range 10 * lives {
			var in []byte
			for j := range perMillisecond {
				in = resp.AppendRequest(in, "SET", fmt.Sprint(i, " ", j), "v", "PX", fmt.Sprint(lives))
			}
			c.Send(string(in))
			c.Expect(strings.Repeat("+OK\r\n", perMillisecond))
			net.Advance(time.Millisecond)
			most = max(most, s.space.dbs[0].len())
		}
		if most > 2*perMillisecond*lives {
			t.Errorf("%d keys were there, of which %d had not expired", most, perMillisecond*lives)
		}
	})
}

func TestNetworkTimeout(t *testing.T) {
	seeds(t, 20, func(t *testing.T, net *rondotest.Network, loops int) {
		serve(t, net, loops, &Server{Timeout: 5 * time.Second})
		idle, busy, subscriber := dial(t, net), dial(t, net), dial(t, net)
		idle.do("PING", "+PONG")
		subscriber.do("SUBSCRIBE c", "*3 $9 subscribe $1 c :1")
		for range 6 {
			net.Advance(time.Second)
			busy.do("PING", "+PONG")
		}
		idle.ExpectEOF()
		busy.do("PUBLISH c x", ":1")
		subscriber.expect("*3 $7 message $1 c $1 x")
		busy.do("CONFIG SET timeout 0", "+OK")
		net.Advance(time.Hour)
		busy.do("PING", "+PONG")
	})
}

// A subscriber that never reads is cut off at its limit; the others get every
// message, and the publisher waits for nobody.
func TestNetworkSlowSubscriber(t *testing.T) {
	seeds(t, 15, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		slow, fast, p := dial(t, net), dial(t, net), dial(t, net)
		p.do(`CONFIG SET client-output-buffer-limit "pubsub 1000000 0 0"`, "+OK")
		slow.do("SUBSCRIBE c", "*3 $9 subscribe $1 c :1")
		fast.do("SUBSCRIBE c", "*3 $9 subscribe $1 c :1")
		message := strings.Repeat("x", 10000)
		cut := 0
		for i := range 200 {
			p.request("PUBLISH c " + message)
			n, _, _, err := resp.ReadValue(readLine(t, p))
			if err != nil {
				t.Fatal(err)
			}
			if n.Int == 1 && cut == 0 {
				cut = i
			}
			fast.expect("*3 $7 message $1 c $10000 " + message)
		}
		if cut < 100 || cut > 120 {
			t.Errorf("seed %d: the slow subscriber was cut off after %d messages, want 100 to 120", net.Seed(), cut)
		}
		if len(s.clients.list) != 2 {
			t.Errorf("seed %d: %d clients are left, want 2", net.Seed(), len(s.clients.list))
		}
	})
}

func readLine(t testing.TB, r io.Reader) []byte {
	var line []byte
	for !bytes.HasSuffix(line, []byte("\r\n")) {
		b := []byte{0}
		if _, err := r.Read(b); err != nil {
			t.Fatal(err)
		}
		line = append(line, b...)
	}
	return line
}

func TestNetworkSoftLimit(t *testing.T) {
	seeds(t, 15, func(t *testing.T, net *rondotest.Network, loops int) {
		serve(t, net, loops, &Server{})
		slow, p := dial(t, net), dial(t, net)
		p.do(`CONFIG SET client-output-buffer-limit "pubsub 0 200000 10"`, "+OK")
		slow.do("SUBSCRIBE c", "*3 $9 subscribe $1 c :1")
		message := strings.Repeat("x", 10000)
		for range 60 {
			p.do("PUBLISH c "+message, ":1")
		}
		net.Advance(9 * time.Second)
		p.do("PUBSUB NUMSUB c", "*2 $1 c :1")
		net.Advance(3 * time.Second)
		p.do("PUBSUB NUMSUB c", "*2 $1 c :0")
	})
}

// A client that sends requests and reads no replies makes the server hold only a few
// replies at first. But some programs read nothing before they have sent all requests of a
// long pipeline: for these the server runs them all after a while.
func TestNetworkClientThatNeverReads(t *testing.T) {
	seeds(t, 15, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		c := dial(t, net)
		const size = 100000
		c.do("SET k "+strings.Repeat("x", size), "+OK")
		const requests = 300
		c.Send(string(bytes.Repeat(resp.AppendRequest(nil, "GET", "k"), requests)))
		net.Run()
		calls := s.commands.byName["get"].calls
		most := int64(rondo.DefaultHighWater/size + 5)
		if calls < 2 || calls > most {
			t.Errorf("seed %d: %d requests were run though nothing was read, want at most %d", net.Seed(), calls, most)
		}
		net.Advance(20 * stallTime)
		if n := s.commands.byName["get"].calls; n != requests {
			t.Errorf("seed %d: %d requests were run of a client that waits for the server to take them, want %d", net.Seed(), n, requests)
		}
		want := "$100000 " + strings.Repeat("x", size)
		for range requests {
			c.expect(want)
		}
		c.do("PING", "+PONG") // a connection of another loop is measured now
		s.commands.byName["get"].calls = 0
		c.Send(string(bytes.Repeat(resp.AppendRequest(nil, "GET", "k"), requests)))
		net.Run()
		if calls := s.commands.byName["get"].calls; calls > most {
			t.Errorf("seed %d: %d requests were run later though nothing was read, want at most %d", net.Seed(), calls, most)
		}
	})
}

func TestNetworkLimitsOfAdmission(t *testing.T) {
	seeds(t, 20, func(t *testing.T, net *rondotest.Network, loops int) {
		serve(t, net, loops, &Server{MaxClients: 2})
		a, b := dial(t, net), dial(t, net)
		a.do("PING", "+PONG")
		b.do("PING", "+PONG")
		c := dial(t, net)
		c.Expect("-ERR max number of clients reached\r\n")
		c.ExpectEOF()
		a.do("QUIT", "+OK")
		a.ExpectEOF()
		d := net.DialFrom("192.0.2.1", "tcp", "127.0.0.1:6379")
		d.Expect("-DENIED Redis is running in protected mode")
		d.Close()
		e := dial(t, net)
		e.do("PING", "+PONG")
	})
}

func TestNetworkPassword(t *testing.T) {
	long := strings.Repeat("x", 30000)
	seeds(t, 30, func(t *testing.T, net *rondotest.Network, loops int) {
		serve(t, net, loops, &Server{Password: "secret"})
		c := dial(t, net)
		c.request("PING")
		c.Expect("-NOAUTH Authentication required.\r\n")
		var in []byte
		in = resp.AppendRequest(in, "AUTH", "secret")
		in = resp.AppendRequest(in, "ECHO", long)
		c.Send(string(in))
		c.expect("+OK $30000 " + long)

		d := dial(t, net)
		d.Send("*2\r\n$4\r\nECHO\r\n$30000\r\n")
		d.Expect("-ERR Protocol error: unauthenticated bulk length\r\n")
		d.ExpectEOF()

		e := dial(t, net)
		e.Send("PING\r\n*11\r\n")
		e.Expect("-NOAUTH Authentication required.\r\n-ERR Protocol error: unauthenticated multibulk length\r\n")
		e.ExpectEOF()

		// The limits may change between a loop's look at them and the next.
		c.Send("CONFIG SET requirepass \"\"\r\n")
		c.expect("+OK")
		f := dial(t, net)
		f.do("ECHO "+long, "$30000 "+long)
	})
}

func TestNetworkCommandsOfManyClientsAreOneSequence(t *testing.T) {
	seeds(t, 30, func(t *testing.T, net *rondotest.Network, loops int) {
		serve(t, net, loops, &Server{})
		var clients []peer
		const each = 50
		for range 5 {
			c := dial(t, net)
			clients = append(clients, c)
			c.Send(string(bytes.Repeat(resp.AppendRequest(nil, "INCR", "n"), each)))
		}
		seen := make(map[string]bool)
		for _, c := range clients {
			last := 0
			for range each {
				line := string(readLine(t, c))
				n, err := strconv.Atoi(strings.Trim(line, ":\r\n"))
				if err != nil || n <= last || seen[line] {
					t.Fatalf("seed %d: %q after %d", net.Seed(), line, last)
				}
				last, seen[line] = n, true
			}
		}
		clients[0].do("GET n", "$3 250")
	})
}

func TestNetworkTransactionsAcrossLoops(t *testing.T) {
	seeds(t, 20, func(t *testing.T, net *rondotest.Network, loops int) {
		serve(t, net, loops, &Server{})
		a, b, c := dial(t, net), dial(t, net), dial(t, net)
		a.do("WATCH k", "+OK")
		b.do("WATCH k", "+OK")
		c.do("SET k v", "+OK")
		a.do("MULTI", "+OK")
		a.do("GET k", "+QUEUED")
		a.do("EXEC", "*-1")
		b.do("UNWATCH", "+OK")
		b.do("MULTI", "+OK")
		b.do("GET k", "+QUEUED")
		b.do("EXEC", "*1 $1 v")
		a.do("CLIENT SETNAME victim", "+OK")
		a.request("CLIENT ID")
		id := strings.Trim(string(readLine(t, a)), ":\r\n")
		b.do("CLIENT KILL ID "+id, ":1")
		a.ExpectEOF()
	})
}

// Clients whose connections break leave nothing behind.
func TestNetworkLostClientsAreForgotten(t *testing.T) {
	seeds(t, 30, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		for i := range 10 {
			c := dial(t, net)
			c.do("SUBSCRIBE a", "*3 $9 subscribe $1 a :1")
			c.do("RESET", "+RESET")
			c.do("WATCH k", "+OK")
			c.do("MULTI", "+OK")
			c.request("SUBSCRIBE b")
			if i%2 == 0 {
				c.Reset()
			} else {
				c.Close()
			}
		}
		net.Advance(time.Minute) // faults may delay the end
		if len(s.clients.list) != 0 || s.clients.connections != 0 || len(s.clients.byID) != 0 ||
			len(s.broker.channels.list) != 0 || len(s.space.dbs[0].watchers) != 0 {
			t.Errorf("seed %d: %d clients, %d connections, %d channels, %d watched keys are left", net.Seed(),
				len(s.clients.list), s.clients.connections, len(s.broker.channels.list), len(s.space.dbs[0].watchers))
		}
	})
}

// Shutdown sends clients their pending replies, and Close does not wait.
func TestNetworkShutdown(t *testing.T) {
	seeds(t, 30, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		c, idle := dial(t, net), dial(t, net)
		idle.do("PING", "+PONG")
		value := strings.Repeat("x", 200000)
		c.do("SET k "+value, "+OK")
		c.request("GET k")
		net.Until(func() bool { return s.commands.byName["get"].calls == 1 })
		net.Await(func() { s.stop(func() { s.clients.end((*client).close) }) }) // the first half, while we read
		c.expect("$200000 " + value)
		c.ExpectEOF()
		idle.ExpectEOF()
		c.Close()
		idle.Close()
		var err error
		net.Await(func() { err = s.Shutdown(net.Timeout(time.Minute)) })
		if err != nil {
			t.Errorf("seed %d: Shutdown: %v", net.Seed(), err)
		}
		if _, err := s.Listen("tcp", ":1", rondo.SocketOptions{}); err == nil {
			t.Error("a server that was shut down listens")
		}
	})
}

func TestNetworkShutdownCutsOffWhoDoesNotRead(t *testing.T) {
	seeds(t, 10, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		c := dial(t, net)
		c.do("SET k "+strings.Repeat("x", 200000), "+OK")
		c.request("GET k")
		net.Run()
		var err error
		net.Await(func() { err = s.Shutdown(net.Timeout(time.Second)) })
		if err == nil {
			t.Errorf("seed %d: Shutdown has no error", net.Seed())
		}
		if s.clients.connections != 0 {
			t.Errorf("seed %d: %d connections are left", net.Seed(), s.clients.connections)
		}
	})
}

// A client that has closed its sending side, said QUIT or made an error gets all
// replies, however slowly it takes them.
func TestNetworkRepliesOutliveTheEndOfTheRequests(t *testing.T) {
	value := strings.Repeat("x", 100_000)
	for name, end := range map[string]struct {
		send, reply string
		half        bool
	}{
		"half-close":     {"", "", true},
		"QUIT":           {"QUIT\r\n", "+OK\r\n", false},
		"QUIT, closed":   {"QUIT\r\n", "+OK\r\n", true},
		"protocol error": {"*1\r\n+\r\n", "-ERR Protocol error: expected '$', got '+'\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			seeds(t, 6, func(t *testing.T, net *rondotest.Network, loops int) {
				serve(t, net, loops, &Server{})
				dial(t, net).do("SET k "+value, "+OK")
				for range 2 {
					c := dial(t, net)
					const requests = 50
					c.Send(strings.Repeat("GET k\r\n", requests) + end.send)
					if end.half {
						c.CloseWrite()
					}
					for range requests {
						net.Advance(10 * time.Second)
						c.Expect("$100000\r\n" + value + "\r\n")
					}
					c.Expect(end.reply)
					c.ExpectEOF()
				}
			})
		})
	}
}

// An ended client that reads nothing of its pending output does not stay for ever.
func TestNetworkEndedClientsThatTakeNothingAreCutOff(t *testing.T) {
	seeds(t, 6, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		c := dial(t, net)
		c.do("SET k "+strings.Repeat("x", 200_000), "+OK")
		for range 2 {
			c := dial(t, net)
			c.Send("GET k\r\nQUIT\r\n")
		}
		net.Advance(maxStill / 2)
		if n := s.clients.connections; n != 3 {
			t.Errorf("seed %d: %d connections after half the time, want 3", net.Seed(), n)
		}
		net.Advance(maxStill)
		if n := s.clients.connections; n != 1 || len(s.clients.leaving) != 0 {
			t.Errorf("seed %d: %d connections are left, %d leaving, want 1 and 0", net.Seed(), n, len(s.clients.leaving))
		}
	})
}

// A peer that keeps sending after a protocol error is closed once it has had time
// to read the error.
func TestNetworkProtocolErrorsDoNotLinger(t *testing.T) {
	seeds(t, 10, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		dial(t, net).do("PING", "+PONG")
		for range 2 {
			c := dial(t, net)
			c.Send("*1\r\n+\r\n")
			c.Expect("-ERR Protocol error: expected '$', got '+'\r\n")
			c.ExpectEOF()
			for range 10 {
				net.Advance(closingTime / 5)
				c.Write([]byte("more"))
			}
		}
		if n := s.clients.connections; n != 1 {
			t.Errorf("seed %d: %d connections are left, want 1", net.Seed(), n)
		}
	})
}

// Shutdown ends idle clients at once, even if they do not close their side, and
// names the clients it waits for.
func TestNetworkShutdownIsQuick(t *testing.T) {
	seeds(t, 10, func(t *testing.T, net *rondotest.Network, loops int) {
		var log bytes.Buffer
		s := &Server{}
		serve(t, net, loops, s)
		s.Logger = slog.New(slog.NewTextHandler(&log, nil))
		var idle []peer
		for range 5 {
			c := dial(t, net)
			c.do("PING", "+PONG")
			idle = append(idle, c)
		}
		begun := net.Now()
		var err error
		net.Await(func() { err = s.Shutdown(net.Timeout(time.Minute)) })
		if took := net.Now().Sub(begun); err != nil || took > 2*closingTime {
			t.Errorf("seed %d: Shutdown took %v: %v", net.Seed(), took, err)
		}
		for _, c := range idle {
			c.ExpectEOF()
		}
		if log.Len() > 0 {
			t.Errorf("seed %d: logged %s", net.Seed(), log.String())
		}
	})
}

func TestNetworkShutdownSaysWhomItWaitsFor(t *testing.T) {
	seeds(t, 10, func(t *testing.T, net *rondotest.Network, loops int) {
		var log bytes.Buffer
		s := &Server{}
		serve(t, net, loops, s)
		s.Logger = slog.New(slog.NewTextHandler(&log, nil))
		first, c := dial(t, net), dial(t, net)
		first.do("SET k "+strings.Repeat("x", 200_000), "+OK")
		c.request("GET k")
		net.Until(func() bool { return s.commands.byName["get"].calls == 1 })
		begun := net.Now()
		var err error
		net.Await(func() { err = s.Shutdown(net.Timeout(20 * time.Second)) })
		if took := net.Now().Sub(begun); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("seed %d: Shutdown took %v", net.Seed(), took)
		}
		who := "clients have not read their replies: " + c.LocalAddr().String() + " ("
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), who) {
			t.Errorf("seed %d: Shutdown: %v, want %q", net.Seed(), err, who)
		}
		if n := strings.Count(log.String(), who); n != 1 {
			t.Errorf("seed %d: logged %d times that it waits: %s", net.Seed(), n, log.String())
		}
	})
}

// A command that panics ends its own connection only: messages that the same batch
// published are delivered, and the server keeps running.
func TestNetworkPanicsEndTheirClientAlone(t *testing.T) {
	seeds(t, 10, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		s.Engine.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
		boom := &command{name: "boom", arity: 1, run: func(*client, [][]byte) { panic("boom") }}
		net.Await(func() { s.loop.Post(func() { s.commands.byName["boom"] = boom }) })
		var subscribers []peer
		for range 3 {
			c := dial(t, net)
			c.do("SUBSCRIBE c", "*3 $9 subscribe $1 c :1")
			subscribers = append(subscribers, c)
		}
		for i := range 3 {
			c := dial(t, net)
			c.Send("SET k v\r\nMULTI\r\nPUBLISH c x\r\nBOOM\r\nEXEC\r\n")
			if _, err := io.ReadAll(c); err == nil {
				t.Errorf("seed %d: client %d was not cut off", net.Seed(), i)
			}
			for _, c := range subscribers {
				c.expect("*3 $7 message $1 c $1 x")
			}
		}
		subscribers[0].do("PING", "*2 $4 pong $0 ")
		dial(t, net).do("GET k", "$1 v")
		if n := s.clients.connections; n != 4 || len(s.clients.list) != 4 {
			t.Errorf("seed %d: %d connections, %d clients, want 4", net.Seed(), n, len(s.clients.list))
		}
	})
}

// Refused clients use up no descriptors, however many they are and even if they do
// not close. Each gets the reason.
func TestNetworkRefusedClientsDoNotStay(t *testing.T) {
	seeds(t, 6, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		s.MaxClients = 2
		serve(t, net, loops, s)
		a, b := dial(t, net), dial(t, net)
		a.do("PING", "+PONG")
		b.do("PING", "+PONG")
		for range 2 * ReservedFiles {
			c := dial(t, net)
			c.Expect("-ERR max number of clients reached\r\n")
			c.ExpectEOF()
			net.Run()
			if n := s.clients.connections; n > 2+maxRefused+4 { // 4: some are about to close
				t.Fatalf("seed %d: %d connections", net.Seed(), n)
			}
		}
		net.Advance(2 * closingTime)
		if n := s.clients.connections; n != 2 || len(s.clients.refused) != 0 {
			t.Errorf("seed %d: %d connections are left, %d refused", net.Seed(), n, len(s.clients.refused))
		}
	})
}

// Ended clients that do not read their pending output count towards maxclients.
func TestNetworkLeavingClientsCount(t *testing.T) {
	seeds(t, 6, func(t *testing.T, net *rondotest.Network, loops int) {
		serve(t, net, loops, &Server{MaxClients: 2})
		a, b := dial(t, net), dial(t, net)
		a.do("SET k "+strings.Repeat("x", 200_000), "+OK")
		b.Send("GET k\r\nQUIT\r\n")
		net.Advance(time.Second)
		c := dial(t, net)
		c.Expect("-ERR max number of clients reached\r\n")
		c.ExpectEOF()
		b.expect("$200000 " + strings.Repeat("x", 200_000) + " +OK")
		b.ExpectEOF()
		net.Advance(maxLook)
		dial(t, net).do("PING", "+PONG")
	})
}

// CLIENT KILL ends clients that do not read at once. Clients that read get all
// their output before the end.
func TestNetworkKilledClientsAreGone(t *testing.T) {
	seeds(t, 10, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		admin := dial(t, net)
		admin.do("SET k "+strings.Repeat("x", 200_000), "+OK")
		for range loops {
			stuck, reader := dial(t, net), dial(t, net)
			reader.do("SUBSCRIBE c", "*3 $9 subscribe $1 c :1")
			stuck.request("GET k")
			net.Run()
			admin.Send("PUBLISH c x\r\nCLIENT KILL SKIPME yes\r\n")
			admin.expect(":1 :2")
			reader.expect("*3 $7 message $1 c $1 x")
			reader.ExpectEOF()
			reader.Close()
			net.Advance(time.Second)
			if n := s.clients.connections; n != 1 || len(s.clients.leaving) != 0 {
				t.Errorf("seed %d: %d connections are left, %d leaving, want 1 and 0", net.Seed(), n, len(s.clients.leaving))
			}
			if _, err := io.ReadAll(stuck); err == nil {
				t.Errorf("seed %d: a client that was killed while it was owed output saw an orderly end", net.Seed())
			}
		}
	})
}

// bulk reads a bulk string.
func (p peer) bulk() string {
	p.t.Helper()
	size, err := strconv.Atoi(strings.Trim(string(readLine(p.t, p)), "$\r\n"))
	if err != nil {
		p.t.Fatal(err)
	}
	b := make([]byte, size+2)
	if _, err := io.ReadFull(p, b); err != nil {
		p.t.Fatal(err)
	}
	return string(b[:size])
}

// Output that a client has read counts neither against its limits nor in CLIENT
// LIST, whichever loop sends it.
func TestNetworkOutputThatWasTakenDoesNotCount(t *testing.T) {
	seeds(t, 10, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		p := dial(t, net)
		p.do(`CONFIG SET client-output-buffer-limit "pubsub 0 50000 2"`, "+OK")
		var subscribers []peer
		for range 3 {
			c := dial(t, net)
			c.do("SUBSCRIBE c", "*3 $9 subscribe $1 c :1")
			subscribers = append(subscribers, c)
		}
		p.request("CLIENT LIST") // makes the loop measure
		p.bulk()
		net.Run()
		for _, c := range s.clients.list {
			if n := c.transport.pending(); n != 0 && c.subscribed() {
				t.Errorf("seed %d: %d bytes are said to wait for a client that has taken all", net.Seed(), n)
			}
		}
		message := strings.Repeat("x", 200_000)
		p.do("PUBLISH c "+message, ":3")
		net.Run()
		for _, c := range subscribers {
			c.expect("*3 $7 message $1 c $200000 " + message)
		}
		net.Advance(10 * time.Second)
		p.do("PUBSUB NUMSUB c", "*2 $1 c :3")
		for _, c := range s.clients.list {
			if n := c.transport.pending(); n != 0 && c.subscribed() {
				t.Errorf("seed %d: %d bytes are said to wait for a client that has taken all", net.Seed(), n)
			}
		}
	})
}

// CLIENT LIST shows ended clients with pending output, and CLIENT KILL finds them.
func TestNetworkLeavingClientsAreListed(t *testing.T) {
	seeds(t, 10, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		admin := dial(t, net)
		admin.do("SET k "+strings.Repeat("x", 200_000), "+OK")
		for range loops {
			c := dial(t, net)
			c.Send("CLIENT SETNAME me\r\nCLIENT ID\r\nGET k\r\nQUIT\r\n")
			c.expect("+OK")
			id := strings.Trim(string(readLine(t, c)), ":\r\n")
			net.Advance(time.Second)
			line := "id=" + id + " addr=" + c.LocalAddr().String()
			for _, request := range []string{"CLIENT LIST", "CLIENT LIST TYPE normal", "CLIENT LIST ID " + id} {
				admin.request(request)
				got := admin.bulk()
				if i := strings.Index(got, line); i < 0 || !strings.Contains(got[i:], "name=me") || !strings.Contains(got[i:], "flags=c") {
					t.Errorf("seed %d: %s tells %s", net.Seed(), request, got)
				}
			}
			admin.request("INFO clients")
			if got := admin.bulk(); !strings.Contains(got, "connected_clients:2\r\n") {
				t.Errorf("seed %d: INFO tells %s", net.Seed(), got)
			}
			admin.do("CLIENT KILL ID "+id, ":1")
			admin.request("CLIENT LIST ID " + id)
			if got := admin.bulk(); got != "" {
				t.Errorf("seed %d: after CLIENT KILL there is %s", net.Seed(), got)
			}
			admin.do("CLIENT KILL ID "+id, ":0")
			net.Advance(time.Second)
			if n := s.clients.connections; n != 1 || len(s.clients.leaving) != 0 {
				t.Errorf("seed %d: %d connections are left, %d leaving, want 1 and 0", net.Seed(), n, len(s.clients.leaving))
			}
		}
	})
}

// panickingLog is a Logger's Handler that panics.
type panickingLog struct{ slog.Handler }

func (panickingLog) Handle(context.Context, slog.Record) error { panic("the log is full") }

// A Logger that panics loses no client's replies and leaves no client counted.
func TestNetworkLoggersMayPanic(t *testing.T) {
	seeds(t, 10, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		s.Engine.Logger = slog.New(slog.DiscardHandler)
		s.Logger = slog.New(panickingLog{slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug})})
		p := dial(t, net)
		p.do(`CONFIG SET client-output-buffer-limit "pubsub 1000 0 0"`, "+OK")
		var subscribers []peer
		for range 3 {
			c := dial(t, net)
			c.do("SUBSCRIBE c", "*3 $9 subscribe $1 c :1")
			subscribers = append(subscribers, c)
		}
		q := dial(t, net)
		q.do("SUBSCRIBE d", "*3 $9 subscribe $1 d :1")
		p.Send(string(resp.AppendRequest(resp.AppendRequest(nil, "PUBLISH", "d", "x"), "PUBLISH", "c", strings.Repeat("x", 2000))))
		q.expect("*3 $7 message $1 d $1 x")
		for _, c := range subscribers {
			c.Reset()
		}
		net.Advance(time.Minute)
		q.Reset()
		p.Reset()
		net.Advance(time.Minute)
		if n := s.clients.connections; n != 0 || len(s.clients.list) != 0 {
			t.Errorf("seed %d: %d connections are counted, %d clients; all are gone", net.Seed(), n, len(s.clients.list))
		}
	})
}
