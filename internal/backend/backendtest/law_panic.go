package backendtest

import (
	"errors"
	"strings"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
)

// panicCostsItsConnAlone: a panic in any of a handler's methods ends only its
// connection. It is logged with its stack.
func panicCostsItsConnAlone(w World) {
	var log testkit.Log
	e := &rondo.Engine{NumLoops: 1, Logger: log.Logger()}
	cause := errors.New("division of a goat")
	next := make(chan rondo.OpenFunc, 1)
	addr := w.Listen(e, func(c *rondo.Conn) rondo.Handler { return (<-next)(c) })

	bystander := &handler{w: w}
	next <- bystander.one()
	other := w.Dial(addr)
	check := func(what string) {
		send(w, other, []byte(what))
		expect(w, other, []byte(what))
	}
	check("before")

	inData := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.Write([]byte("half an answer"))
		panic(cause)
	}}
	next <- inData.one()
	p := w.Dial(addr)
	send(w, p, []byte("x"))
	var panicked *rondo.PanicError
	if err := inData.untilClosed(); !errors.As(err, &panicked) || !errors.Is(err, cause) ||
		!strings.Contains(string(panicked.Stack), "panicCostsItsConnAlone") {
		w.Errorf("Closed got %v, want a PanicError with its stack", err)
	}
	expectReset(w, p)
	check("after Data")

	inEOF := &handler{w: w, eof: func(*rondo.Conn) { panic(cause) }}
	next <- inEOF.one()
	p = w.Dial(addr)
	p.CloseWrite()
	inEOF.untilClosed()
	check("after EOF")

	next <- func(*rondo.Conn) rondo.Handler { panic(cause) }
	p = w.Dial(addr)
	expectReset(w, p)
	check("after OpenFunc")

	next <- func(*rondo.Conn) rondo.Handler { return panicsInClosed{} }
	p = w.Dial(addr)
	p.Close()
	check("after Closed")

	bystander.do(func(c *rondo.Conn) {
		c.Loop().Post(func() { panic(cause) })
		c.Loop().AfterFunc(0, func() { panic(cause) })
	})
	check("after Post and AfterFunc")
	w.Until("all panics", func() bool { return e.Stats().Panics >= 6 })
	if n := e.Stats().Panics; n != 6 {
		w.Errorf("%d of 6 panics were counted", n)
	}
	if text := log.String(); strings.Count(text, cause.Error()) < 6 || !strings.Contains(text, "law_panic.go") {
		w.Errorf("the log lacks some of 6 panics with their stacks:\n%s", text)
	}
}

type panicsInClosed struct{}

func (panicsInClosed) Data(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil }
func (panicsInClosed) Closed(*rondo.Conn, error)                  { panic("a goat; division of a goat") }
