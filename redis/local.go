package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/resp"
)

// A Client calls a Server's commands from within the program, without a
// connection. It has what a connection has: a database, a transaction, watched
// keys, a name. It needs no password, is never refused, and gets RESP3 values
// until HELLO chooses RESP2. Make one with Server.NewClient.
type Client struct {
	server *Server
	turn   chan struct{} // held by the Do that is under way, unless it is on the loop
	local  *local
}

// NewClient returns a Client of the server. It starts the server if Listen has
// not: a server without a Listener serves its Clients only. On a
// rondotest.Network, call NewClient and Client.Do within Network.Await.
func (s *Server) NewClient() (*Client, error) {
	if err := s.start(); err != nil {
		return nil, err
	}
	return &Client{server: s, turn: make(chan struct{}, 1), local: &local{server: s}}, nil
}

// Do runs a command and returns its reply. An error reply is a Value of the kind
// resp.Error, and no error. The error is the context's, or rondo.ErrClosed if
// the client or the server has ended. Do copies args, and the Value belongs to
// the caller. A command without a reply (CLIENT REPLY OFF) gives the zero Value.
//
// Call Do from any goroutine; calls of one Client wait for each other. A
// blocking command, such as BLPOP, waits until ctx is done. Commands between
// MULTI and EXEC are queued, so use one Client for each transaction that runs at
// the same time. Messages have nowhere to go: SUBSCRIBE and MONITOR are refused.
//
// Do may be called on the engine's first loop too, to which the keys belong, for
// instance in a Handler. There it runs the command at once and does not wait: a
// blocking command replies as after its timeout, and ctx has no meaning. It
// panics on a further loop of the engine, which it would block.
func (c *Client) Do(ctx context.Context, args ...string) (resp.Value, error) {
	switch {
	case ctx == nil:
		return resp.Value{}, errors.New("redis: Client.Do: ctx is nil: want a context, such as context.Background()")
	case len(args) == 0:
		return resp.Value{}, errors.New("redis: Client.Do: no arguments: want the name of a command")
	}
	l := c.local
	p := &pending{args: byteArgs(args)}
	if c.server.loop.Calling() {
		l.start(p, false)
		return p.value, p.err
	}
	c.server.mustNotWait("Client.Do")
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return resp.Value{}, ctx.Err()
	}
	defer func() { <-c.turn }()
	p.done = make(chan struct{})
	if err := c.server.loop.Post(func() { l.start(p, true) }); err != nil {
		return resp.Value{}, err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		c.server.loop.Post(func() { l.cancel(p, ctx.Err()) }) // an error: the client has ended
		<-p.done
	}
	return p.value, p.err
}

// Close ends the client. It discards its transaction and its watches. Close may
// be called from any goroutine, and more than once.
func (c *Client) Close() {
	c.server.loop.Post(c.local.quit) // an error: the engine has ended, and the client with it
}

// mustNotWait panics on a loop of the server's engine.
func (s *Server) mustNotWait(method string) {
	for l := range s.Engine.Loops() {
		if l.Calling() {
			panic(fmt.Sprintf("redis: %s was called on loop %d, which it would block: call it on the engine's first loop, or from another goroutine", method, l.ID()))
		}
	}
}

// byteArgs copies arguments, each into memory that a command may keep.
func byteArgs(args []string) [][]byte {
	b := make([][]byte, len(args))
	for i, arg := range args {
		b[i] = []byte(arg)
	}
	return b
}

// pending is a call of Client.Do.
type pending struct {
	args     [][]byte
	value    resp.Value
	err      error
	canceled error         // what ended the context
	done     chan struct{} // closed when value and err are set; nil on the loop
}

// local is the transport of a Client. It belongs to the keyspace's loop. The
// server's client is made when the first command runs, which is on the loop.
type local struct {
	server *Server
	client *client
	out    []byte   // the reply
	call   *pending // the call that waits for a reply; nil: none
	ended  bool     // the server knows that the client has gone
	inner  bool     // of a Call
}

