package main

import (
	"math"
	"net"
	"time"

	"github.com/rondo-go/rondo"
)

type echoCommand struct {
	Addr       []string `help:"Address to serve: tcp://host:port, or host:port, or unix:///path, or udp://host:port, or unixgram:///path. May be given several times." default:"tcp://127.0.0.1:5000" placeholder:"ADDR" sep:"none"`
	Loops      int      `help:"Number of event loops; 0: one for each processor." default:"0" placeholder:"N"`
	Maxclients int      `help:"Number of clients served at once. More are closed." default:"10000" placeholder:"N"`
	Timeout    duration `help:"Close clients that are silent for this long, as in 300 or 5m. 0: never." default:"0" placeholder:"TIME"`
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
      Serve TLS. Try: openssl s_client -connect 127.0.0.1:5000`
}

// Run serves until a signal.
func (e *echoCommand) Run() error {
	endpoints, err := parseAddresses(e.Addr, streamsAndPackets)
	if err != nil {
		return err
	}
	if err := checkNumber("--maxclients", e.Maxclients, 1, math.MaxInt); err != nil {
		return err
	}
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
	signals := notify()
	addrs, err := listen(endpoints, log, func(network, address string, already net.Listener) (listening, error) {
		if isPackets(network) {
			return echoPackets(engine, network, address)
		}
		return listenOn(engine, network, address, already, func(c *rondo.Conn) rondo.Handler {
			if e.Timeout > 0 {
				c.SetIdle(time.Duration(e.Timeout))
			}
			c.Use(nil, filtersFor(network, filters)...)
			return rondo.HandlerFunc((*rondo.Conn).Write)
		})
	})
	if err != nil {
		engine.Close()
		return err
	}
	log.Info("rondo echo is ready", "addresses", addrs, "backend", engine.BackendName(), "loops", loopsOf(engine))
	return e.serve(engine, log, signals, engine.Shutdown)
}
