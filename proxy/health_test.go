package proxy_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/proxy"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
)

// answering makes a target that answers the first line that it gets. It keeps what it got.
func (w *world) answering(port int, answer string, got *string) {
	w.t.Helper()
	w.Listen(new(rondo.Engine), "tcp", fmt.Sprintf("127.0.0.1:%d", port), func(c *rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			if !strings.HasSuffix(string(in), "\r\n") || strings.HasPrefix(string(in), "GET") && !strings.HasSuffix(string(in), "\r\n\r\n") {
				return 0, nil
			}
			*got = string(in)
			io.WriteString(c, answer)
			return len(in), nil
		})
	})
}

// state returns the state of the only pool's first target.
func (w *world) state() string { return w.pool().Targets[0].State }

// What the kinds of checks ask, and what they take for well.
func TestCheckKinds(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: 127.0.0.1:2\r\nUser-Agent: rondo proxy\r\nAccept: */*\r\nConnection: close\r\n\r\n"
	for _, c := range []struct {
		check             proxy.Check
		answer            string
		asks, state, says string
	}{
		{proxy.Check{Kind: proxy.CheckTCP}, "", "", "up", ""},
		{proxy.Check{Kind: proxy.CheckRedis}, "+PONG\r\n", "PING\r\n", "up", ""},
		{proxy.Check{Kind: proxy.CheckRedis}, "-NOAUTH Authentication required.\r\n", "PING\r\n", "up", ""},
		{proxy.Check{Kind: proxy.CheckRedis}, "-LOADING wait\r\n", "PING\r\n", "down", "-LOADING wait"},
		{proxy.Check{Kind: proxy.CheckRedis}, "", "PING\r\n", "down", "not done in time"},
		{proxy.Check{Kind: proxy.CheckHTTP}, "HTTP/1.1 200 OK\r\n\r\n", get, "up", ""},
		{proxy.Check{Kind: proxy.CheckHTTP}, "HTTP/1.0 302\n\n", get, "up", ""},
		{proxy.Check{Kind: proxy.CheckHTTP}, "HTTP/1.1 503 Busy\r\n\r\n", get, "down", "the status is 503"},
		{proxy.Check{Kind: proxy.CheckHTTP}, "HTTP/1.1 2OO OK\r\n\r\n", get, "down", "not HTTP's"},
		{proxy.Check{Kind: proxy.CheckHTTP}, "SSH-2.0\r\n", get, "down", "not HTTP's"},
		{proxy.Check{Kind: proxy.CheckHTTP}, strings.Repeat("x", 10_000), get, "down", "longer than"},
		{proxy.Check{Kind: proxy.CheckHTTP, Path: "/up?x=1", Host: "a.test", Status: 404}, "HTTP/1.1 404 No\r\n\r\n",
			"GET /up?x=1 HTTP/1.1\r\nHost: a.test\r\nUser-Agent: rondo proxy\r\nAccept: */*\r\nConnection: close\r\n\r\n", "up", ""},
		{proxy.Check{Kind: proxy.CheckHTTP, Status: 404}, "HTTP/1.1 200 OK\r\n\r\n", get, "down", "the status is 200"},
		{proxy.Check{Kind: proxy.CheckTLS}, "", "", "down", ""},
	} {
		w := newWorld(t, rondotest.Options{})
		var asked string
		w.answering(2, c.answer, &asked)
		w.apply(proxy.Pool{Targets: to(2), Check: c.check})
		w.Advance(4 * time.Second)
		p := w.pool().Targets[0]
		if asked != c.asks || p.State != c.state || p.Checks == 0 || !strings.Contains(p.CheckError, c.says) {
			t.Errorf("%+v, answer %q: asked %q, then %+v", c.check, c.answer, asked, p)
		}
		w.Await(func() { w.proxy.Close() })
		w.Advance(time.Minute)
		w.idle()
	}
}

