package rtls

import (
	"net"
	"os"
	"time"
)

// transport is a filter in the role of the net.Conn that crypto/tls reads records from
// and writes records to.
//
// Read returns no bytes beyond the present record, so crypto/tls keeps none: unread bytes
// stay with the connection, where they are bounded. Outside a handshake it returns only
// whole records, so crypto/tls's buffer is empty between two of them.
type transport filter

// recordHeader is the size of a record's type, version and length.
const recordHeader = 5

// maxRecord is the longest record that crypto/tls accepts (RFC 5246, 6.2.3).
const maxRecord = recordHeader + 16<<10 + 2048

// Types of records (RFC 8446, 5.1).
const (
	typeChangeCipherSpec = 20
	typeAlert            = 21
	typeHandshake        = 22
	typeApplicationData  = 23
)

// nextRecord returns the length of the first record of in, or 0 if in does not hold all
// of it. If in cannot be a record, nextRecord returns all of in, and crypto/tls reports
// the error.
func nextRecord(in []byte) int {
	if len(in) < recordHeader {
		return 0
	}
	n := recordHeader + int(in[3])<<8 + int(in[4])
	switch {
	case in[0] < typeChangeCipherSpec || in[0] > typeApplicationData || in[1] != 3 || n > maxRecord:
		return len(in)
	case n > len(in):
		return 0
	}
	return n
}

// Read returns bytes of one record. If there is no whole record, it waits in a handshake;
// otherwise it returns errNothing.
func (t *transport) Read(p []byte) (int, error) {
	for t.record == 0 {
		if t.record = int32(nextRecord(t.wire)); t.record > 0 {
			if t.hand != nil {
				t.hand.received(t.wire[0])
			}
			break
		}
		if t.hand == nil || t.hand.over() {
			return 0, errNothing
		}
		if !t.hand.wait() {
			return 0, net.ErrClosed
		}
	}
	n := copy(p, t.wire[:t.record])
	t.wire = t.wire[n:]
	t.record -= int32(n)
	return n, nil
}

// errNothing makes crypto/tls return from a Read and continue at the next one, as after
// every temporary error.
var errNothing net.Error = nothing{}

type nothing struct{}

func (nothing) Error() string   { return os.ErrDeadlineExceeded.Error() }
func (nothing) Timeout() bool   { return true }
func (nothing) Temporary() bool { return true }
func (nothing) Unwrap() error   { return os.ErrDeadlineExceeded }

// Write sends p, which holds records.
func (t *transport) Write(p []byte) (int, error) {
	if t.hand != nil {
		t.hand.wrote(p)
		if t.hand.off {
			t.hand.output = append(t.hand.output, p...)
			return len(p), nil
		}
	}
	t.answered = true
	t.stage.Send(p)
	return len(p), nil
}

// Close does nothing: rondo closes the connection.
func (t *transport) Close() error { return nil }

// LocalAddr returns the connection's local address.
func (t *transport) LocalAddr() net.Addr {
	if t.hand != nil && t.hand.off {
		return t.hand.local
	}
	return t.stage.Conn().LocalAddr()
}

// RemoteAddr returns the peer's address.
func (t *transport) RemoteAddr() net.Addr {
	if t.hand != nil && t.hand.off {
		return t.hand.remote
	}
	return t.stage.Conn().RemoteAddr()
}

// SetDeadline does nothing, like the other two: the connection has the deadlines.
func (t *transport) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (t *transport) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing. crypto/tls calls it for its close_notify.
func (t *transport) SetWriteDeadline(time.Time) error { return nil }
