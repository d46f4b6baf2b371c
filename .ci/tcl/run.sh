#!/usr/bin/env bash
# Redis's own tests against rondo redis, and against redis-server for comparison: files of
# tests/unit in external mode. They come with Debian's source package of redis, which is
# fetched; TESTS names a directory that has them already. Nothing of them is kept. The script
# installs what is missing on a Debian 12 machine with Go, where it needs root.
#
#     bash .ci/tcl/run.sh [unit/type/list ...]
#
# The status is 1 if a test that passes on redis-server fails on rondo redis, and known.txt
# does not name it.
set -euo pipefail
cd "$(dirname "$0")"
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

# Not among them: wait and pendingquerybuf, which need replication.
UNITS="unit/type/string unit/type/incr unit/type/list unit/type/list-2 unit/type/list-3
	unit/type/hash unit/type/set unit/type/zset unit/type/stream unit/type/stream-cgroups
	unit/keyspace unit/scan unit/expire
	unit/multi unit/pubsub unit/pubsubshard unit/protocol unit/querybuf unit/quit unit/auth
	unit/bitops unit/bitfield unit/geo unit/hyperloglog unit/introspection
	unit/introspection-2 unit/sort unit/dump unit/info unit/info-command
	unit/latency-monitor unit/slowlog unit/lazyfree unit/maxmemory unit/obuf-limits
	unit/limits unit/tracking unit/client-eviction unit/other unit/pause unit/replybufsize
	unit/violations unit/networking unit/tls unit/scripting unit/functions
	unit/introspection+files unit/acl+files unit/acl-v2-1 unit/acl-v2-2"
# Of a file with +files the tests start servers themselves, with files and command lines.
# These files are left out of external mode by a tag, mostly since they change parameters;
# here the server is not shared.
OPENED="scripting functions pubsubshard auth info maxmemory obuf-limits limits client-eviction networking"
LIMIT=${LIMIT:-900} # seconds for a file

work=$(mktemp -d)
finish() {
	local job
	for job in $(jobs -p); do kill "$job" 2>/dev/null || true; done
	wait
	rm -rf "$work"
}
trap finish EXIT