// A check completes a TLS handshake.
func TestCheckTLS(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	config := &tls.Config{Certificates: []tls.Certificate{testcert.New("check").Issue(testcert.ECDSA, "a.test")}}
	w.Listen(new(rondo.Engine), "tcp", "127.0.0.1:2", rondo.Filtered(func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc((*rondo.Conn).Write)
	}, rtls.Server(config)))
	w.apply(proxy.Pool{Targets: to(2), Check: proxy.Check{Kind: proxy.CheckTLS}})
	w.Advance(10 * time.Second)
	if p := w.pool().Targets[0]; p.State != "up" || p.Checks < 4 || p.ChecksFailed > 0 {
		t.Errorf("the counts are %+v", p)
	}
}

// Rise and Fall, the times of the checks, and a pool whose Check goes away.
func TestRiseAndFall(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.Blackhole("192.0.2.1")
	check := proxy.Check{Kind: proxy.CheckTCP, Interval: 10 * time.Second, Timeout: 3 * time.Second, Rise: 2, Fall: 3}
	w.apply(proxy.Pool{Targets: to(2), Check: check})
	w.Run()
	if s := w.state(); s != "down" { // the first check decides alone
		t.Errorf("after one check the target is %s", s)
	}
	w.refused(w.Dial("tcp", front))
	ln := w.serve(2)
	if w.Advance(10 * time.Second); w.state() != "down" {
		t.Error("one check that succeeds is enough")
	}
	if w.Advance(10 * time.Second); w.state() != "up" {
		t.Error("two checks that succeed are not enough")
	}
	w.client(2).Close()
	w.stop(ln)
	if w.Advance(20 * time.Second); w.state() != "up" {
		t.Error("two checks that fail are enough")
	}
	if w.Advance(10 * time.Second); w.state() != "down" {
		t.Error("three checks that fail are not enough")
	}
	if log := w.events.String(); strings.Count(log, "a target is down") != 2 || strings.Count(log, "a target is up") != 1 {
		t.Errorf("the log is %s", log)
	}
	w.apply(proxy.Pool{Targets: to(2)})
	if w.Advance(20 * time.Second); w.state() != "up" {
		t.Error("a target without checks is down")
	}
	w.apply(proxy.Pool{Targets: to(2), Check: check})
	w.Run()
	if w.state() != "down" {
		t.Error("checks did not begin again")
	}
	before := w.pool().Targets[0].Checks
	if w.Advance(time.Minute); w.pool().Targets[0].Checks > before+7 {
		t.Errorf("%d checks in a minute", w.pool().Targets[0].Checks-before)
	}
	// A silent target fails too, and its checks end in time.
	silent := proxy.Target{Network: "tcp", Address: "192.0.2.1:80"}
	w.apply(proxy.Pool{Targets: []proxy.Target{silent}, Check: check})
	if w.Advance(4 * time.Second); w.state() != "down" {
		t.Error("a silent target is up")
	}
	w.apply(proxy.Pool{Name: "other", Targets: to(3)})
	w.Await(func() { w.proxy.Engine.Shutdown(w.Timeout(time.Minute)) })
}

