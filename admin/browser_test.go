//go:build chromium

package admin

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/internal/testkit/browser"
	"github.com/rondo-go/rondo/watchdog"
)

// This test needs Debian's packages chromium and chromium-driver. CI runs it:
//
//	go test -tags chromium ./admin

// TestBrowser: the page follows the engine, sorts, and shows texts as texts.
func TestBrowser(t *testing.T) {
	e := &rondo.Engine{NumLoops: 2}
	address := testkit.Listen(t, e, testkit.Echo)
	const evil = "<img src=x onerror=document.title='evil'>"
	cell := make(chan string, 1)
	cell <- evil
	p := New(e, Options{Name: "a <b>server</b>", Sections: []Section{{Name: "Own", Read: func(context.Context) ([]Table, error) {
		text := <-cell
		cell <- text
		return []Table{{Name: evil, Columns: []string{"name", "size"}, Rows: [][]any{{text, 1}, {"b", 3}, {"c", 2}}}}, nil
	}}}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: p}
	go httpd.Serve(srv, ln)
	t.Cleanup(func() { srv.Close() })
	b := browser.New(t)
	tab := b.Open("http://" + ln.Addr().String() + "/")
	tab.Until(`document.title === "a <b>server</b>" && document.querySelectorAll("#loops tbody tr").length === 2`)
	first := testkit.Dial(t, address)
	testkit.Echoes(t, first, "hello")
	tab.Until(`document.querySelector("#totals dd").textContent === "1"`) // an update
	second := testkit.Dial(t, address)
	testkit.Echoes(t, second, "hello, hello")
	tab.Until(`document.querySelectorAll("#conns tbody tr").length === 2`)

	peers := `[...document.querySelectorAll("#conns tbody tr")].map(r => r.cells[1].textContent)`
	bytesIn := "/element/" + tab.Find(`#conns th[data-key="in"]`) + "/click"
	for _, order := range []struct {
		sort string
		want []string
	}{
		{"-in", []string{second.LocalAddr().String(), first.LocalAddr().String()}},
		{"in", []string{first.LocalAddr().String(), second.LocalAddr().String()}},
	} {
		tab.Call("POST", bytesIn, struct{}{}, nil)
		want, _ := json.Marshal(order.want)
		tab.Until(`document.getElementById("conns").dataset.order === "` + order.sort + `" && JSON.stringify(` + peers + `) === ` + "`" + string(want) + "`")
	}
	second.Close()
	tab.Until(`document.querySelectorAll("#conns tbody tr").length === 1`) // without a click

	names := `[...document.querySelectorAll("#sections tbody tr")].map(r => r.cells[0].textContent).join()`
	tab.Until(names + ` === "` + evil + `,b,c"`)
	size := "/element/" + tab.Find(`#sections th[data-key="1"]`) + "/click"
	tab.Call("POST", size, struct{}{}, nil)
	tab.Until(names + ` === "b,c,` + evil + `"`)
	<-cell
	cell <- "plain"
	tab.Until(names + ` === "b,c,plain"`) // the order stays
	tab.Until(`document.title === "a <b>server</b>" && document.querySelectorAll("img").length === 0`)

	for l := range e.Loops() {
		p.Report(watchdog.Report{Loop: l, For: time.Second, Func: evil, Stack: []byte("goroutine 1 " + evil), Over: true})
	}
	tab.Until(`document.querySelectorAll("#slow details").length === 2 && document.querySelector("#slow pre").textContent.includes("onerror")`)

	srv.Close()
	tab.Until(`document.getElementById("status").textContent === "the server does not answer"`)
}
