package redis

import (
	"cmp"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/resp"
)

// clients is all connections of a server.
type clients struct {
	server *Server
	list   []*client // that are served, not those that have left
	byID   map[int64]*client
	// leaving is those that have left and are still being sent output.
	leaving map[*client]struct{}
	lastID  int64
	// connections counts those whose sockets are open, closing ones too.
	connections int
	refused     []*client     // of these: that were not let in, in the order they came
	condemned   []*client     // to be cut off at the end of the batch
	stopping    bool          // no more are let in
	idle        chan struct{} // while stopping: to be closed when connections is 0, or over set
	over        bool          // the engine is, and has aborted all connections
}

func (l *clients) init(s *Server) {
	l.server = s
	l.byID = make(map[int64]*client)
	l.leaving = make(map[*client]struct{})
}

// setLimits gives a client's connection what one command, and its replies, may take.
func setLimits(conn *rondo.Conn) {
	l := conn.Limits()
	l.MaxInput, l.MaxOutput = maxInput, maxOutput
	conn.SetLimits(l)
}

// open is the rondo.OpenFunc of all listeners.
func (s *Server) open(conn *rondo.Conn) rondo.Handler {
	if conn.Loop() != s.loop {
		return newRemote(s, conn)
	}
	setLimits(conn)
	d := &direct{server: s, conn: conn}
	d.client = s.clients.admit(d)
	s.handOver() // it may have cut off another one
	return d
}

// filtered is the rondo.OpenFunc of a listener with filters.
func (s *Server) filtered(filters []rondo.FilterOpenFunc) rondo.OpenFunc {
	limit := int64(s.maxUnready)
	return func(conn *rondo.Conn) rondo.Handler {
		if s.unready.Add(1) > limit {
			s.unready.Add(-1)
			return nil
		}
		conn.SetHandler(unready{s})
		conn.Use(func(conn *rondo.Conn) rondo.Handler {
			conn.SetHandler(rondo.HandlerFunc(nil))
			s.unready.Add(-1)
			return s.open(conn)
		}, filters...)
		return conn.Handler()
	}
}

// unready is the handler of a connection whose filters are not ready. It is closed
// if they fail.
type unready struct{ server *Server }

func (unready) Data(*rondo.Conn, []byte) (int, error) { return 0, nil }

func (u unready) Closed(*rondo.Conn, error) { u.server.unready.Add(-1) }

// maxInput leaves it to client.checkInput to bound what is held of an
// incomplete request.
const maxInput = math.MaxInt

// maxOutput bounds what is held of output where client-output-buffer-limit is
// not set, as it is not for normal clients. The replies to one request can be
// that long; the next is not run while many of them wait.
const maxOutput = 1 << 30

// admit makes the client of a new connection, or tells it why not and closes
// it.
func (l *clients) admit(t transport) *client {
	s := l.server
	l.lastID++
	l.connections++
	s.stats.connections++
	now := s.tick()
	c := &client{
		Reply:     resp.Reply{Proto: 2},
		server:    s,
		transport: t,
		db:        &s.space.dbs[0],
		id:        l.lastID,
		authed:    s.config.password == "",
		created:   now,
		active:    now,
	}
	refusal := ""
	switch {
	case l.stopping:
		refusal = "ERR server is shutting down"
	case l.full():
		refusal = errMaxClients
	case s.config.protected && s.config.password == "" && !isLocal(t.peer()):
		refusal = errProtected
	}
	if refusal != "" {
		t.write(resp.AppendError(nil, refusal))
		l.refuse(c)
		return c
	}
	c.index = len(l.list)
	l.list = append(l.list, c)
	l.byID[c.id] = c
	if s.config.timeout > 0 {
		t.setIdle(time.Duration(s.config.timeout) * time.Second)
	}
	return c
}

// maxRefused is how many that were refused may take their time to close: more of
// them would use up the descriptors that are reserved.
const maxRefused = ReservedFiles / 2

// refuse ends a client that is not let in and has been told why. The one that
// has had the most time to read that is cut off, if they are too many.
func (l *clients) refuse(c *client) {
	l.server.stats.rejected++
	c.gone, c.closing, c.refused = true, true, true
	l.seeOff(c, whileMoving)
	l.refused = append(l.refused, c)
	if len(l.refused) > maxRefused {
		first := l.refused[0]
		l.refused = slices.Delete(l.refused, 0, 1)
		first.transport.abort(rondo.ErrClosed)
	}
}

// full reports whether as many clients as may be are served, or still have to be
// sent output.
func (l *clients) full() bool {
	n, most := len(l.list), l.server.config.maxClients
	if n >= most || n+len(l.leaving) < most {
		return n >= most
	}
	for c := range l.leaving {
		if c.transport.pending() > 0 {
			n++
		}
	}
	return n >= most
}

const errProtected = "DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. " +
	"In this mode connections are only accepted from the loopback interface. " +
	"If you want to connect from external computers to Redis you may adopt one of the following solutions: " +
	"1) Just disable protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis from the same host the server is running, however MAKE SURE Redis is not publicly accessible from internet if you do so. Use CONFIG REWRITE to make this change permanent. " +
	"2) Alternatively you can just disable the protected mode by editing the Redis configuration file, and setting the protected mode option to 'no', and then restarting the server. " +
	"3) If you started the server manually just for testing, restart it with the '--protected-mode no' option. " +
	"4) Setup a an authentication password for the default user. " +
	"NOTE: You only need to do one of the above things in order for the server to start accepting connections from the outside."