// Targets fail and recover while clients come. No client sees an error: it gets a target that
// is up, or the next one if its target has failed since the last check.
func TestHealthUnderLoad(t *testing.T) {
	for seed := range uint64(3) {
		w := newWorld(t, rondotest.Options{Seed: seed + 1, Faults: rondotest.Harmless(0.05)})
		var lns [3]*rondo.Listener
		for i := range lns {
			lns[i] = w.serve(i + 2)
		}
		w.apply(proxy.Pool{Balance: proxy.Balance(seed % 3), Targets: to(2, 3, 4), Check: proxy.Check{Kind: proxy.CheckTCP, Interval: time.Second, Rise: 1, Fall: 1}})
		served := 0
		clients := func() {
			t.Helper()
			for range 3 {
				c := w.Dial("tcp", front)
				c.Send("hello")
				b := make([]byte, 7)
				if _, err := io.ReadFull(c, b); err != nil || string(b[2:]) != "hello" {
					t.Fatalf("seed %d, after %d clients: one read %q, %v\n%s", seed+1, served, b, err, w.events.String())
				}
				c.Close()
				served++
			}
			w.Advance(300 * time.Millisecond)
		}
		for round := range 9 {
			i := round % 3
			w.stop(lns[i])
			for range 8 {
				clients()
			}
			lns[i] = w.serve(i + 2)
			for range 8 {
				clients()
			}
		}
		if p := w.pool(); p.Retries == 0 || p.Targets[0].ChecksFailed == 0 || p.Targets[0].State != "up" {
			t.Errorf("seed %d: the counts are %+v", seed+1, p)
		}
	}
}

// Checks that mean nothing are refused.
func TestCheckMistakes(t *testing.T) {
	for want, c := range map[string]proxy.Check{
		"Check.Kind is 9":          {Kind: 9},
		"Check.Interval is -1ns":   {Interval: -1},
		"Check.Timeout is -1ns":    {Timeout: -1},
		"Check.Rise is -1":         {Rise: -1},
		"Check.Fall is -1":         {Fall: -1},
		`Check.Path is "up"`:       {Path: "up"},
		`Check.Path is "/a b"`:     {Path: "/a b"},
		`Check.Path is "/a\r\nb"`:  {Path: "/a\r\nb"},
		`Check.Host is "a.test\n"`: {Host: "a.test\n"},
		"Check.Status is 20":       {Status: 20},
	} {
		config := proxy.Config{Pools: []proxy.Pool{{Name: "web", Targets: to(2), Check: c}}}
		if err := config.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check: %v, want %q", err, want)
		}
	}
}

// Apply with another Check: the next check is made at once, not after the old Interval.
func TestCheckChanges(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	var asked string
	w.answering(2, "HTTP/1.1 404 Not Found\r\n\r\n", &asked)
	check := proxy.Check{Kind: proxy.CheckHTTP, Path: "/wrong", Interval: time.Hour, Rise: 1, Fall: 1}
	w.apply(proxy.Pool{Targets: to(2), Check: check})
	if w.Advance(time.Minute); w.state() != "down" {
		t.Errorf("the target is %s", w.state())
	}
	w.apply(proxy.Pool{Targets: to(2), Check: check})
	w.Run()
	if p := w.pool().Targets[0]; p.Checks != 1 {
		t.Errorf("%d checks, want 1: nothing has changed", p.Checks)
	}
	check.Path, check.Status, check.Interval = "/right", 404, time.Minute
	w.apply(proxy.Pool{Targets: to(2), Check: check})
	w.Run()
	if p := w.pool().Targets[0]; p.State != "up" || !strings.HasPrefix(asked, "GET /right") {
		t.Errorf("asked %q, then %+v", asked, p)
	}
	w.Advance(10 * time.Minute)
	if p := w.pool().Targets[0]; p.Checks < 10 || p.Checks > 13 {
		t.Errorf("%d checks in ten minutes", p.Checks)
	}
}

// A check that cannot be made, since the proxy has no descriptors left, tells nothing of the
// target.
func TestCheckWithoutDescriptors(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.serve(2)
	w.apply(proxy.Pool{Targets: to(2), Check: proxy.Check{Kind: proxy.CheckTCP, Fall: 1}})
	w.Advance(time.Second)
	before := w.pool().Targets[0].Checks
	proxy.EndCheck(w.proxy, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)})
	w.Run()
	if p := w.pool().Targets[0]; p.State != "up" || p.Checks != before {
		t.Errorf("the counts are %+v, before there were %d checks", p, before)
	}
	if w.Advance(time.Minute); w.pool().Targets[0].Checks < before+20 {
		t.Error("checks have stopped")
	}
}
