#!/usr/bin/env bash
# gaio's own test suite, against rondo's compat/gaio: a copy of the module that has its
# test files and, in place of its implementation, forward.go.txt. (go test -overlay
# would do without the copy, but Go replaces no file of the module cache.) Arguments
# go to go test; RACE= leaves the race detector out.
set -euo pipefail
cd "$(dirname "$0")"

# Test files of its unexported internals, which do not exist here:
#   time_test.go: TestTimedHeapOrderAndIndex, TestTimedHeapSwapUpdatesIndex (the heap
#   that its timers are in)
without="time_test.go"

# Tests that open more descriptors than a process may have here: two for each of
# 10,240 or 12,288 connections. They cannot pass on gaio itself either.
skip='^$'
if [ "$(ulimit -n)" -lt 21000 ]; then
	skip='^(Test10k|Test12k|Test10kRandomSwapBuffer|Test10kCompleteSwapBuffer)$'
elif [ "$(ulimit -n)" -lt 25500 ]; then
	skip='^Test12k$'
fi

go mod download
dir=$(go list -m -f '{{.Dir}}' github.com/xtaci/gaio)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/gaio"
cp "$dir"/*_test.go "$dir/go.mod" "$copy/gaio"
rm "$copy/gaio/$without"
cp forward.go.txt "$copy/gaio/forward.go"
cp go.mod go.sum "$copy"
go mod edit -replace "github.com/xtaci/gaio=$copy/gaio" "$copy/go.mod"
go test -modfile "$copy/go.mod" ${RACE--race} -count=1 -timeout 8m -skip "$skip" "$@" github.com/xtaci/gaio
