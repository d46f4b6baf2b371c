#!/usr/bin/env bash
# Prints the event-loop article's table: redis-benchmark -t get,set -n 100000
# against redis-server and rondo's three servers, one after the other, in the
# order given by the run's repetitions so that none is always first.
# Needs the Debian packages redis-server and redis-tools.
set -euo pipefail
cd "$(dirname "$0")/.."
repetitions=${1:-3}
work=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
go build -o "$work/rondo" ./cmd/rondo

start() {
	port=$((20000 + RANDOM % 10000))
	case $1 in
	redis-server) redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no >/dev/null & ;;
	*) "$work/rondo" redis --backend "$1" --addr "127.0.0.1:$port" 2>/dev/null & ;;
	esac
	server=$!
	until [ "$(redis-cli -p "$port" ping 2>/dev/null)" = PONG ]; do sleep 0.05; done
}

stop() {
	kill "$server"
	wait "$server" 2>/dev/null || true
	server=
}

servers=(redis-server epoll poll std)
for r in $(seq "$repetitions"); do
	for i in "${!servers[@]}"; do
		s=${servers[$(((i + r) % ${#servers[@]}))]}
		start "$s"
		redis-benchmark -p "$port" -t get,set -n 100000 --csv |
			sed -nE "s/^\"(GET|SET)\",/$s,\\1,/p" | tr -d '"' >>"$work/results"
		stop
	done
done

echo '| server | command | requests/s | avg ms | min | p50 | p95 | p99 | max |'
echo '|---|---|---|---|---|---|---|---|---|'
for s in "${servers[@]}"; do
	for command in SET GET; do
		# The repetition with the median rate.
		grep "^$s,$command," "$work/results" | sort -t, -k3 -g |
			awk -F, -v s="$s" -v c="$command" '{line[NR]=$0} END {split(line[int((NR+1)/2)], f, ",");
				printf "| %s | %s | %d | %s | %s | %s | %s | %s | %s |\n", s, c, f[3], f[4], f[5], f[6], f[7], f[8], f[9]}'
	done
done
