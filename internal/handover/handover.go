// Package handover lets the Handler of another protocol take a connection from package
// httpd. It stands between httpd and websocket, so that neither imports the other.
package handover

import (
	"net/http"

	"github.com/rondo-go/rondo"
)

// A Giver is an http.ResponseWriter of package httpd.
type Giver interface {
	// HandOver gives the connection away in place of an answer. It calls take on the
	// connection's loop; take sets the connection's Handler and writes the answer. That
	// Handler gets the bytes behind the request. HandOver returns when take has returned.
	// After an error take was not called, or has panicked.
	HandOver(_ Key, take func(*rondo.Conn)) error
}

// A Key keeps packages outside of this module from calling HandOver.
type Key struct{}

// Find returns the Giver that w is or wraps; nil: there is none. As http.ResponseController
// does, it looks for a method Unwrap, and stops at a wrapper that hijacks by itself.
func Find(w http.ResponseWriter) Giver {
	for {
		switch t := w.(type) {
		case Giver:
			return t
		case http.Hijacker:
			return nil
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return nil
		}
	}
}
