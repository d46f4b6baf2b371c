package redis

import (
	"fmt"

	"github.com/rondo-go/rondo/resp"
)

// killFilter selects the clients that CLIENT KILL closes.
type killFilter struct {
	addr, laddr *string // nil: any
	user        *string
	id          int64
	class       class
	hasClass    bool
	skipMe      bool
}

func clientKillCommand(c *client, args [][]byte) {
	f := killFilter{skipMe: true}
	old := len(args) == 3 // CLIENT KILL addr
	if old {
		f.addr = text(args[2])
		f.skipMe = false
	} else if !f.parse(c, args[2:]) {
		return
	}
	killed := 0
	for _, x := range c.server.clients.sorted() {
		if !f.match(x) || x == c && f.skipMe {
			continue
		}
		killed++
		if x == c {
			c.closing = true // conclude closes it, after the reply
		} else {
			x.kill()
		}
	}
	switch {
	case !old:
		c.Int(int64(killed))
	case killed == 0:
		c.fail("ERR No such client")
	default:
		c.ok()
	}
}

func (f *killFilter) parse(c *client, args [][]byte) bool {
	for ; len(args) >= 2; args = args[2:] {
		v := args[1]
		switch {
		case isWord(args[0], "ID"):
			var ok bool
			if f.id, ok = resp.ParseInt(v); !ok || f.id < 1 {
				c.fail("ERR client-id should be greater than 0")
				return false
			}
		case isWord(args[0], "TYPE"):
			if f.class, f.hasClass = c.classArg(v); !f.hasClass {
				return false
			}
		case isWord(args[0], "ADDR"):
			f.addr = text(v)
		case isWord(args[0], "LADDR"):
			f.laddr = text(v)
		case isWord(args[0], "USER"):
			if f.user = text(v); c.server.users.Find(v) == nil {
				c.fail(fmt.Sprintf("ERR No such user '%s'", v))
				return false
			}
		case isWord(args[0], "SKIPME") && isWord(v, "YES"):
			f.skipMe = true
		case isWord(args[0], "SKIPME") && isWord(v, "NO"):
			f.skipMe = false
		default:
			c.fail(errSyntax)
			return false
		}
	}
	if len(args) > 0 {
		c.fail(errSyntax)
		return false
	}
	return true
}

func text(b []byte) *string {
	s := string(b)
	return &s
}

func (f *killFilter) match(c *client) bool {
	return (f.addr == nil || *f.addr == c.addr()) &&
		(f.laddr == nil || *f.laddr == c.laddr()) &&
		(f.user == nil || *f.user == c.user.Name()) &&
		(f.id == 0 || f.id == c.id) &&
		(!f.hasClass || f.class == c.class())
}
