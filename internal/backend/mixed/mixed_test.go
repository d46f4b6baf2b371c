package mixed_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/internal/backend/mixed"
	"github.com/rondo-go/rondo/internal/pick"
)

// veiled hides everything of a connection except net.Conn's methods and those that a
// reset needs.
type veiled struct{ net.Conn }

func (v veiled) CloseWrite() error {
	return v.Conn.(interface{ CloseWrite() error }).CloseWrite()
}

func (v veiled) SetLinger(sec int) error {
	if l, ok := v.Conn.(interface{ SetLinger(int) error }); ok {
		return l.SetLinger(sec)
	}
	return nil
}

// veiling serves every accepted connection with std.
type veiling struct{ backend.Backend }

func (b veiling) Adopt(h backend.Handle) (backend.File, error) {
	if h.Obj == nil {
		nc, err := b.Export(h)
		if err != nil {
			return 0, err
		}
		if h, err = b.Import(veiled{nc}); err != nil {
			return 0, err
		}
	}
	f, err := b.Backend.Adopt(h)
	if err == nil && f.Slot()&backend.SecondTable == 0 {
		return 0, errors.New("the main backend adopted a veiled connection")
	}
	return f, err
}

// TestSeam runs the conformance suite with each platform backend as main. One end of
// each connection is std's.
func TestSeam(t *testing.T) {
	for _, name := range pick.Available() {
		if name == "std" {
			continue // nothing goes beside it
		}
		t.Run(name, func(t *testing.T) {
			open, _, err := pick.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			backendtest.Seam(t, func(t testing.TB) backend.Backend {
				b, err := open()
				if err != nil {
					t.Fatal(err)
				}
				return veiling{pick.Beside(b)}
			})
		})
	}
}

// TestBeside: Beside twice adds one std, and std gets none beside it.
func TestBeside(t *testing.T) {
	for _, name := range pick.Available() {
		open, _, err := pick.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := open()
		if err != nil {
			t.Fatal(err)
		}
		one := pick.Beside(b)
		if _, ok := one.(*mixed.Backend); ok == (name == "std") || pick.Beside(one) != one {
			t.Errorf("beside %s: %T, then %T", name, one, pick.Beside(one))
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSlowClose: a connection whose Close blocks delays only itself.
func TestSlowClose(t *testing.T) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			open, _, err := pick.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			main, err := open()
			if err != nil {
				t.Fatal(err)
			}
			b := pick.Beside(main)
			near, far := net.Pipe()
			defer far.Close()
			slow := &slowConn{Conn: near, may: make(chan struct{})}
			h, err := b.Import(slow)
			if err != nil {
				t.Fatal(err)
			}
			f, err := b.Adopt(h)
			if err != nil {
				t.Fatal(err)
			}
			ops := []backend.Op{{Kind: backend.Shutdown, File: f}, {Kind: backend.Close, File: f}}
			for i := range ops {
				b.Submit(&ops[i])
			}
			var c backend.Completion
			for range 3 { // must not block
				if _, err := b.Wait(b.Now().Add(5 * time.Millisecond)); err != nil {
					t.Fatal(err)
				}
				if b.Next(&c) {
					t.Fatalf("kind %d completed", c.Op.Kind)
				}
			}
			close(slow.may)
			for i := 0; i < len(ops); {
				if _, err := b.Wait(backend.Forever); err != nil {
					t.Fatal(err)
				}
				for ; b.Next(&c); i++ {
					if c.Op != &ops[i] || c.Err != nil {
						t.Fatalf("completion %d: kind %d, %v", i, c.Op.Kind, c.Err)
					}
				}
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// slowConn's Close and CloseWrite block until may is closed.
type slowConn struct {
	net.Conn
	may chan struct{}
}

func (c *slowConn) CloseWrite() error { <-c.may; return nil }
func (c *slowConn) Close() error      { <-c.may; return c.Conn.Close() }
