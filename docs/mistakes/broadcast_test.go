package mistakes_test

import (
	"errors"

	"github.com/rondo-go/rondo"
)

var errSlow = errors.New("the peer does not read")

// broadcast writes to all connections of a loop. One that does not read is cut off.
func broadcast(l *rondo.Loop, message []byte) {
	for c := range l.Conns() {
		if c.Full() { // more than Engine.HighWater waits
			c.Abort(errSlow)
			continue
		}
		c.Write(message)
	}
}
