#!/usr/bin/env bash
# evio's own test suite, against rondo's compat/evio (see own.sh). Then the comparison
# with what evio itself was seen to do. Arguments go to go test; RACE= leaves the race
# detector out.
#
# No test touches unexported internals: all of them run. They listen on the ports 9987
# to 9999, and on unix sockets in the copy.
set -euo pipefail
cd "$(dirname "$0")"
. ./own.sh

go mod download
dir=$(go list -m -f '{{.Dir}}' github.com/tidwall/evio)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/evio"
cp "$dir"/*_test.go "$dir/go.mod" "$copy/evio"
ownTests "$@"
go test ${RACE--race} -count=1 -timeout 3m "$@" .
