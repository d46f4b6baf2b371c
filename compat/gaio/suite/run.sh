#!/usr/bin/env bash
# gaio's own test suite, against rondo's compat/gaio: its test files are compiled
# with a forwarder in place of its implementation. Arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")"

# Tests of its unexported internals, which do not exist here:
#   TestTimedHeapOrderAndIndex   time_test.go: the heap of its timers
#   TestTimedHeapSwapUpdatesIndex
without="time_test.go"

# Tests that open more descriptors than a process may have here: two for each of
# 10,240 or 12,288 connections. They fail in the same way on gaio itself.
skip='^$'
if [ "$(ulimit -n)" -lt 21000 ]; then
	skip='^(Test10k|Test12k|Test10kRandomSwapBuffer|Test10kCompleteSwapBuffer)$'
elif [ "$(ulimit -n)" -lt 25500 ]; then
	skip='^Test12k$'
fi

dir=$(go list -m -f '{{.Dir}}' github.com/xtaci/gaio)
overlay=$(mktemp)
trap 'rm -f "$overlay"' EXIT
{
	printf '{"Replace":{\n'
	for file in "$dir"/*.go; do
		case $(basename "$file") in
		watcher.go) with=$PWD/forward.go.txt ;;
		$without) with= ;;
		*_test.go) continue ;;
		*) with= ;;
		esac
		printf '"%s":"%s",\n' "$file" "$with"
	done
	printf '"%s/none.go":""}}\n' "$dir"
} >"$overlay"
go test -overlay "$overlay" -race -count=1 -timeout 8m -skip "$skip" "$@" github.com/xtaci/gaio
