package difftest

import (
	"bytes"
	"testing"

	"github.com/rondo-go/rondo/resp"
)

// TestDocs compares what COMMAND DOCS says of commands, besides texts, with what
// redis-server says.
func TestDocs(t *testing.T) {
	path, reason := findReference()
	if path == "" {
		t.Skip(reason)
	}
	theirs, ours := ask(t, startReference(t, path, "")), ask(t, startRondo(t, "", 1, ""))
	compared := 0
	for _, name := range ours("COMMAND", "LIST").Elems {
		a, b := ours("COMMAND", "DOCS", string(name.Str)), theirs("COMMAND", "DOCS", string(name.Str))
		if len(b.Elems) == 0 {
			t.Logf("redis-server has no %s", name.Str)
			continue
		}
		for _, key := range []string{"since", "group", "doc_flags", "deprecated_since", "arguments"} {
			got, want := lookUp(a.Elems[1], key), lookUp(b.Elems[1], key)
			if !bytes.Equal(got, want) {
				t.Errorf("%s: %s is\n%q, want\n%q", name.Str, key, got, want)
			}
			compared++
		}
	}
	if compared < 500 {
		t.Errorf("only %d properties were compared", compared)
	}
}

// ask returns a function that sends a request to a server and returns the reply.
func ask(t *testing.T, s *server) func(request ...string) resp.Value {
	c, err := s.dial("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return func(request ...string) resp.Value {
		t.Helper()
		v, err := c.ask(request...)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// lookUp returns the value of a key of a map, encoded, or nil.
func lookUp(m resp.Value, key string) []byte {
	for i := 0; i+1 < len(m.Elems); i += 2 {
		if string(m.Elems[i].Str) == key {
			return resp.AppendValue(nil, m.Elems[i+1])
		}
	}
	return nil
}
