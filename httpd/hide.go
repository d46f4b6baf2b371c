package httpd

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"sync"
)

// An original is what the owner of an http.Server has set, of what hide and net/http change.
type original struct {
	gates       int // that use the http.Server; with hidden locked
	base        func(net.Listener) context.Context
	connState   func(net.Conn, http.ConnState)
	connContext func(context.Context, net.Conn) context.Context
	nextProto   map[string]func(*http.Server, *tls.Conn, http.Handler)
	protocols   *http.Protocols
	tls         *tls.Config
}

// hidden has each http.Server that hide has changed. Its lock also guards the changes: a
// second Serve may begin at any time.
var hidden = struct {
	sync.Mutex
	servers map[*http.Server]*original
}{servers: make(map[*http.Server]*original)}

func originalOf(srv *http.Server) *original {
	hidden.Lock()
	defer hidden.Unlock()
	if o := hidden.servers[srv]; o != nil {
		return o
	}
	return &original{base: srv.BaseContext, connState: srv.ConnState, connContext: srv.ConnContext,
		nextProto: maps.Clone(srv.TLSNextProto), protocols: srv.Protocols, tls: srv.TLSConfig.Clone()}
}

// hide keeps gates and their connections from srv's hooks, and allows gates HTTP/1.
func hide(srv *http.Server, o *original) {
	hidden.Lock()
	defer hidden.Unlock()
	if o := hidden.servers[srv]; o != nil {
		o.gates++
		return
	}
	hidden.servers[srv] = o
	o.gates = 1
	if p := srv.Protocols; p != nil && !p.HTTP1() {
		allowed := *p
		allowed.SetHTTP1(true)
		srv.Protocols = &allowed
	}
	srv.BaseContext = func(ln net.Listener) context.Context {
		switch ln := ln.(type) {
		case *gate:
			return ln.server.base
		case noListener:
			return context.Background()
		}
		if o.base != nil {
			return o.base(ln)
		}
		return context.Background()
	}
	if hook := o.connContext; hook != nil {
		srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			if _, ours := c.(*gateConn); ours {
				return ctx
			}
			return hook(ctx, c)
		}
	}
	if hook := o.connState; hook != nil {
		srv.ConnState = func(c net.Conn, state http.ConnState) {
			if _, ours := c.(*gateConn); !ours {
				hook(c, state)
			}
		}
	}
	srv.Serve(noListener{}) // the first Serve changes the configuration
}

// unhide is called when a gate has ended. The hooks stay as they are.
func unhide(srv *http.Server) {
	hidden.Lock()
	defer hidden.Unlock()
	o := hidden.servers[srv]
	if o.gates--; o.gates == 0 && o.protocols == srv.Protocols {
		delete(hidden.servers, srv)
	}
}
