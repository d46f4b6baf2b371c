package main

import (
	"cmp"
	"math"
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/upgrade"
)

type echoCommand struct {
	Addr       []string `help:"Address to serve: tcp://host:port, or host:port, or unix:///path, or udp://host:port, or unixgram:///path. May be given several times." default:"tcp://127.0.0.1:5000" placeholder:"ADDR" sep:"none"`
	Loops      int      `help:"Number of event loops; 0: one for each processor." default:"0" placeholder:"N"`
	Maxclients int      `help:"Number of clients served at once. More are closed." default:"10000" placeholder:"N"`
	Timeout    duration `help:"Close clients that are silent for this long, as in 300 or 5m. 0: never." default:"0" placeholder:"TIME"`
	upgradeFlags
	stayFlag
	tlsFlags
	engineFlags
}

// Help is the end of "rondo echo --help".
func (*echoCommand) Help() string {
	return `Examples:

  rondo echo
      Serve 127.0.0.1:5000 on every processor. Try: nc 127.0.0.1 5000

  rondo echo --addr unix:///tmp/echo.sock --timeout 30s
      Serve a unix socket; close clients that are silent for half a minute.

  rondo echo --tls-cert server.crt --tls-key server.key --tls-auth-clients no
      Serve TLS. Try: openssl s_client -connect 127.0.0.1:5000

SIGINT and SIGTERM stop it: it sends clients their pending output, then closes them. SIGUSR2 starts the program anew, which takes over listeners and connections: nobody notices. SIGHUP reloads the certificate.`
}

// Run serves until a signal.
func (e *echoCommand) Run() error {
	endpoints, err := parseAddresses(e.Addr, streamsAndPackets)
	if err != nil {
		return err
	}
	if err := cmp.Or(e.upgradeFlags.check(), checkNumber("--maxclients", e.Maxclients, 1, math.MaxInt)); err != nil {
		return err
	}
	e.replaces = e.isHeir()
	engine, log, _, err := e.engine(e.Loops)
	if err != nil {
		return err
	}
	filters, err := e.filters(log)
	if err != nil {
		return err
	}
	if len(filters) > 0 {
		logFailures(engine, log)
	}
	engine.MaxConns = e.Maxclients
	if err := engine.Start(); err != nil {
		return err
	}
	if err := e.showAdmin("rondo echo", engine, log); err != nil {
		engine.Close()
		return err
	}
	defer e.admin.close()
	s := &engineServer{Server: &upgrade.Server{Engine: engine, Name: "rondo echo", Arrive: e.open(nil), Logger: log},
		flags: &e.upgradeFlags, loops: &e.loopFlags, log: log, shutdown: engine.Shutdown}
	s.stayer = stayer{time.Duration(e.StayTimeout), s.stayOn(nil)}
	addrs, err := s.listen(endpoints, func(network, address string, already net.Listener) (net.Addr, error) {
		if isPackets(network) {
			return s.ListenPacket(network, address, rondo.PacketHandlerFunc(echoPacket))
		}
		return s.Listen(network, address, already, func(ln net.Listener) (*rondo.Listener, error) {
			return listenOn(engine, network, address, ln, e.open(filtersFor(network, filters)))
		})
	})
	if err != nil {
		return err
	}
	log.Info("rondo echo is ready", "addresses", addrs, "backend", engine.BackendName(), "loops", loopsOf(engine))
	return s.serve()
}

// open returns the function that makes the Handler of a connection.
func (e *echoCommand) open(filters []rondo.FilterOpenFunc) rondo.OpenFunc {
	return func(c *rondo.Conn) rondo.Handler {
		if e.Timeout > 0 {
			c.SetIdle(time.Duration(e.Timeout))
		}
		c.Use(nil, filters...)
		return echoing{}
	}
}

// echoing is the Handler of all connections. It knows nothing but what they hold, so each of them
// can pass to another process at any time.
type echoing struct{ bridge.Ours }

// Data sends back what has come.
func (echoing) Data(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) }

// Closed does nothing.
func (echoing) Closed(*rondo.Conn, error) {}

// Leaves implements bridge.Passer.
func (echoing) Leaves() bridge.CanLeave { return bridge.LeavesNow }

// State implements bridge.Passer.
func (echoing) State() []byte { return nil }

// Arrived implements bridge.Passer.
func (echoing) Arrived([]byte) {}