// isLocal reports whether a peer is trusted to be on this host. Of the
// loopback addresses Redis 7.0 trusts these two only.
func isLocal(peer net.Addr) bool {
	tcp, ok := peer.(*net.TCPAddr)
	return !ok || tcp.IP.Equal(net.IPv4(127, 0, 0, 1)) || tcp.IP.Equal(net.IPv6loopback)
}

// leave takes a client out of everything that refers to it. Its connection may
// still have output to send.
func (c *client) leave() {
	if c.gone {
		return
	}
	c.gone = true
	c.closing = true
	l := &c.server.clients
	last := l.list[len(l.list)-1]
	l.list[c.index] = last
	last.index = c.index
	l.list[len(l.list)-1] = nil
	l.list = l.list[:len(l.list)-1]
	delete(l.byID, c.id)
	c.discard()
	c.endSubscriptions()
	c.server.upkeep.forget(c)
}

// close ends the client when it has been sent what was written.
func (c *client) close() {
	c.leave()
	p := whileMoving
	if c.server.clients.stopping {
		p = untilStopped
	}
	c.server.clients.seeOff(c, p)
}

// kill ends a client that another one wants gone, also if it does not take what it
// is owed.
func (c *client) kill() {
	c.killed = true
	c.leave()
	c.server.clients.seeOff(c, shortly)
}

// seeOff closes the connection of a client that has left.
func (l *clients) seeOff(c *client, p patience) {
	if c.killed {
		p = shortly // whatever else ends it
	}
	l.leaving[c] = struct{}{}
	c.transport.close(p)
}

// abort ends the client now.
func (c *client) abort(err error) {
	c.leave()
	c.transport.abort(err)
}

// condemn has a client aborted at the end of the batch. Until then lists that
// it is in stay as they are.
func (s *Server) condemn(c *client, err error) {
	if c.closing {
		return
	}
	c.closing = true
	c.condemned = err
	s.clients.condemned = append(s.clients.condemned, c)
}

// carryOut ends those that were condemned.
func (l *clients) carryOut() {
	for len(l.condemned) > 0 {
		c := l.condemned[0]
		l.condemned = l.condemned[1:]
		description := slog.String("client", c.describe())
		c.abort(c.condemned)
		l.server.log().Warn("client closed", description, slog.Any("error", c.condemned))
	}
	l.condemned = nil
}

// closed takes note that a connection has gone.
func (l *clients) closed(c *client, err error) {
	c.leave()
	delete(l.leaving, c)
	if i := slices.Index(l.refused, c); i >= 0 {
		l.refused = slices.Delete(l.refused, i, i+1)
	}
	l.connections--
	l.checkIdle()
	if err != nil && !errors.Is(err, rondo.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) && c.condemned == nil {
		l.server.log().Debug("client lost", "id", c.id, "error", err) // last: it may panic
	}
}

// stop lets no more clients in, and has idle closed when all connections have
// gone.
func (l *clients) stop(idle chan struct{}) {
	if !l.stopping {
		l.stopping, l.idle = true, idle
	}
}

// end ends every client.
func (l *clients) end(how func(*client)) {
	for _, c := range l.everybody() {
		how(c)
	}
}

// listed is the clients that are known: those that are served, and those that have
// left and are still to take what they are owed, unless nobody wants them to.
func (l *clients) listed() iter.Seq[*client] {
	return func(yield func(*client) bool) {
		for _, c := range l.list {
			if !yield(c) {
				return
			}
		}
		for c := range l.leaving {
			if !c.refused && !c.killed && c.transport.pending() > 0 && !yield(c) {
				return
			}
		}
	}
}

// everybody is the clients that are served, and those that are leaving.
func (l *clients) everybody() []*client {
	leaving := slices.SortedFunc(maps.Keys(l.leaving), func(a, b *client) int { return cmp.Compare(a.id, b.id) })
	return append(leaving, l.list...)
}

// engineEnds takes note that all connections end with the engine. Those of other loops
// may do so after this one has ended, and not be counted any more.
func (l *clients) engineEnds() {
	l.over = true
	l.checkIdle()
}

func (l *clients) checkIdle() {
	if l.idle != nil && (l.connections == 0 || l.over) {
		close(l.idle)
		l.idle = nil
	}
}

// class is what client-output-buffer-limit and CLIENT KILL TYPE tell apart.
type class uint8

const (
	classNormal class = iota
	classReplica
	classPubsub
	classes
)

var classNames = [classes]string{"normal", "slave", "pubsub"}

func (c *client) class() class {
	if c.subscribed() {
		return classPubsub
	}
	return classNormal
}

// classMaster is a type that can be asked for, and that no client has.
const classMaster = classes

// classByName knows replicas by both names.
func classByName(name []byte) (class, bool) {
	switch strings.ToLower(string(name)) {
	case "normal":
		return classNormal, true
	case "slave", "replica":
		return classReplica, true
	case "pubsub":
		return classPubsub, true
	case "master":
		return classMaster, true
	}
	return 0, false
}

// idleChanged tells the transport how long the client may be silent now.
func (c *client) idleChanged() {
	seconds := c.server.config.timeout
	if c.subscribed() {
		seconds = 0
	}
	c.transport.setIdle(time.Duration(seconds) * time.Second)
}
