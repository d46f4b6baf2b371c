package relay

import (
	"cmp"
	"errors"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// Dial connects to a server, on the client's loop, and joins the client and the server. It
// returns the Handler that the client has until then: an OpenFunc returns that Handler, other
// callers pass it to SetHandler. The client is A of the pair.
//
// filters are for the connection to the server, as for rondo.FilteredDial. Until the server is
// connected and the filters are ready, the client is paused. If the dial fails, the client is
// aborted: its peer sees a reset. If the client closes or gets another Handler first, the dial
// is canceled. In all of these cases Options.Done is called. To answer the client instead, or to
// try another server, use Loop.Dial and Join.
//
// Only the client's loop may call Dial.
func Dial(client *rondo.Conn, network, address string, s rondo.SocketOptions, o Options, filters ...rondo.FilterOpenFunc) rondo.Handler {
	d := &dialer{client: client, options: o}
	client.Pause()
	d.dialing = client.Loop().Dial(network, address, s, rondo.FilteredDial(d.connected, filters...))
	return d
}

// A dialer is the Handler of a client whose server is being dialed.
type dialer struct {
	bridge.Ours
	client  *rondo.Conn
	options Options
	dialing *rondo.Dialing
	over    bool  // the result of the dial no longer matters
	err     error // of the dial
}

// connected is called when the dial has ended.
func (d *dialer) connected(server *rondo.Conn, err error) rondo.Handler {
	switch {
	case d.over:
		return nil
	case err != nil:
		d.err = err
		d.client.Abort(err)
		return nil
	}
	d.over = true // also if Join finds that the client is closing
	Join(d.client, server, d.options)
	return server.Handler()
}

// Data leaves the input to the pair.
func (d *dialer) Data(c *rondo.Conn, _ []byte) (int, error) {
	c.Pause()
	return 0, nil
}

// EOF leaves the end of the stream to the pair, whose EOF is called too.
func (d *dialer) EOF(*rondo.Conn) {}

// Replaced is called by Join, and when the program gives the client another Handler.
func (d *dialer) Replaced() {
	if d.cancel() {
		d.client.Loop().Defer(func() { d.tell(End{Err: errReplaced}) })
	}
}

// Closed ends the dial.
func (d *dialer) Closed(c *rondo.Conn, err error) {
	switch {
	case !d.cancel():
	case d.err != nil:
		d.tell(End{Err: d.err})
	case err == nil || errors.Is(err, rondo.ErrClosed) || errors.Is(err, rondo.ErrDetached):
		d.tell(End{Err: cmp.Or(err, rondo.ErrClosed)})
	default:
		d.tell(End{By: c, Err: err})
	}
}

// cancel ends the dial. It reports whether the dial was under way.
func (d *dialer) cancel() bool {
	if d.over {
		return false
	}
	d.over = true
	d.dialing.Cancel()
	return true
}

func (d *dialer) tell(e End) {
	if d.options.Done != nil {
		d.options.Done(e)
	}
}
