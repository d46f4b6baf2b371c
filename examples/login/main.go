// Login serves a line protocol that begins with a login dialogue: three tries,
// half a minute in all. It is written twice, as a coroutine (straight.go) and as
// callbacks (callbacks.go), to be compared: docs/coroutines.md does so.
//
//	go run ./examples/login
//	nc 127.0.0.1 5001
package main

import (
	"errors"
	"flag"
	"log"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

const (
	loginTime = 30 * time.Second
	tries     = 3
	maxLine   = 256
)

var errLineTooLong = errors.New("line is too long")

// passwords is who may log in.
var passwords = map[string]string{"ann": "goat", "bob": "cheese"}

func main() {
	address := flag.String("addr", "tcp://127.0.0.1:5001", "address to listen on")
	callbacks := flag.Bool("callbacks", false, "use the callbacks, not the coroutine")
	flag.Parse()
	open := coro.Handler(straight)
	if *callbacks {
		open = newDialogue
	}
	log.Fatal(rondo.Serve(*address, open))
}
