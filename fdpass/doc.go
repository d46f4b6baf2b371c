// Package fdpass passes open files between processes, over a unix stream connection on
// a loop: listeners and live connections from an old server to the new one that takes
// its place, above all.
//
//	ch, err := fdpass.New(loop, unixConn, handler)
//	ch.Send([]byte("listener"), nil, listener)
//	conn.Detach(func(nc net.Conn, err error) {
//		if err == nil {
//			ch.SendConn([]byte("session 5"), nc, nil)
//		}
//	})
//
// At the other end the Handler gets each message with its files, takes those that it
// wants, and gives connections to a loop, with the bytes that the sender had received
// and not served:
//
//	func (h *newer) Message(ch *fdpass.Channel, m *fdpass.Message) {
//		nc, err := m.Conn()
//		if err == nil {
//			loop.Attach(nc, open)
//		}
//	}
//
// What was passed is one open file with two descriptors: both ends can use it, and
// have to agree who does. Detach sees to it that the old process does not any more.
//
// # No descriptor is lost
//
// A Channel that sends has duplicates of its own until the system has taken the
// message. One that receives gives a message's files to Message, and closes those that
// it does not take. When a Channel ends it closes what it still has, and the system
// what is on its way. A peer may send descriptors that no message announces: as soon as
// there are more than a message may have, the Channel ends. All are close-on-exec.
//
// That a message was sent means that the system has it. If the peer ends before it has
// read the message the files in it are closed. Who must be sure has the peer answer,
// and keeps a descriptor until then.
//
// # What this package is not
//
// It is no RPC, and its framing is its own: both ends are Channels. It checks not who
// the peer is: that is for the permissions of the socket's file. Windows, where
// processes pass no descriptors like this, and the simulated network have none of it:
// New returns errors.ErrUnsupported.
package fdpass
