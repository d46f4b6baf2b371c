package serve

import (
	"bytes"
	"sync"

	"github.com/tidwall/redcon"
)

var (
	set     = []byte("set")
	get     = []byte("get")
	unknown = "ERR this toy knows SET key value and GET key only"
)

// A store holds the keys of a toy. All loops share it.
type store struct {
	mu   sync.RWMutex
	keys map[string][]byte
}

func newStore() *store { return &store{keys: make(map[string][]byte)} }

func (s *store) set(key, value []byte) {
	value = bytes.Clone(value) // value is a part of the received bytes
	s.mu.Lock()
	s.keys[string(key)] = value
	s.mu.Unlock()
}

// get returns a value. Values never change: set replaces them.
func (s *store) get(key []byte) (value []byte, ok bool) {
	s.mu.RLock()
	value, ok = s.keys[string(key)]
	s.mu.RUnlock()
	return value, ok
}

// A session is a toy's state of a connection.
type session struct {
	carry []byte // an incomplete request
	out   []byte
	args  [][]byte
}

// serve runs the complete requests in the received bytes and returns their
// replies, which are valid until the next call. It does not keep in. All toys
// share redcon's parser, so that the comparison is of libraries and not of
// parsers.
func (s *session) serve(store *store, in []byte) ([]byte, error) {
	if len(s.carry) > 0 {
		s.carry = append(s.carry, in...)
		in = s.carry
	}
	s.out = s.out[:0]
	for len(in) > 0 {
		complete, args, _, rest, err := redcon.ReadNextCommand(in, s.args)
		if err != nil {
			return nil, err
		}
		if !complete {
			break
		}
		s.args, in = args, rest
		s.out = reply(store, s.out, args)
	}
	s.carry = append(s.carry[:0], in...)
	return s.out, nil
}

func reply(store *store, out []byte, args [][]byte) []byte {
	switch {
	case len(args) == 3 && bytes.EqualFold(args[0], set):
		store.set(args[1], args[2])
		return redcon.AppendOK(out)
	case len(args) == 2 && bytes.EqualFold(args[0], get):
		if v, ok := store.get(args[1]); ok {
			return redcon.AppendBulk(out, v)
		}
		return redcon.AppendNull(out)
	}
	return redcon.AppendError(out, unknown)
}
