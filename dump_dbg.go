package rondo

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync"
)

var dumpF, _ = os.OpenFile("/tmp/run/dump.txt", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0644)
var dumpM sync.Mutex
var dumpS = map[*Conn]int{}

func (c *Conn) dump(what string) {
	f := c.stack()
	if f == nil || !c.isClosing() || f.carry.len() == 0 || f.carry.busy {
		return
	}
	dumpM.Lock()
	dumpS[c]++
	n := dumpS[c]
	dumpM.Unlock()
	if n > 2 {
		return
	}
	fmt.Fprintln(dumpF, what, f.carry.busy, f.carry.len(), string(debug.Stack()))
}
