//go:build chromium

package main

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/internal/testkit/browser"
)

// This test needs Debian's packages chromium and chromium-driver. CI runs it:
//
//	go test -tags chromium ./examples/webchat

// A tab is one that a user has opened.
type tab struct {
	*browser.Tab
	t *testing.T
}

// submit types a text as a user does, and presses the form's button.
func (t tab) submit(text string) {
	t.t.Helper()
	t.TurnTo()
	t.Call("POST", "/element/"+t.Find("#input")+"/value", map[string]string{"text": text}, nil)
	t.Call("POST", "/element/"+t.Find("button")+"/click", struct{}{}, nil)
}

// shows waits until the page has these lines.
func (t tab) shows(want ...string) {
	t.t.Helper()
	t.TurnTo()
	var lines []string
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		t.Run(`return Array.from(document.querySelectorAll("#lines div"), line => line.textContent)`, &lines)
		if slices.Equal(lines, want) {
			return
		}
		if time.Since(begin) > browser.Patience {
			t.t.Fatalf("the page shows %q, want %q", lines, want)
		}
	}
}

// TestBrowser: two tabs talk, one leaves, and the server's end is seen by the other.
func TestBrowser(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := server(new(room))
	ended := make(chan error, 1)
	go func() { ended <- httpd.Serve(srv, ln) }()

	b := browser.New(t)
	page := fmt.Sprintf("http://%s/", ln.Addr())
	ann, bob := tab{b.Open(page), t}, tab{b.Open(page), t}
	ann.submit("ann")
	ann.shows("ann is here")
	bob.submit("bob")
	bob.shows("bob is here")
	ann.submit("hello, κόσμε <b>")
	bob.submit("hi")
	bob.shows("bob is here", "ann: hello, κόσμε <b>", "bob: hi")
	ann.shows("ann is here", "bob is here", "ann: hello, κόσμε <b>", "bob: hi")

	bob.TurnTo()
	b.Call("DELETE", "/window", nil, nil)
	ann.shows("ann is here", "bob is here", "ann: hello, κόσμε <b>", "bob: hi", "bob has left")

	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != http.ErrServerClosed {
		t.Error(err)
	}
	ann.shows("ann is here", "bob is here", "ann: hello, κόσμε <b>", "bob: hi", "bob has left", "disconnected: 1001 ")
}
