//go:build foreign

package websocket

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
	rondows "github.com/rondo-go/rondo/websocket"
)

// These tests need Python's websockets, for the interpreter that RONDO_PYTHON names, and
// Node's ws, where NODE_PATH says. CI runs them:
//
//	go test -tags foreign .

// foreign are programs that are an echo server or a client.
var foreign = map[string][]string{
	"websockets": {python(), "peer.py"},
	"ws":         {"node", "peer.js"},
}

func python() string {
	if p := os.Getenv("RONDO_PYTHON"); p != "" {
		return p
	}
	return "python3"
}

// modes are what both sides want of compression.
var modes = map[string]*rondows.Compression{
	"none":        nil,
	"takeover":    {Threshold: 1},
	"no-takeover": {NoContextTakeover: true, PeerNoContextTakeover: true, Threshold: 1},
	"small":       {WindowBits: 9, PeerWindowBits: 9, Threshold: 1},
}

func onForeign(t *testing.T, f func(t *testing.T, program []string, mode string)) {
	for name, program := range foreign {
		for mode := range modes {
			t.Run(name+" "+mode, func(t *testing.T) { f(t, program, mode) })
		}
	}
}

// TestForeignClients: our server, on connections of its own and by httpd; their clients.
func TestForeignClients(t *testing.T) {
	onForeign(t, func(t *testing.T, program []string, mode string) {
		closed := make(chan error, 1)
		s := &rondows.Server{
			Open:    func(*rondows.Conn, *http.Request) rondows.Handler { return echo{closed} },
			Options: rondows.Options{Compression: modes[mode]},
		}
		for way, open := range map[string]rondo.OpenFunc{
			"alone": s.OpenFunc(),
			"httpd": (&httpd.Server{HTTP: &http.Server{Handler: s}}).Open,
		} {
			e := &rondo.Engine{NumLoops: 1}
			defer e.Close()
			ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, open)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			args := append(program[1:len(program):len(program)], "client", mode, "ws://"+ln.Addr().String()+"/")
			if out, err := exec.CommandContext(ctx, program[0], args...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", way, err, out)
			}
			select {
			case err := <-closed:
				if rondows.CodeOf(err) != 4000 {
					t.Errorf("%s: our server's Closed got %v", way, err)
				}
			case <-time.After(patience):
				t.Errorf("%s: our server's Closed was not called", way)
			}
		}
	})
}

// TestForeignServers: our client, their servers.
func TestForeignServers(t *testing.T) {
	onForeign(t, func(t *testing.T, program []string, mode string) {
		cmd := exec.Command(program[0], append(program[1:len(program):len(program)], "server", mode)...)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe() // its end ends the server
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer in.Close()
		port, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		e := &rondo.Engine{NumLoops: 1}
		defer e.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		o := &ourConn{in: make(chan gwsMessage, 10), closed: make(chan error, 1)}
		d := rondows.Dialer{Options: rondows.Options{Compression: modes[mode]}}
		o.ref, err = d.Dial(ctx, e, "ws://127.0.0.1:"+strings.TrimSpace(port)+"/", func(c *rondows.Conn, _ *http.Response) rondows.Handler {
			if c.Compressed() != (mode != "none") {
				t.Errorf("compression was negotiated: %t", c.Compressed())
			}
			return o
		})
		if err != nil {
			t.Fatal(err)
		}
		talk(t, o)
	})
}
