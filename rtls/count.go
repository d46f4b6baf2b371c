package rtls

import (
	"crypto/tls"
	"errors"
	"io"
	"net"

	"github.com/rondo-go/rondo/internal/meter"
)

// Each connection's first handshake counts once, in its loop's Tally, on the loop.

// countDone counts a handshake that is done.
func (f *filter) countDone() {
	if tally := f.tally(); tally != nil {
		tally.Handshakes.Add(1)
	}
}

// countFailed counts a handshake that has failed.
func (f *filter) countFailed(why meter.Failure) {
	if tally := f.tally(); tally != nil {
		tally.NoHandshakes[why].Add(1)
	}
}

// tally returns where the handshake counts; nil: it counts already, or has not begun.
func (f *filter) tally() *meter.Tally {
	if f.counted || f.shared == nil {
		return nil
	}
	f.counted = true
	return f.shared.host.Tally().(*meter.Tally)
}

// failureOf returns why a handshake has failed. Only types of crypto/tls are looked for, and only
// in errors that crypto/tls has made or wrapped.
func failureOf(err error) meter.Failure {
	var plain tls.RecordHeaderError
	var refused *tls.CertificateVerificationError
	var op *net.OpError
	switch {
	case errors.As(err, &plain):
		return meter.NotTLS
	case errors.As(err, &refused):
		return meter.Certificate
	case errors.As(err, &op) && op.Op == "remote error":
		return meter.Alert
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return meter.Gone
	}
	return meter.Handshake
}
