package serve

import (
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
)

// A Rondo is rondo on one of its backends. Its redis server is cmd/rondo.
type Rondo struct {
	Name    string
	Backend string
	Spin    time.Duration
	Spare   spare
}

// spare says which engines ask for a spare processor.
type spare int

const (
	ofOne  spare = iota // engines with one loop, as in cmd/rondo
	always              // all engines
	never
)

// spins are the values of Engine.Spin other than none. The first makes a server
// on the same machine quick; the second outlasts the wake-up of a client that
// sleeps between two messages.
var spins = []time.Duration{20 * time.Microsecond, 100 * time.Microsecond}

// Rondos are rondo on each backend of this platform, also with each of spins.
var Rondos = func() []Rondo {
	var list []Rondo
	for _, b := range pick.Names() {
		name := "rondo-" + b
		list = append(list, Rondo{Name: name, Backend: b}, Rondo{name + "-spare", b, 0, always}, Rondo{name + "-nospare", b, 0, never})
		for _, d := range spins {
			list = append(list, Rondo{name + "-spin" + strings.Replace(d.String(), "µ", "u", 1), b, d, ofOne})
		}
	}
	return list
}()

func rondos() []Library {
	var list []Library
	for _, r := range Rondos {
		list = append(list, Library{Name: r.Name, Do: map[string]Server{"echo": r.echo, "tls": r.tlsEcho, "udp": r.udp}})
	}
	return list
}

// echo is the echo server. RONDO_BENCH_BURN slows it down on purpose, by a CPU
// time for each piece of input: see bench compare --burn.
func (r Rondo) echo(address string, loops int) error { return r.serve(address, loops) }

func (r Rondo) serve(address string, loops int, filters ...rondo.FilterOpenFunc) error {
	echo := func(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) }
	if burn, _ := time.ParseDuration(os.Getenv("RONDO_BENCH_BURN")); burn > 0 {
		echo = func(c *rondo.Conn, in []byte) (int, error) {
			for begin := time.Now(); time.Since(begin) < burn; {
			}
			return c.Write(in)
		}
	}
	open := func(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc(echo) }
	if len(filters) > 0 {
		open = rondo.Filtered(open, filters...)
	}
	engine := r.Spare.ask(&rondo.Engine{Backend: r.Backend, NumLoops: loops, Spin: r.Spin})
	if _, err := engine.Listen("tcp", address, rondo.SocketOptions{}, open); err != nil {
		return err
	}
	return engine.Wait()
}

// ask sets e.SpareProcessor. bench compare also builds this code with commits
// whose Engine takes a spare processor without being asked, and lacks the
// field.
func (s spare) ask(e *rondo.Engine) *rondo.Engine {
	if f := reflect.ValueOf(e).Elem().FieldByName("SpareProcessor"); f.IsValid() {
		f.SetBool(s == always || s == ofOne && e.NumLoops == 1)
	}
	return e
}
