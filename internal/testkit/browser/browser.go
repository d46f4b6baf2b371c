// Package browser drives a headless Chromium, for tests of pages. It needs Debian's packages
// chromium and chromium-driver: such tests have the build tag chromium.
package browser

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"
)

// Patience is how long the browser may take for anything on a loaded machine.
const Patience = time.Minute

// A Browser is a session of ChromeDriver, by the protocol of W3C's WebDriver.
type Browser struct {
	t       *testing.T
	session string // its URL
}

var (
	started = regexp.MustCompile(`started successfully on port (\d+)`)
	client  = http.Client{Timeout: Patience}
)

// New starts ChromeDriver and a headless browser.
func New(t *testing.T) *Browser {
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
	b := &Browser{t: t}
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
	b.Call("POST", "", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"goog:chromeOptions": map[string]any{"args": args}}}}, &made)
	b.session += "/" + made.SessionID
	t.Cleanup(func() { b.Call("DELETE", "", nil, nil) })
	return b
}

// Call sends a command. value is for the result; nil: it is not looked at.
func (b *Browser) Call(method, path string, command, value any) {
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

// A Tab is a window of the browser.
type Tab struct {
	*Browser
	handle string
}

// Open opens a page in a new tab.
func (b *Browser) Open(url string) *Tab {
	b.t.Helper()
	var made struct{ Handle string }
	b.Call("POST", "/window/new", map[string]string{"type": "tab"}, &made)
	t := &Tab{b, made.Handle}
	t.TurnTo()
	b.Call("POST", "/url", map[string]string{"url": url}, nil)
	return t
}

// TurnTo makes the tab the one that commands are for.
func (t *Tab) TurnTo() {
	t.t.Helper()
	t.Call("POST", "/window", map[string]string{"handle": t.handle}, nil)
}

// Find returns the number of an element.
func (t *Tab) Find(selector string) string {
	t.t.Helper()
	var found map[string]string
	t.Call("POST", "/element", map[string]string{"using": "css selector", "value": selector}, &found)
	for _, id := range found {
		return id
	}
	t.t.Fatalf("the page has no %s", selector)
	return ""
}

// Run runs the body of a JavaScript function in the page, and puts what it returns into value;
// nil: it is not looked at.
func (t *Tab) Run(script string, value any) {
	t.t.Helper()
	t.Call("POST", "/execute/sync", map[string]any{"args": []any{}, "script": script}, value)
}

// Until waits until a JavaScript expression is true.
func (t *Tab) Until(expression string) {
	t.t.Helper()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		var is bool
		if t.Run("return Boolean("+expression+")", &is); is {
			return
		}
		if time.Since(begin) > Patience {
			t.t.Fatalf("waited in vain for: %s", expression)
		}
	}
}

// Screenshot returns the window as a PNG.
func (t *Tab) Screenshot() []byte {
	t.t.Helper()
	var text string
	t.Call("GET", "/screenshot", nil, &text)
	image, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.t.Fatal(err)
	}
	return image
}
