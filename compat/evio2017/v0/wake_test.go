package evio

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Wake calls Data with nil, once for all Wakes that came before the call, and tells
// whether the connection exists.
func TestWake(t *testing.T) {
	onStreams(t, func(t *testing.T, scheme string) {
		var server Server
		var mu sync.Mutex
		answers := map[int]string{}
		var calls atomic.Int32
		w := serve(t, Events{
			Serving: func(s Server) Action {
				server = s
				if s.Wake(1) {
					t.Error("a connection could be woken before there was one")
				}
				return None
			},
			Opened: func(id int, _ Info) ([]byte, Options, Action) {
				for range 3 {
					if !server.Wake(id) {
						t.Error("Opened cannot wake its connection")
					}
				}
				return nil, Options{}, None
			},
			Data: func(id int, in []byte) ([]byte, Action) {
				if in != nil {
					text := string(in)
					go func() {
						mu.Lock()
						answers[id] += text
						mu.Unlock()
						server.Wake(id)
					}()
					return nil, None
				}
				calls.Add(1)
				mu.Lock()
				defer mu.Unlock()
				out := answers[id]
				answers[id] = ""
				return []byte(out), None
			},
		}, at(t, scheme))
		c := w.dial(0)
		for i := range 200 {
			line := fmt.Sprintf("line %d\n", i)
			say(t, c, line)
			hear(t, c, line)
		}
		if n := calls.Load(); n > 201 {
			t.Errorf("Data was called %d times with nil for 201 wakes and 2 more", n)
		}
		c.Close()
		w.await("closed 1")
		if server.Wake(1) || server.Wake(2) {
			t.Error("a connection could be woken that does not exist")
		}
		w.stop.Store(true)
		w.end()
		if server.Wake(1) {
			t.Error("a connection could be woken after the end")
		}
	})
}

// Wakes of a connection whose peer reads nothing wait, and others are served.
func TestWakesWait(t *testing.T) {
	chunk := make([]byte, 64<<10)
	var made atomic.Int64
	var server Server
	w := serve(t, Events{
		Serving: func(s Server) Action { server = s; return None },
		Data: func(id int, in []byte) ([]byte, Action) {
			if id == 2 {
				return in, None
			}
			server.Wake(id)
			made.Add(1)
			return chunk, None
		},
	}, "tcp://127.0.0.1:0")
	slow := w.dial(0)
	w.await("opened 1")
	say(t, slow, "go")
	quick := w.dial(0)
	for range 200 {
		say(t, quick, "ping")
		hear(t, quick, "ping")
	}
	time.Sleep(20 * time.Millisecond)
	before := made.Load()
	if before > 1<<10 {
		t.Errorf("%d MB of output were made for a peer that takes none", before>>4)
	}
	if _, err := io.CopyN(io.Discard, slow, 64<<20); err != nil {
		t.Error(err)
	}
}
