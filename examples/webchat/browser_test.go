//go:build chromium

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/rondo-go/rondo/httpd"
)

// This test needs Debian's packages chromium and chromium-driver. CI runs it:
//
//	go test -tags chromium ./examples/webchat

// patience is how long the browser may take for anything on a loaded machine.
const patience = time.Minute

// A browser is a session of ChromeDriver, by the protocol of W3C's WebDriver.
type browser struct {
	t       *testing.T
	session string // its URL
}

var (
	started = regexp.MustCompile(`started successfully on port (\d+)`)
	client  = http.Client{Timeout: patience}
)

// newBrowser starts ChromeDriver and a headless browser.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	driver := exec.Command("chromedriver", "--port=0")
	out, err := driver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	driver.Stderr = os.Stderr
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		driver.Process.Kill()
		driver.Wait()
	})
	b := &browser{t: t}
	for lines := bufio.NewScanner(out); b.session == ""; {
		if !lines.Scan() {
			t.Fatalf("chromedriver does not tell its port: %v", lines.Err())
		}
		if m := started.FindStringSubmatch(lines.Text()); m != nil {
			b.session = "http://127.0.0.1:" + m[1] + "/session"
		}
	}
	go io.Copy(io.Discard, out)
	args := []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir=" + t.TempDir()}
	var made struct{ SessionID string }
	b.call("POST", "", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"goog:chromeOptions": map[string]any{"args": args}}}}, &made)
	b.session += "/" + made.SessionID
	t.Cleanup(func() { b.call("DELETE", "", nil, nil) })
	return b
}

// call sends a command. value is for the result; nil: it is not looked at.
func (b *browser) call(method, path string, command, value any) {
	b.t.Helper()
	var body io.Reader
	if command != nil {
		p, err := json.Marshal(command)
		if err != nil {
			b.t.Fatal(err)
		}
		body = bytes.NewReader(p)
	}
	r, err := http.NewRequest(method, b.session+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	p, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.t.Fatalf("%s %s: %v, %s", method, path, err, p)
	}
	if value == nil {
		return
	}
	if err := json.Unmarshal(p, &struct{ Value any }{value}); err != nil {
		b.t.Fatalf("%s %s: %v, %s", method, path, err, p)
	}
}

// A tab is a window of the browser.
type tab struct {
	*browser
	handle string
}

// open opens a page in a new tab.
func (b *browser) open(url string) *tab {
	b.t.Helper()
	var made struct{ Handle string }
	b.call("POST", "/window/new", map[string]string{"type": "tab"}, &made)
	t := &tab{b, made.Handle}
	t.turnTo()
	b.call("POST", "/url", map[string]string{"url": url}, nil)
	return t
}

func (t *tab) turnTo() {
	t.t.Helper()
	t.call("POST", "/window", map[string]string{"handle": t.handle}, nil)
}

// submit types a text as a user does, and presses the form's button.
func (t *tab) submit(text string) {
	t.t.Helper()
	t.turnTo()
	t.call("POST", "/element/"+t.find("#input")+"/value", map[string]string{"text": text}, nil)
	t.call("POST", "/element/"+t.find("button")+"/click", struct{}{}, nil)
}

// find returns the number of an element.
func (t *tab) find(selector string) string {
	t.t.Helper()
	var found map[string]string
	t.call("POST", "/element", map[string]string{"using": "css selector", "value": selector}, &found)
	for _, id := range found {
		return id
	}
	t.t.Fatalf("the page has no %s", selector)
	return ""
}

// shows waits until the page has these lines.
func (t *tab) shows(want ...string) {
	t.t.Helper()
	t.turnTo()
	var lines []string
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		t.call("POST", "/execute/sync", map[string]any{"args": []any{},
			"script": `return Array.from(document.querySelectorAll("#lines div"), line => line.textContent)`}, &lines)
		if slices.Equal(lines, want) {
			return
		}
		if time.Since(begin) > patience {
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

	b := newBrowser(t)
	page := fmt.Sprintf("http://%s/", ln.Addr())
	ann, bob := b.open(page), b.open(page)
	ann.submit("ann")
	ann.shows("ann is here")
	bob.submit("bob")
	bob.shows("bob is here")
	ann.submit("hello, κόσμε <b>")
	bob.submit("hi")
	bob.shows("bob is here", "ann: hello, κόσμε <b>", "bob: hi")
	ann.shows("ann is here", "bob is here", "ann: hello, κόσμε <b>", "bob: hi")

	bob.turnTo()
	b.call("DELETE", "/window", nil, nil)
	ann.shows("ann is here", "bob is here", "ann: hello, κόσμε <b>", "bob: hi", "bob has left")

	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != http.ErrServerClosed {
		t.Error(err)
	}
	ann.shows("ann is here", "bob is here", "ann: hello, κόσμε <b>", "bob: hi", "bob has left", "disconnected: 1001 ")
}
