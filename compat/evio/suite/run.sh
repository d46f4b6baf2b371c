#!/usr/bin/env bash
# evio's own test suite, against rondo's compat/evio: a copy of the module that has its
# test file and, in place of its implementation, forward.go.txt. (go test -overlay
# would do without the copy, but Go replaces no file of the module cache.) Then the
# comparison with what evio itself was seen to do. Arguments go to go test; RACE= leaves
# the race detector out.
#
# No test touches unexported internals: all of them run. They listen on the ports 9987
# to 9999, and on unix sockets in the copy.
set -euo pipefail
cd "$(dirname "$0")"

go mod download
dir=$(go list -m -f '{{.Dir}}' github.com/tidwall/evio)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/evio"
cp "$dir"/*_test.go "$dir/go.mod" "$copy/evio"
cp forward.go.txt "$copy/evio/forward.go"
cp go.mod go.sum "$copy"
go mod edit -replace "github.com/tidwall/evio=$copy/evio" "$copy/go.mod"
for try in 1 2 3; do
	if go test -modfile "$copy/go.mod" ${RACE--race} -count=1 -timeout 3m "$@" github.com/tidwall/evio 2>&1 | tee "$copy/log"; then
		break
	fi
	# TestTick wants 25 ticks of 10 ms within a second, which a busy machine may not give.
	if [ "$try" = 3 ] || ! grep -q 'bad ticker timing' "$copy/log"; then
		exit 1
	fi
done
if grep -q mismatch "$copy/log"; then
	echo "an echo differs: evio's tests only print that" >&2
	exit 1
fi
go test ${RACE--race} -count=1 -timeout 3m "$@" .
