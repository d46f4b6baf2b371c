package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

const (
	// dialTimeout is how long the proxy tries to connect.
	dialTimeout = 5 * time.Second
	// idleBackends is how many idle connections the proxy keeps to its server.
	idleBackends = 256
	// statusClientGone is nginx's status, for the access log, of a request whose client did
	// not wait for the answer.
	statusClientGone = 499
)

// newProxy returns a handler that passes requests on to a server, whose answer must begin
// within patience; 0: at any time.
func newProxy(target *url.URL, patience time.Duration, log *slog.Logger) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.RawQuery = r.In.URL.RawQuery // also what cannot be parsed: nothing here looks at it
			r.SetURL(target)
			r.SetXForwarded() // what the client says of these fields has been removed
			r.Out.Header.Add("Via", "1.1 rondo")
		},
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout:   dialTimeout,
			ResponseHeaderTimeout: patience,
			ExpectContinueTimeout: time.Second,
			MaxIdleConnsPerHost:   idleBackends,
			IdleConnTimeout:       90 * time.Second,
			DisableCompression:    true, // the client decides
			ForceAttemptHTTP2:     true,
		},
		ErrorLog:     slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { proxyFailed(w, r, err, log) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "CONNECT" { // this is no proxy for clients
			fail(w, http.StatusMethodNotAllowed)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// proxyFailed answers in place of the server.
func proxyFailed(w http.ResponseWriter, r *http.Request, err error, log *slog.Logger) {
	var slow net.Error
	status := http.StatusBadGateway
	switch {
	case errors.Is(r.Context().Err(), context.Canceled):
		w.WriteHeader(statusClientGone)
		return
	case errors.As(err, new(*http.MaxBytesError)):
		fail(w, http.StatusRequestEntityTooLarge)
		return
	case errors.As(err, &slow) && slow.Timeout():
		status = http.StatusGatewayTimeout
	}
	log.Warn("proxy: the server did not answer", "method", r.Method, "uri", r.RequestURI, "status", status, "error", err)
	fail(w, status)
}
