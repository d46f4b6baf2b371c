package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// protect sets the fields that keep other sites' pages, and the browser's cache, away from what
// the page shows.
func protect(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// admits reports whether a request is answered. If not, it has said why.
func (p *Page) admits(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "nothing here can be changed: use GET or HEAD", http.StatusMethodNotAllowed)
	case isForged(r):
		http.Error(w, "another site's page has made this request", http.StatusForbidden)
	case p.token == "" && !isFromHere(r):
		http.Error(w, "without a token this page is for this host alone: use 127.0.0.1 or localhost, or start the program with a token", http.StatusForbidden)
	case p.token != "" && !p.shows(r):
		w.Header().Set("WWW-Authenticate", `Basic realm="rondo", charset="UTF-8"`)
		http.Error(w, "the token is missing or wrong: it is the password, with any user name", http.StatusUnauthorized)
	default:
		return true
	}
	return false
}

// isForged reports whether a page of another site has made a request, as browsers tell. Such a
// page could not read the answer, but it could have the program take profiles. It may have a
// link to this page.
func isForged(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return r.URL.Path != "/" || r.Header.Get("Sec-Fetch-Mode") != "navigate"
}

// isFromHere reports whether a request comes from this host, and is for this host by its name:
// a page whose site's name leads to this host would have that in Host.
func isFromHere(r *http.Request) bool {
	if r.Header.Values("X-Forwarded-For") != nil || r.Header.Values("Forwarded") != nil {
		return false // also if the first of several is empty: a client can send that one
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil || local.Network() != "unix" {
		if peer, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !peer.Addr().Unmap().IsLoopback() {
			return false
		}
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// shows reports whether a request shows the token.
func (p *Page) shows(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		_, token, ok = r.BasicAuth()
	}
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(p.token)) // of the same length
	return ok && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
