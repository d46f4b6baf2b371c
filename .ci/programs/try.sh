# The stage "programs" of .ci/run: the programs of the peers' READMEs, which a machine may
# have in ../shared/programs. Each runs with another import, and is tried as its README
# says.

PROGRAMS=${PROGRAMS:-../shared/programs}

# cutPrograms writes the programs to $work/programs, and builds them against this checkout.
cutPrograms() {
	local to=$work/programs here=$PWD dir
	python3 .ci/programs/cut.py "$PROGRAMS" "$to"
	(cd "$to" && go mod init example.com/programs 2>/dev/null &&
		go mod edit -require github.com/rondo-go/rondo@v0.0.0 -replace "github.com/rondo-go/rondo=$here" &&
		go mod tidy 2>/dev/null)
	for dir in "$to"/*/; do
		(cd "$dir" && go vet . && go build -o program .)
	done
}

# runProgram runs a program in its directory. It waits until the program listens on a
# port, which may be a pattern for its log that has the port at the end.
runProgram() {
	local name=$1 port=$2
	say "program $name"
	(cd "$work/programs/$name" && exec ./program "${@:3}") >"$work/program.log" 2>&1 &
	server=$!
	for _ in $(seq 200); do
		case $port in
		*[!0-9]*) addr=127.0.0.1:$(sed -nE "s/.*$port([0-9]+).*/\1/p" "$work/program.log" | head -n 1) ;;
		*) addr=127.0.0.1:$port ;;
		esac
		[ "$addr" != 127.0.0.1: ] && nc -z 127.0.0.1 "${addr##*:}" 2>/dev/null && return
		kill -0 "$server" 2>/dev/null || break
		sleep 0.05
	done
	cat "$work/program.log" >&2
	fail "program $name does not listen"
}

endProgram() {
	kill "$server" 2>/dev/null || fail "the program has ended by itself: $(cat "$work/program.log")"
	wait "$server" 2>/dev/null || true
	server=
}

# asks sends a question to a port by nc, and wants an answer within some seconds.
asks() {
	local port=$1 question=$2 want=$3 seconds=${4:-1} got
	got=$( (printf '%b' "$question"; sleep "$seconds") | timeout 20 nc -q 1 127.0.0.1 "$port" || true)
	[ "$got" = "$(printf '%b' "$want")" ] || fail "the program answers '$got' to '$question', want '$want'"
}

programs() {
	cutPrograms

	runProgram evio-echo 5000
	asks 5000 'hello\n' 'hello\n'
	endProgram

	runProgram evio-addresses 5000
	asks 5000 'hello\n' 'hello\n'
	[ "$( (echo hello; sleep 1) | timeout 20 nc -q 1 -U "$work/programs/evio-addresses/socket")" = hello ] || fail "no echo on the unix socket"
	endProgram

	runProgram evio-tick 5001
	sleep 2
	[ "$(grep -c tick "$work/program.log")" -ge 2 ] || fail "no ticks"
	endProgram

	runProgram evio-wake 5002
	asks 5002 'hello\n' 'hello\n'
	asks 5002 'exec\r\n' 'exec\r\n' 7
	endProgram

	local tls=$work/programs/evio-tls
	mkdir "$tls/certs"
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
		-keyout "$tls/certs/ssl-cert-snakeoil.key" -out "$tls/certs/ssl-cert-snakeoil.pem" 2>/dev/null
	runProgram evio-tls 443
	[ "$(curl -ksS --max-time 20 https://localhost:443/ | tr -d '\r')" = 'Hello World!' ] || fail "curl gets no answer"
	curl -ksS --max-time 20 --tls-max 1.2 https://localhost:443/ https://localhost:443/ >/dev/null || fail "curl gets no answer by TLS 1.2"
	endProgram

	runProgram gaio-echo 'listening on 127.0.0.1:'
	asks "${addr##*:}" 'hello\n' 'hello\n'
	endProgram

	runProgram gaio-push 'listening on 127.0.0.1:'
	[ "$(timeout 4 nc -d 127.0.0.1 "${addr##*:}" | grep -c '^20')" -ge 2 ] || fail "no push"
	endProgram

	runProgram goev-service 8080
	asks 8080 'hello\n' 'hello\n'
	endProgram

	runProgram goev-reuseport 8080
	asks 8080 'hello\n' 'hello\n'
	endProgram
}
