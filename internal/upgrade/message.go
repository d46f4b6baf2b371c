package upgrade

// protocol is the version of the messages between the processes. A new process that speaks
// another one is refused, and the old one goes on.
const protocol = 2

// The kinds of messages, in the order of an upgrade. Those with files say which. Messages of other
// kinds are connections, from old to new, between ready and end: they are the server's.
const (
	kindHello   = "hello"   // new to old: its version, and the name of its server
	kindSocket  = "socket"  // old to new: the sockets of an address, or some of them
	kindSockets = "sockets" // old to new: that was all of them
	kindReady   = "ready"   // new to old: it accepts clients, and has Kept these sockets
	kindEnd     = "end"     // old to new: that was all
	kindDone    = "done"    // new to old: and all has come
	kindBack    = "back"    // old to new, at any time: the old process goes on, the new one must not, and Why
)

// A message tells the other process something. It travels as Encode says.
type message struct {
	Kind    string
	Version int    `json:",omitempty"`
	Name    string `json:",omitempty"`

	Key  string   `json:",omitempty"` // of a socket
	More bool     `json:",omitempty"` // its next message has more of them
	Lent bool     `json:",omitempty"` // its file is the service manager's
	Kept []string `json:",omitempty"` // keys
	Why  string   `json:",omitempty"`
}
