// Package fdpass passes open files between processes, over a unix stream
// connection on a loop. Its main use is a restart: an old server passes its
// listeners and live connections to the new server that replaces it.
//
//	ch, err := fdpass.New(loop, unixConn, handler)
//	ch.Send([]byte("listener"), nil, listener)
//	conn.Detach(func(nc net.Conn, err error) {
//		if err == nil {
//			ch.SendConn([]byte("session 5"), nc, nil)
//		}
//	})
//
// At the other end the Handler gets each message with its files and takes the
// files it wants. A passed connection comes with the bytes that the sender had
// received but not served. The Handler attaches it to a loop:
//
//	func (h *newer) Message(ch *fdpass.Channel, m *fdpass.Message) {
//		nc, err := m.Conn()
//		if err == nil {
//			loop.Attach(nc, open)
//		}
//	}
//
// A passed file is one open file with two descriptors. Both processes can use
// it and must agree on which one does. Detach makes sure that the old process
// no longer does.
//
// # No descriptor is lost
//
// A sending Channel holds duplicates until the system has taken the message. A
// receiving Channel passes a message's files to Message, and closes the files
// that Message does not take. When a Channel ends, it closes the files that it
// still holds, and the system closes those that are on their way. A peer may
// send descriptors that no message announces; the Channel ends as soon as it
// holds more of them than a message may have. All descriptors are
// close-on-exec.
//
// A sent message is one that the system has taken. If the peer ends before it
// reads the message, the system closes the message's files. A sender that must
// be sure lets the peer answer, and keeps a descriptor until then.
//
// # What this package is not
//
// It is not RPC. It has its own framing, so both ends must be Channels. It does
// not check who the peer is: set the permissions of the socket's file for that.
// On Windows, which cannot pass descriptors this way, and on the simulated
// network, New returns errors.ErrUnsupported.
package fdpass