// start runs a command. Its reply may come later, if it may wait.
func (l *local) start(p *pending, mayWait bool) {
	if l.client == nil && !l.ended {
		l.client = l.server.clients.admitLocal(l)
	}
	c := l.client
	switch {
	case l.ended || c.closing:
		p.finish(resp.Value{}, rondo.ErrClosed)
		return
	case l.call != nil:
		p.finish(resp.Value{}, errors.New("redis: Client.Do was called on the loop while another Do of this Client waits: use a Client of its own"))
		return
	}
	l.call = p
	c.nowait = !mayWait
	s := l.server
	if s.current == nil {
		s.begin(c)
		defer s.end(c)
		l.run(p.args)
		s.completed = true
	} else {
		l.run(p.args) // within another client's command
	}
	if c.wait == nil {
		l.reply()
	}
}

// run runs a command. After a panic the client ends.
func (l *local) run(args [][]byte) {
	c := l.client
	completed := false
	if l.inner {
		l.server.tracking.inner++
		defer func() { l.server.tracking.inner-- }()
	}
	defer func() {
		if !completed && !l.inner {
			c.abort(errPanicked)
		}
	}()
	c.B = l.buffer()
	c.runRequest(args, true)
	c.conclude()
	completed = true
}

// reply ends the call with the reply that has been written.
func (l *local) reply() {
	if p := l.call; p != nil {
		l.call = nil
		p.finish(l.take(), nil)
	}
}

// take returns the reply that has been written.
func (l *local) take() resp.Value {
	v, _, _, err := resp.ReadValue(l.out)
	l.out = nil
	if err != nil { // only an added command writes replies that are no RESP
		return resp.Value{Kind: resp.Error, Str: []byte("ERR the reply is invalid: " + err.Error())}
	}
	return v
}

// cancel ends the wait of a blocking command.
func (l *local) cancel(p *pending, err error) {
	if l.call != p || l.client.wait == nil {
		return
	}
	p.canceled = err
	l.server.timedOut(l.client.wait)
}

func (l *local) quit() {
	switch {
	case l.client == nil:
		l.ended = true
	case !l.client.closing:
		l.client.close()
	}
}

func (p *pending) finish(v resp.Value, err error) {
	if p.value, p.err = v, err; p.canceled != nil {
		p.value, p.err = resp.Value{}, p.canceled
	}
	if p.done != nil {
		close(p.done)
	}
}

// end tells the server that the client has gone.
func (l *local) end(err error) {
	if l.ended || l.inner {
		return
	}
	l.ended = true
	if p := l.call; p != nil && len(l.out) > 0 {
		l.reply()
	} else if p != nil {
		l.call = nil
		p.finish(resp.Value{}, rondo.ErrClosed)
	}
	l.server.clients.closed(l.client, err)
}

func (l *local) buffer() []byte        { return l.out[len(l.out):] }
func (l *local) write(p []byte)        { l.out = append(l.out, p...) }
func (l *local) pending() int          { return 0 }
func (l *local) refresh()              {}
func (l *local) full() bool            { return false }
func (l *local) allow(int)             {}
func (l *local) resume()               { l.reply() }
func (l *local) close(patience)        { l.end(nil) }
func (l *local) abort(err error)       { l.end(err) }
func (l *local) setIdle(time.Duration) {}
func (l *local) local() net.Addr       { return nil }
func (l *local) peer() net.Addr        { return nil }

// refuses replies with an error if a Client or a Call may not use a command:
// neither can take messages, and a Call has no connection.
func (c *client) refuses(cmd *command) bool {
	switch {
	case c.depth > 0 && cmd.flags&(flagNoscript|flagInMulti) != 0 && cmd.flags&flagBlocking == 0:
		c.fail("ERR '" + cmd.name + "' concerns a connection: a command can't run it")
	case cmd.flags&flagPubsub != 0 && cmd.flags&flagNoscript != 0 || cmd.name == "monitor" || cmd.name == "client|tracking":
		c.fail("ERR '" + cmd.name + "' sends messages, which a client within the program can't take")
	default:
		return false
	}
	return true
}
