#!/usr/bin/env bash
# Redis's own tests against rondo redis, and against redis-server for comparison: files of
# tests/unit in external mode. They come with Debian's source package of redis, which is
# fetched; TESTS names a directory that has them already. Nothing of them is kept.
#
#     bash .ci/tcl/run.sh [unit/type/list ...]
#
# The status is 1 if a test fails on rondo redis alone that known.txt does not name.
set -euo pipefail
cd "$(dirname "$0")"
export LC_ALL=C

# Not among them: networking and tls, which change addresses and certificates while the
# server runs; wait and pendingquerybuf, which need replication.
UNITS="unit/type/string unit/type/incr unit/type/list unit/type/list-2 unit/type/list-3
	unit/type/hash unit/type/set unit/type/zset unit/keyspace unit/scan unit/expire
	unit/multi unit/pubsub unit/pubsubshard unit/protocol unit/querybuf unit/quit unit/auth
	unit/bitops unit/bitfield unit/geo unit/hyperloglog unit/introspection
	unit/introspection-2 unit/sort unit/dump unit/info unit/info-command
	unit/latency-monitor unit/slowlog unit/lazyfree unit/maxmemory unit/obuf-limits
	unit/limits unit/client-eviction unit/other unit/pause unit/replybufsize
	unit/violations"
# These files are left out of external mode by a tag, mostly since they change parameters;
# here the server is not shared.
OPENED="pubsubshard auth info maxmemory obuf-limits limits client-eviction"
LIMIT=${LIMIT:-600} # seconds for a file

work=$(mktemp -d)
server=
finish() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT

# fetch gets Debian's source package of Redis 7.0.15, and leaves the tests in $work/tests.
fetch() {
	local apt=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/lists" -o APT::Get::List-Cleanup=0)
	mkdir -p "$work/lists/partial" "$work/source"
	printf 'deb-src %s main\n' 'http://deb.debian.org/debian bookworm' 'http://deb.debian.org/debian-security bookworm-security' >"$work/sources.list"
	apt-get "${apt[@]}" update -qq
	(cd "$work/source" && apt-get "${apt[@]}" source -qq redis)
	mv "$work"/source/redis-7.0.15/tests "$work/tests"
}

command -v tclsh >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends tcl
if [ -n "${TESTS:-}" ]; then
	cp -r "$TESTS" "$work/tests"
else
	fetch
fi
(cd ../.. && go build -o "$work/rondo" ./cmd/rondo)
mkdir "$work/src"
for program in redis-server redis-cli redis-benchmark; do
	ln -s "$(command -v "$program")" "$work/src/$program"
done
for file in $OPENED; do
	sed -i 's/external:skip//' "$work/tests/unit/$file.tcl"
done
cp skip.txt "$work/skip.txt"
# Three tests would not end: they wait until a client that reads no replies has megabytes of
# them. The server stops running its requests before.
echo '/^client total memory grows during' >>"$work/skip.txt"
echo 'client evicted due to output buf' >>"$work/skip.txt"

# start runs a server at a free port, and leaves that in $port.
start() {
	local try
	for try in $(seq 20); do
		port=$((20000 + RANDOM % 10000))
		case $1 in
		rondo) exec "$work/rondo" redis --addr "127.0.0.1:$port" --enable-debug-command yes ;;
		redis) cd "$work" && exec redis-server --port "$port" --save '' --enable-debug-command yes --enable-protected-configs yes ;;
		esac >"$work/server.log" 2>&1 &
		server=$!
		for _ in $(seq 100); do
			[ "$(redis-cli -p "$port" ping 2>/dev/null)" != PONG ] || return 0
			kill -0 "$server" 2>/dev/null || break
			sleep 0.05
		done
		kill "$server" 2>/dev/null || true
	done
	cat "$work/server.log" >&2
	exit 1
}

# play runs a file against a server, and leaves the names of the tests that passed, and of
# those that did not, in $work/SERVER.passed and $work/SERVER.failed.
play() {
	local log=$work/$1.log
	start "$1"
	(cd "$work" && timeout "$LIMIT" tclsh tests/test_helper.tcl --host 127.0.0.1 --port "$port" --single "$2" --durable \
		--tags -needs:repl --skipfile skip.txt --baseport $((port - 10000)) --clients 1 --timeout "$LIMIT") 2>&1 |
		tr '\r' '\n' | sed 's/\x1b\[[0-9;]*m//g' >"$log" || true
	kill "$server"
	wait "$server" 2>/dev/null || true
	server=
	sed -nE 's/^\[ok\]: (.*) \([0-9]+ ms\)$/\1/p' "$log" | sort >"$work/$1.passed"
	sed -nE 's/^\[(err|exception)\]: (.*)$/\2/p' "$log" | sed 's| in tests/unit/.*||' | sort >"$work/$1.failed"
}

sum=0 total=0 skipped=0 status=0
printf '%-24s %s\n' file 'passed of redis-server'\''s'
for unit in ${@:-$UNITS}; do
	play redis "$unit"
	play rondo "$unit"
	passed=$(comm -12 "$work/redis.passed" "$work/rondo.passed" | wc -l) all=$(wc -l <"$work/redis.passed")
	sum=$((sum + passed)) total=$((total + all)) skipped=$((skipped + $(grep -c '^\[skip\]' "$work/redis.log" || true)))
	printf '%-24s %d of %d\n' "$unit" "$passed" "$all"
	while read -r name; do
		if grep -qxF -- "$name" known.txt; then
			printf '    known: %s\n' "$name"
		else
			status=1
			printf '    FAILS: %s\n' "$name"
			grep -F -A 3 -- "[err]: $name" "$work/rondo.log" | head -n 4 | cut -c 1-300 || true
		fi
	done < <(comm -23 "$work/redis.passed" "$work/rondo.passed")
done
printf '%-24s %d of %d; %d left out by skip.txt\n' all "$sum" "$total" "$skipped"
exit "$status"
