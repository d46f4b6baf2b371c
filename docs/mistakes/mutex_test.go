package mistakes_test

import (
	"fmt"
	"net"
	"sync"

	"github.com/rondo-go/rondo/coro"
)

// A board is shared by the coroutines of all loops.
type board struct {
	mu   sync.Mutex
	text string
}

// show unlocks before it waits: Fprintln may wait for a slow peer.
func (b *board) show(_ *coro.Co, c net.Conn) error {
	b.mu.Lock()
	text := b.text
	b.mu.Unlock() // not deferred
	_, err := fmt.Fprintln(c, text)
	return err
}
