#!/usr/bin/env bash
# net/http's own tests of its server, on httpd. They are taken from a copy of GOROOT, whose
# httptest serves by httpd: one line of it is changed. Nothing of Go is stored here.
set -euo pipefail
cd "$(dirname "$0")/../.."

# SetKeepAlivesEnabled cannot be seen from outside of net/http.
skip='^(TestServerKeepAlivesEnabled|TestServerKeepAlivesEnabledResultClose|TestServerSetKeepAlivesEnabledClosesConns)$'
files='serve clientserver responsecontroller sniff fs async'

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
root=$(go env GOROOT)
mkdir "$work/go"
for part in "$root"/*; do
	[ "$(basename "$part")" = src ] || ln -s "$part" "$work/go/"
done
cp -r "$root/src" "$work/go/src"
chmod -R u+w "$work/go/src"
src=$work/go/src

# rondo becomes a vendored package of the standard library, which its tests may import.
ours=$src/vendor/github.com/rondo-go/rondo
mkdir -p "$ours" "$src/vendor/golang.org/x/sys"
cp ./*.go "$ours/"
for dir in internal http1 netconn rtls httpd; do
	cp -r "$dir" "$ours/"
done
cp -r "$(go list -m -f '{{.Dir}}' golang.org/x/sys)/unix" "$src/vendor/golang.org/x/sys/"
chmod -R u+w "$src/vendor"
find "$ours" "$src/vendor/golang.org/x/sys/unix" -name '*_test.go' -delete

cp .ci/nethttp/hook_test.go.txt "$src/net/http/hook_test.go"
server=$src/net/http/httptest/server.go
grep -q 's\.Config\.Serve(s\.Listener)' "$server"
grep -q 's\.Listener = tls\.NewListener(s\.Listener, s\.TLS)' "$server"
sed -i -e 's/s\.Config\.Serve(s\.Listener)/serveBy(s.Config, s.Listener)/' \
	-e 's/s\.Listener = tls\.NewListener(s\.Listener, s\.TLS)/s.Listener = \&overTLS{tls.NewListener(s.Listener, s.TLS), s.Listener, s.TLS}/' "$server"
cat >>"$server" <<'GO'

// ServeHook serves in place of http.Server.Serve, and ServeTLSHook in place of ServeTLS.
var ServeHook, ServeTLSHook func(*http.Server, net.Listener) error

// An overTLS knows the listener below TLS.
type overTLS struct {
	net.Listener
	inner  net.Listener
	config *tls.Config
}

func serveBy(srv *http.Server, ln net.Listener) {
	under, secure := ln.(*overTLS)
	if secure {
		ln = under.inner
	}
	switch _, real := ln.(*net.TCPListener); {
	case real && secure:
		srv.TLSConfig = under.config
		ServeTLSHook(srv, ln)
	case real:
		ServeHook(srv, ln)
	case secure: // a network within a test, with a clock of its own
		srv.Serve(under)
	default:
		srv.Serve(ln)
	}
}
GO

cd "$src/net/http"
names=$(for f in $files; do cat "${f}_test.go"; done | grep -oE '^func Test[A-Za-z0-9_]+' | sed 's/func //' | sort -u | paste -sd'|')
export GOROOT=$work/go GOFLAGS=-mod=mod
cd "$work" && go mod init nethttp 2>/dev/null
go test -c -o "$work/test" net/http
cd "$src/net/http"
"$work/test" -test.short -test.v -test.timeout 3m -test.run "^($names)\$/^(h1|https1|h2|h2unencrypted)\$" -test.skip "$skip" >"$work/log" 2>&1 || {
	grep -E '^ *--- FAIL|^panic' "$work/log" || true
	grep -v '^=== ' "$work/log" | tail -100
	exit 1
}
for mode in h1 h2; do
	passed=$(grep -cE "^ +--- PASS: .*/$mode " "$work/log")
	printf 'net/http: %s tests of %s pass on httpd\n' "$passed" "$mode"
	[ "$passed" -gt 100 ]
done
