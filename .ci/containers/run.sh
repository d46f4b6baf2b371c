#!/usr/bin/env bash
# Tries the Dockerfile without Docker: its program runs in a directory that has what the image
# has and no more, as the image's user, with mounts and a network of its own, by
# chroot and unshare. It is asked as HEALTHCHECK does, has half a processor and 64 MiB, and
# no io_uring. It needs root, and Debian's packages util-linux, iproute2 and python3.
set -euo pipefail
cd "$(dirname "$0")/../.."

# In a network of its own, and with mounts that go when this ends.
if [ "${1-}" != inside ]; then
	exec unshare --mount --net bash "$0" inside
fi
ip link set lo up

fail() { printf 'FAILED: %s\n' "$1" >&2; [ ! -s "$work/log" ] || tail -n 20 "$work/log" >&2; exit 1; }

work=$(mktemp -d)
image=$work/image
server=
groups=()
finish() {
	[ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true
	local group
	umount -R "$image/proc" "$image/sys/fs/cgroup" 2>/dev/null || true
	sleep 0.2
	for group in "${groups[@]}"; do rmdir "$group" || true; done
	rm -rf "$work"
}
trap finish EXIT

# instruction prints what the Dockerfile's last instruction of a name says.
instruction() { sed -nE "s/^$1 (.*)/\1/p" Dockerfile | tail -n 1; }
# words prints the words of a list in JSON that ends the line, a word in each line.
words() { python3 -c 'import json, sys; print("\n".join(json.loads(sys.argv[1][sys.argv[1].index("["):])))' "$1"; }

say() { printf -- '--- %s\n' "$1"; }

say "build"
(
	export TARGETOS= TARGETARCH= VERSION=v0.0.0-container COMMIT=none DATE=2026-11-22T12:00:00Z
	build=$(instruction 'RUN CGO_ENABLED=0')
	eval "CGO_ENABLED=0 ${build//\/out\/rondo/\"$image/rondo\"}"
)
mkdir -p "$image/etc/ssl/certs" "$image/proc" "$image/sys/fs/cgroup" # these two are the runtime's
cp /etc/ssl/certs/ca-certificates.crt "$image/etc/ssl/certs/" 2>/dev/null || true # Debian's package ca-certificates
mount -t proc proc "$image/proc"
mount --rbind /sys/fs/cgroup "$image/sys/fs/cgroup"

user=$(instruction USER)
mapfile -t entry < <(words "$(instruction ENTRYPOINT)")
mapfile -t command < <(words "$(instruction CMD)")
mapfile -t health < <(words "$(instruction HEALTHCHECK)")

# enter runs a command in the container.
enter() { chroot --userspec="$user" "$image" "$@"; }

# start runs the image with arguments. $launcher may be a command to run it by, and $join a
# directory of cgroups.
launcher=()
join=()
start() {
	: >"$work/log"
	(
		local group
		for group in "${join[@]}"; do echo "$BASHPID" >"$group/cgroup.procs"; done
		exec "${launcher[@]}" /usr/sbin/chroot --userspec="$user" "$image" "${entry[@]}" "$@"
	) 2>"$work/log" &
	server=$!
	for _ in $(seq 200); do
		enter "${health[@]}" >/dev/null 2>&1 && return
		kill -0 "$server" 2>/dev/null || break
		sleep 0.05
	done
	fail "the image with $* is not healthy"
}

stop() {
	kill -TERM "$server"
	local status=0
	wait "$server" || status=$?
	server=
	[ "$status" = 0 ] || fail "the image ended with status $status"
}

# logged waits for a line of the log: the server answers a moment before it says so.
logged() {
	for _ in $(seq 100); do
		grep -q "$1" "$work/log" && return
		sleep 0.05
	done
	fail "$2"
}

say "the image as it is"
[ "$(enter "${entry[@]}" version | head -n 1)" = "rondo v0.0.0-container" ] || fail "version"
! enter "${health[@]}" 2>"$work/health" || fail "a container that does not run is healthy"
grep -q 'no server listens there' "$work/health" || fail "the health check says: $(cat "$work/health")"
start "${command[@]}"
[ "$(awk '/^Uid:/ {print $2 ":" $3}' "/proc/$server/status")" = 65532:65532 ] || fail "it runs as another user"
logged 'backend=epoll' "it is not on epoll"
stop

say "no io_uring"
launcher=("$(command -v python3)" .ci/containers/seccomp.py)
start redis --addr :6379 --backend uring,epoll
[ "$(grep -c 'a backend cannot be used, the next one is tried' "$work/log")" = 1 ] || fail "want one line about io_uring"
logged 'ready.*backend=epoll' "it is not on epoll"
stop
status=0
"${launcher[@]}" /usr/sbin/chroot --userspec="$user" "$image" "${entry[@]}" redis --backend uring 2>"$work/log" || status=$?
[ "$status" = 1 ] && grep -q 'seccomp' "$work/log" || fail "--backend uring alone ended with status $status"
launcher=()

# limit makes cgroups with half a processor and 64 MiB, and adds them to $join.
limit() {
	local name=rondo-ci-$$ group
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
		group=/sys/fs/cgroup/$name
		mkdir "$group" || return 1
		groups=("$group")
		{ echo $((64 << 20)) >"$group/memory.max" && echo '50000 100000' >"$group/cpu.max"; } 2>/dev/null || return 1
		[ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
	else
		for group in /sys/fs/cgroup/memory/$name /sys/fs/cgroup/cpu/$name; do
			mkdir "$group" || return 1
			groups+=("$group")
		done
		echo $((64 << 20)) >"/sys/fs/cgroup/memory/$name/memory.limit_in_bytes" || return 1
		echo 100000 >"/sys/fs/cgroup/cpu/$name/cpu.cfs_period_us" || return 1
		echo 50000 >"/sys/fs/cgroup/cpu/$name/cpu.cfs_quota_us" || return 1
	fi
	join=("${groups[@]}")
}

# file prints a file of the cgroups, by its name in version 2 or in version 1.
file() {
	local group
	for group in "${groups[@]}"; do
		cat "$group/$1" 2>/dev/null || cat "$group/$2" 2>/dev/null || true
	done
}

say "half a processor and 64 MiB"
if limit; then
	for backend in epoll uring,epoll; do
		start redis --addr :6379 --loops 0 --maxmemory 24MiB --backend "$backend" --log-level debug
		grep -q 'limit bounds Go' "$work/log" || fail "the memory limit was not seen"
		grep -q 'ready.*loops=2' "$work/log" || fail "half a processor counts as two, and there are other loops"
		python3 .ci/containers/evict.py
		"$image/rondo" bench redis -t set,ping --size 4KiB --keyspace 100000 --conns 200 --pipeline 16 --duration 5s >"$work/bench" 2>"$work/progress" ||
			{ cat "$work/progress"; fail "a load ends it"; }
		grep -o 'ready.*' "$work/log"
		cat "$work/bench"
		printf 'memory at most %s bytes\n' "$(file memory.peak memory.max_usage_in_bytes)"
		file cpu.stat cpu.stat | grep -E 'nr_periods|nr_throttled'
		stop
	done
	join=()
else
	say "cgroups cannot be made here: the limits are not tried"
fi
say "done"
