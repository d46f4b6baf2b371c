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
	list   []*client // serving clients
	byID   map[int64]*client
	// leaving is the set of clients that have left while their connections
	// still send output.
	leaving map[*client]struct{}
	lastID  int64
	// connections counts the open sockets, including closing ones.
	connections int
	refused     []*client     // of these: clients that admit refused, oldest first
	condemned   []*client     // clients to abort at the end of the batch
	stopping    bool          // new clients are refused
	idle        chan struct{} // while stopping: to close when connections is 0, or over is set
	over        bool          // the engine has ended, and aborted all connections
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
	s.handOver() // admit may have cut off another client
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

// unready is the handler of a connection whose filters are not ready yet. If
// they fail, the connection closes.
type unready struct{ server *Server }

func (unready) Data(*rondo.Conn, []byte) (int, error) { return 0, nil }

func (u unready) Closed(*rondo.Conn, error) { u.server.unready.Add(-1) }

// maxInput is unlimited, since client.checkInput bounds incomplete requests.
const maxInput = math.MaxInt

// maxOutput bounds the output held for clients without a
// client-output-buffer-limit, which normal clients have by default. The replies
// to one request may be that long; the next request does not run while many
// bytes wait.
const maxOutput = 1 << 30

// admit makes the client of a new connection. If it refuses the client, it
// replies with the reason and closes the connection.
func (l *clients) admit(t transport) *client {
	s := l.server
	c := l.newClient(t)
	refusal := ""
	switch {
	case l.stopping:
		refusal = "ERR server is shutting down"
	case l.full():
		refusal = errMaxClients
	case s.config.protected && s.users.Default.NoPass() && !isLocal(t.peer()):
		refusal = errProtected
	}
	if refusal != "" {
		t.write(resp.AppendError(nil, refusal))
		l.refuse(c)
		return c
	}
	l.add(c)
	if s.config.timeout > 0 {
		t.setIdle(time.Duration(s.config.timeout) * time.Second)
	}
	return c
}

// admitLocal makes the client of a Client. It refuses none, but ends it at once
// if the server is shutting down.
func (l *clients) admitLocal(t *local) *client {
	c := l.newClient(t)
	t.client, c.local, c.limited, c.Proto = c, true, true, 3
	c.beDefault()
	l.add(c)
	if l.stopping || l.over {
		c.abort(rondo.ErrClosed)
	}
	return c
}

func (l *clients) newClient(t transport) *client {
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
		created:   now,
		active:    now,
	}
	c.beDefault()
	return c
}

func (l *clients) add(c *client) {
	c.index = len(l.list)
	l.list = append(l.list, c)
	l.byID[c.id] = c
}

// maxRefused is the number of refused clients that may take their time to
// close. More of them would use up the reserved descriptors.
const maxRefused = ReservedFiles / 2

// refuse ends a client that has been sent the reason for its refusal. If there
// are too many of these, refuse cuts off the oldest, which had the most time to
// read its reply.
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

// full reports whether the number of clients has reached maxclients. It counts
// clients that have left and still have output to send.
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

// isLocal reports whether the server trusts that a peer is on this host. Redis
// 7.0 trusts only these two loopback addresses.
func isLocal(peer net.Addr) bool {
	tcp, ok := peer.(*net.TCPAddr)
	return !ok || tcp.IP.Equal(net.IPv4(127, 0, 0, 1)) || tcp.IP.Equal(net.IPv6loopback)
}

// leave removes a client from everything that refers to it. Its connection may
// still have output to send.
func (c *client) leave() {
	if c.gone {
		return
	}
	c.gone = true
	c.server.stalls.forget(c)
	c.closing = true
	l := &c.server.clients
	last := l.list[len(l.list)-1]
	l.list[c.index] = last
	last.index = c.index
	l.list[len(l.list)-1] = nil
	l.list = l.list[:len(l.list)-1]
	delete(l.byID, c.id)
	c.discard()
	c.endWait()
	c.endSubscriptions()
	c.endMonitor()
	c.server.tracking.leave(c)
	c.server.upkeep.forget(c)
	c.server.clientMemory.set(c, 0)
}

// close ends the client once its written output has been sent.
func (c *client) close() {
	c.leave()
	p := whileMoving
	if c.server.clients.stopping {
		p = untilStopped
	}
	c.server.clients.seeOff(c, p)
}

// kill ends a client on another client's request. It waits only briefly for the
// killed client to read its pending output.
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

// condemn makes the end of the batch abort a client. Until then the lists that
// contain the client stay as they are.
func (s *Server) condemn(c *client, err error) {
	if c.closing {
		return
	}
	c.closing = true
	c.condemned = err
	s.clients.condemned = append(s.clients.condemned, c)
}

// carryOut aborts the condemned clients.
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

// closed records that a connection has gone.
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

// stop makes the server refuse new clients and close idle once all connections
// have gone.
func (l *clients) stop(idle chan struct{}) {
	if !l.stopping {
		l.stopping, l.idle = true, idle
	}
}

// end calls how for every client.
func (l *clients) end(how func(*client)) {
	for _, c := range l.everybody() {
		how(c)
	}
}

// listed yields the clients that CLIENT LIST shows: the serving ones, and those
// that have left but still have output to read, unless they were refused or
// killed.
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

// everybody returns the serving and the leaving clients.
func (l *clients) everybody() []*client {
	leaving := slices.SortedFunc(maps.Keys(l.leaving), func(a, b *client) int { return cmp.Compare(a.id, b.id) })
	return append(leaving, l.list...)
}

// engineEnds records that the engine ends all connections. Connections of other
// loops may end after this loop has ended, and are then no longer counted.
func (l *clients) engineEnds() {
	l.over = true
	for _, c := range l.everybody() {
		if c.local {
			c.abort(rondo.ErrClosed)
		}
	}
	l.server.scripts.end()
	l.checkIdle()
}

func (l *clients) checkIdle() {
	if l.idle != nil && (l.connections == 0 || l.over) {
		close(l.idle)
		l.idle = nil
	}
}

// class is a type of client, as client-output-buffer-limit and CLIENT KILL TYPE
// name it.
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

// classMaster is a valid type of CLIENT KILL, but no client has it.
const classMaster = classes

// classByName accepts both names of replicas.
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

// idleChanged tells the transport how long the client may now be silent.
func (c *client) idleChanged() {
	seconds := c.server.config.timeout
	if c.subscribed() || c.wait != nil || c.monitor {
		seconds = 0
	}
	c.transport.setIdle(time.Duration(seconds) * time.Second)
}
