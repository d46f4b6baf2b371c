package serve

import (
	"bytes"

	"github.com/tidwall/redcon"
)

// redconRedis is the toy on redcon. All toys share redcon's parser.
func redconRedis(address string, _ int) error {
	store := newStore()
	return redcon.ListenAndServe(address, func(c redcon.Conn, cmd redcon.Command) {
		switch {
		case len(cmd.Args) == 3 && bytes.EqualFold(cmd.Args[0], set):
			store.set(cmd.Args[1], cmd.Args[2])
			c.WriteString("OK")
		case len(cmd.Args) == 2 && bytes.EqualFold(cmd.Args[0], get):
			if v, ok := store.get(cmd.Args[1]); ok {
				c.WriteBulk(v)
			} else {
				c.WriteNull()
			}
		default:
			c.WriteError(unknown)
		}
	}, nil, nil)
}
