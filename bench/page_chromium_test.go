//go:build chromium

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/testkit/browser"
)

// This test needs Debian's packages chromium and chromium-driver. The picture in the documents
// is made by
//
//	go test -tags chromium -run '^TestPageInBrowser$' -screenshot ../docs/admin.png -args

var screenshot = flag.String("screenshot", "", "file for a picture of the page of --admin")

// TestPageInBrowser: a browser shows the page of a server with 5,000 busy connections.
func TestPageInBrowser(t *testing.T) {
	if err := raiseFileLimit(); err != nil {
		t.Fatal(err)
	}
	s, shown := shownSide(t, &pageCommand{Backend: "epoll", Conns: 5000, flags: []string{"--enable-debug-command", "local"}})
	defer use(t, s.port).Close()
	ctx, stop := context.WithCancel(context.Background())
	loaded := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if _, err := s.slice(ctx, time.Second, 0); err != nil {
				loaded <- err
				return
			}
		}
		loaded <- nil
	}()
	defer func() {
		stop()
		if err := <-loaded; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	tab := browser.New(t).Open("http://" + shown + "/")
	tab.Call("POST", "/window/rect", map[string]int{"width": 1400, "height": 1500}, nil)
	tab.Until(`document.querySelectorAll("#conns tbody tr").length === 200`)
	// Rates take two events, and measures another one; the load goes on meanwhile.
	tab.Until(`document.querySelectorAll("#times tbody tr").length > 0 && [...document.querySelectorAll("#loops tbody td")].some(td => td.textContent.endsWith("k"))`)
	tab.Until(`document.getElementById("shown").textContent.includes("of 5,0") && document.querySelectorAll("#slow details").length === 1`)
	waiting := "/element/" + tab.Find(`#conns th[data-key="unsent"]`) + "/click"
	tab.Call("POST", waiting, struct{}{}, nil)
	tab.Until(`document.getElementById("conns").dataset.order === "-unsent"`)
	if *screenshot == "" {
		return
	}
	if err := os.WriteFile(*screenshot, tab.Screenshot(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// use makes a Redis server worth looking at: keys, a slow command, and replies that nobody reads.
func use(t *testing.T, port int) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	text := "SET large " + strings.Repeat("x", 30_000) + "\r\n"
	for i := range 2000 {
		text += fmt.Sprintf("SET session:%d user EX %d\r\n", i, 3600+i)
	}
	text += "DEBUG SLEEP 0.2\r\n" + strings.Repeat("GET large\r\n", 1000)
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}
