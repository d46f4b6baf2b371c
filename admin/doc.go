// Package admin serves a live page about an engine: its loops, its connections, callbacks
// that block a loop, tables of the program's own, profiles and traces.
//
//	page := admin.New(engine, admin.Options{Name: "my server"})
//	w, err := watchdog.Watch(engine, watchdog.Options{Report: func(r watchdog.Report) {
//		page.Report(r)
//		r.Log(nil)
//	}})
//	...
//	err = httpd.ListenAndServe("127.0.0.1:6380", page)
//
// A Page is an http.Handler. Serve it on an address of its own, by package httpd or net/http,
// and not on the engine that it shows: when that is blocked, the page says so. Under a path,
// mount it with http.StripPrefix and a slash at the end of the path. Its paths are:
//
//	/              the page, which follows /events, /conns and /slow by itself
//	/vars          the numbers, as JSON
//	/conns         connections, as JSON: ?sort=-age&rows=200
//	/slow          the last callbacks that blocked a loop, with stacks, as JSON
//	/events        server-sent events: the numbers, each second
//	/debug/pprof/  profiles for go tool pprof; profile and trace take ?seconds=N
//
// # Who may look
//
// Nothing that a Page serves changes anything: it answers GET and HEAD alone.
//
// Without Options.Token only this host may look: the peer's address must be a loopback address,
// or come by a unix socket, and the request must be for a loopback address or for localhost. So
// a page of another site that has given its own name this host's address (DNS rebinding) gets
// nothing, nor does another host whose requests a proxy of this host passes on with
// X-Forwarded-For or Forwarded. A proxy on this host that sends none of these fields, and a
// loopback name as Host (nginx does by default), would show the page to everybody: use a token
// then. Any user of this host may look, and take profiles.
//
// With a Token any host may look that knows it. Browsers ask for it as a password, with any
// user name; programs send it so (curl -u :TOKEN) or as a bearer token. HTTP does not hide it:
// for other hosts use TLS, or a tunnel.
//
// Requests that another site's page makes are refused in either case, except a link to the
// page itself. Browsers tell whose page makes a request over TLS, and on this host; over plain
// HTTP to another host they do not.
//
// # What it costs
//
// Nothing while nobody looks. While a page is open the loops measure times, by package loopstats:
// 0.4 % of the instructions of a busy loop, and 2 % of one that serves a single message in each
// turn. For each open page the numbers are read once a second, without
// stopping a loop, and connections are listed every two seconds: a loop looks at 64 places of
// its table in a turn, which takes 30 to 100 µs, and spends at most a hundredth of its time so.
// Lists hold 1,000 connections at most, the first ones in the order that is asked for. At most
// 16 pages can be open. With 5,000 connections all of that takes about
// 1 % of a CPU.
package admin