# install gets the programs that are missing.
install() {
	local missing=()
	command -v redis-server >/dev/null || missing+=(redis-server)
	command -v redis-cli >/dev/null || missing+=(redis-tools)
	command -v tclsh >/dev/null || missing+=(tcl)
	command -v openssl >/dev/null || missing+=(openssl)
	compgen -G '/usr/lib/tcltk/*/tcltls*' >/dev/null || missing+=(tcl-tls)
	[ -n "${TESTS:-}" ] || command -v dpkg-source >/dev/null || missing+=(dpkg-dev)
	[ ${#missing[@]} = 0 ] && return
	apt-get update -qq
	# The package would start a server of its own.
	RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# fetch gets Debian's source package of Redis 7.0.15, and leaves the tests in $work/tests.
fetch() {
	local keys=/usr/share/keyrings/debian-archive-keyring.gpg suite
	local apt=(-qq -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$work/lists"
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root -o Acquire::Retries=3)
	mkdir -p "$work/lists/partial" "$work/source"
	for suite in 'debian bookworm' 'debian-security bookworm-security'; do
		echo "deb-src [signed-by=$keys] http://deb.debian.org/$suite main"
	done >"$work/sources.list"
	apt-get "${apt[@]}" update
	(cd "$work/source" && apt-get "${apt[@]}" source redis >fetch.log 2>&1) || { cat "$work/source/fetch.log" >&2; exit 1; }
	mv "$work"/source/redis-7.0.15/tests "$work/tests"
}

# certs makes the certificates of unit/tls. Its ciphers need RSA.
certs() {
	local name key=(-newkey rsa:2048 -nodes)
	mkdir "$work/tests/tls"
	cd "$work/tests/tls"
	openssl req -x509 "${key[@]}" -keyout ca.key -out ca.crt -days 2 -subj '/CN=authority'
	for name in server client; do
		openssl req "${key[@]}" -keyout "$name.key" -out "$name.csr" -subj "/CN=$name"
		openssl x509 -req -in "$name.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out "$name.crt"
	done
}

install
if [ -n "${TESTS:-}" ]; then
	cp -r "$TESTS" "$work/tests"
else
	fetch
fi
for file in $OPENED; do
	sed -i 's/external:skip//' "$work/tests/unit/$file.tcl"
done
# Servers with an append-only file are left out like replication.
sed -i 's/needs:debug"} overrides {appendonly yes/needs:repl"} overrides {appendonly yes/' "$work"/tests/unit/type/stream*.tcl
sed -i '/^test {FUNCTION can processes create/,/^}/d' "$work/tests/unit/functions.tcl"
sed -i '/r config set appendonly yes/d' "$work/tests/unit/scripting.tcl"
(cd ../.. && go build -o "$work/rondo.program" ./cmd/rondo)
(certs 2>"$work/certs.log") || { cat "$work/certs.log" >&2; exit 1; }
# The second half of acl-v2 wants a server with users.
for file in acl-v2; do
	awk -v to="$work/tests/unit/$file-" '/^set server_path|^start_server \{overrides/ || NR == 1 { part++ } { print > (to part ".tcl") }' "$work/tests/unit/$file.tcl"
	sed -i -E 's/^start_server (\{|\[list ).*external:skip.*\{$/start_server {tags {"acl"}} {/; s/\[tmpdir "[a-z.]+"\]/[pwd]\/users/' "$work/tests/unit/$file"-*.tcl
done
# There is nothing to save, and a pidfile is of one server.
sed -i '/^save /d; /^pidfile /d' "$work"/tests/assets/*.conf
# Each server has a directory, since the tests write files.
for server in rondo redis; do
	mkdir -p "$work/$server/src"
	for program in redis-server redis-cli redis-benchmark; do
		ln -s "$(command -v "$program")" "$work/$server/src/$program"
	done
	cp -r "$work/tests" "$work/$server/tests"
	cp skip.txt "$work/$server/skip.txt"
done

# users adds the options for the users that a file expects.
users() {
	[ "$1" = unit/acl-v2-2 ] || return 0
	rm -rf users
	mkdir users
	cp tests/assets/*.acl users/
	rondo+=(--aclfile users/userwithselectors.acl)
	redis+=(--aclfile users/userwithselectors.acl)
}

# rondo redis in the place of redis-server, with the lines that the tests look for in its output.
cat >"$work/redis-server" <<END
#!/bin/sh
case "\$1" in
-v | --version) exec $(command -v redis-server) --version ;;
--*) exec $work/rondo.program redis -- "\$@" ;;
esac
echo " PID: \$\$"
port=\$(awk '\$1 == "port" {p = \$2} END {print p}' "\$1")
(for i in \$(seq 200); do
	[ -z "\$(redis-cli -p "\$port" ping 2>/dev/null)" ] || break
	sleep 0.05
done; echo "Ready to accept connections") &
exec $work/rondo.program redis "\$@"
END
chmod +x "$work/redis-server"
ln -sf "$work/redis-server" "$work/rondo/src/redis-server"

# start runs a server in its directory, at a free port. It leaves that in $port, and the
# server's process in $pid.
start() {
	local try tls=$work/tests/tls cli=()
	for try in $(seq 20); do
		port=$((20000 + RANDOM % 10000))
		local rondo=(--addr "127.0.0.1:$port" --enable-debug-command yes)
		local redis=(--bind 127.0.0.1 --save '' --enable-debug-command yes --enable-protected-configs yes)
		if [ "$2" = unit/tls ]; then
			rondo+=(--tls-cert "$tls/server.crt" --tls-key "$tls/server.key" --tls-ca "$tls/ca.crt")
			redis+=(--port 0 --tls-port "$port" --tls-cert-file "$tls/server.crt" --tls-key-file "$tls/server.key" --tls-ca-cert-file "$tls/ca.crt")
			cli=(--tls --cacert "$tls/ca.crt" --cert "$tls/client.crt" --key "$tls/client.key")
		else
			redis+=(--port "$port")
		fi
		users "$2"
		case $1 in
		rondo) exec "$work/rondo.program" redis "${rondo[@]}" ;;
		redis) exec redis-server "${redis[@]}" ;;
		esac >server.log 2>&1 &
		pid=$!
		for _ in $(seq 100); do
			[ "$(redis-cli -p "$port" ${cli[@]+"${cli[@]}"} ping 2>/dev/null)" != PONG ] || return 0
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.05
		done
		kill "$pid" 2>/dev/null || true
		wait "$pid" || true
	done
	cat server.log >&2
	return 1
}

# play runs a file against a server, in a subshell: play SERVER UNIT [option ...]. It adds to
# the server's files log, and passed and failed, which name tests. An error outside of a
# test is in failed by its text.
play() {
	local port pid where
	cd "$work/$1"
	if [[ $2 = *+files ]]; then
		port=$((25000 + RANDOM % 5000)) where=(--portcount 200)
		[ "$1" = rondo ] || port=$((port + 5000))
	else
		start "$1" "$2"
		trap "kill $pid 2>/dev/null || true" EXIT
		where=(--host 127.0.0.1 --port "$port")
	fi
	[ "$2" != unit/tls ] || set -- "$@" --tls
	timeout "$LIMIT" tclsh tests/test_helper.tcl "${where[@]}" --single "${2%+files}" --durable \
		--tags -needs:repl --skipfile skip.txt --baseport $((port - 10000)) --clients 1 --timeout "$LIMIT" "${@:3}" 2>&1 |
		tr '\r' '\n' | sed 's/\x1b\[[0-9;]*m//g' >last || true
	cat last >>log
	sed -nE 's/^\[ok\]: (.*) \([0-9]+ ms\)$/\1/p' last >>passed
	sed -nE 's/^\[(err|exception)\]: (.*)$/\2/p' last | sed 's| in tests/unit/.*||' >>failed
}

# tests names the tests of a file, if each needs a new server.
tests() {
	case $1 in
	unit/networking) sed -nE 's/^ *test \{(.*)\} \{$/\1/p' "$work/tests/$1.tcl" ;;
	unit/tls) sed -nE 's/^ *test \{(TLS: .*)\} \{$/\1/p' "$work/tests/$1.tcl" ;;
	esac
}

# playAll plays a file against a server, and leaves the files log, passed and failed.
playAll() {
	local names name dir=$work/$1
	rm -f "$dir"/{log,passed,failed}
	names=$(tests "$2")
	[ -n "$names" ] || (play "$1" "$2")
	while [ -n "$names" ] && read -r name; do
		(play "$1" "$2" --only "$name" </dev/null)
		# After an error within start_server a test goes on, and may end with "ok".
		! grep -qE '^\[(err|exception)\]' "$dir/last" || echo "$name" >>"$dir/errors"
	done <<<"$names"
	[ ! -e "$dir/errors" ] || mv "$dir/errors" "$dir/failed"
	sort -o "$dir/failed" "$dir/failed"
	sort "$dir/passed" | comm -23 - "$dir/failed" >"$dir/errors"
	mv "$dir/errors" "$dir/passed"
}

sum=0 total=0 skipped=0 status=0 seconds=$SECONDS
printf '%-24s %s\n' file 'passed of redis-server'\''s'
for unit in ${@:-$UNITS}; do
	playAll redis "$unit" &
	other=$!
	playAll rondo "$unit"
	wait "$other"
	passed=$(comm -12 "$work/redis/passed" "$work/rondo/passed" | wc -l) all=$(wc -l <"$work/redis/passed")
	sum=$((sum + passed)) total=$((total + all)) skipped=$((skipped + $(grep -c '^\[skip\]' "$work/redis/log" || true)))
	printf '%-24s %3d of %3d  (%d s)\n' "$unit" "$passed" "$all" $((SECONDS - seconds))
	seconds=$SECONDS
	for server in redis rondo; do
		[ -n "$(tests "$unit")" ] || grep -q "done\]: ${unit%+files}" "$work/$server/log" || {
			status=1
			printf '    CUT OFF on %s, after %d s or an exception\n' "$server" "$LIMIT"
		}
	done
	while read -r name; do
		if grep -qxF -- "$name" known.txt; then
			printf '    known: %s\n' "$name"
		else
			status=1
			printf '    FAILS: %s\n' "$name"
			grep -F -A 3 -- "[err]: $name" "$work/rondo/log" | head -n 4 | cut -c 1-300 || true
		fi
	done < <({
		comm -23 "$work/redis/passed" "$work/rondo/passed"
		comm -13 "$work/redis/failed" "$work/rondo/failed"
	} | sort -u)
	while read -r name; do
		printf '    fails on redis-server too: %s\n' "$name"
	done < <(comm -12 "$work/redis/failed" "$work/rondo/failed" | cut -c 1-120)
done
printf '%-24s %d of %d; %d left out by skip.txt\n' all "$sum" "$total" "$skipped"
exit "$status"
