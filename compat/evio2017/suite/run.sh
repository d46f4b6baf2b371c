#!/usr/bin/env bash
# The test suite and the examples of evio v0.1.0, on rondo's compat/evio2017/v0: copies in
# which forward.go.txt takes the place of its implementation, or the import is another
# one. Arguments go to go test; RACE= leaves the race detector out.
#
# All of its tests run. They listen on the ports 9990 to 9993, and on unix sockets in the
# copy. The examples listen on 6391, 8091, 4491 and 5091.
set -euo pipefail
cd "$(dirname "$0")"
. ../../evio/suite/own.sh

go mod download
dir=$(go list -m -f '{{.Dir}}' github.com/tidwall/evio)
copy=$(mktemp -d)
server=
finish() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	rm -rf "$copy"
}
trap finish EXIT
fail() { printf 'FAILED: %s\n' "$1" >&2; exit 1; }

mkdir "$copy/evio"
cp "$dir"/evio_test.go "$copy/evio"
printf 'module github.com/tidwall/evio\n' >"$copy/evio/go.mod"
ownTests "$@"

# example builds and starts an example, and waits until it listens on a port.
example() {
	local name=$1 port=$2
	mkdir "$copy/$name"
	sed 's|"github.com/tidwall/evio"|evio "github.com/rondo-go/rondo/compat/evio2017/v0"|' "$dir/examples/$name/main.go" >"$copy/$name/main.go"
	go build -modfile "$copy/go.mod" -o "$copy/$name/program" "$copy/$name/main.go"
	(cd "$copy/$name" && exec ./program "${@:3}") >"$copy/log" 2>&1 &
	server=$!
	for _ in $(seq 200); do
		(: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return
		sleep 0.05
	done
	fail "$name does not listen: $(cat "$copy/log")"
}

# over ends the example.
over() {
	kill "$server" || fail "the example has ended by itself: $(cat "$copy/log")"
	wait "$server" || true
	server=
}

example echo-server 5091 -port 5091
[ "$( (echo hello; sleep 1) | timeout 20 nc -q 1 127.0.0.1 5091)" = hello ] || fail "echo-server does not echo"
over

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout "$copy/key" -out "$copy/cert" 2>/dev/null
cat "$copy/cert" "$copy/key" >"$copy/pem"
example http-server 8091 -port 8091 -tlsport 4491 -tlscert "$copy/pem"
for url in http://localhost:8091/ https://localhost:4491/; do
	for _ in 1 2; do
		[ "$(curl -ksS --max-time 20 "$url" "$url" | tr -d '\r' | grep -c 'Hello World!')" = 2 ] || fail "http-server does not answer on $url"
	done
done
over

example redis-server 6391 -port 6391
[ "$(redis-cli -p 6391 set ci 1)" = OK ]
[ "$(redis-cli -p 6391 get ci)" = 1 ]
[ "$(redis-cli -s "$copy/redis-server/socket" get ci)" = 1 ]
for pipeline in 1 32; do
	redis-benchmark -p 6391 -t ping,set,get -n 20000 -P "$pipeline" --csv >"$copy/csv"
	[ "$(grep -c '^"' "$copy/csv")" -ge 4 ] || fail "redis-benchmark -P $pipeline: $(cat "$copy/csv")"
done
redis-cli -p 6391 shutdown >/dev/null || true
wait "$server" || fail "redis-server ends with an error after SHUTDOWN: $(cat "$copy/log")"
server=
