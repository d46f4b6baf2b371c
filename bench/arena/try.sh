#!/usr/bin/env bash
# Does the steps of the Dockerfile without Docker, starts the server, and checks its answers.
# With --keep the server stays.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD root=$(cd ../.. && pwd)

app=$(mktemp -d)
server=
finish() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	rm -rf "$app"
}
trap finish EXIT

# The Dockerfile's steps. rondo comes from this checkout, and not from the module proxy.
cp go.mod go.sum "$app/"
cd "$app"
go mod edit -replace "github.com/rondo-go/rondo=$root"
go mod download
cp "$here/main.go" .
CGO_ENABLED=0 go build -o server .

# A free port.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
ARENA_ADDRESS=127.0.0.1:$port ./server &
server=$!
python3 "$here/check.py" "$port"

(cd "$root" && go build -o "$app/rondo" ./cmd/rondo)
./rondo bench http --addr "tcp://127.0.0.1:$port" --path '/baseline11?a=13&b=42' --duration 1s
./rondo bench http --addr "tcp://127.0.0.1:$port" --path /pipeline --pipeline 16 --duration 1s
kill -0 "$server"
if [ "${1:-}" = --keep ]; then
	echo "http://127.0.0.1:$port, process $server"
	wait "$server"
fi
