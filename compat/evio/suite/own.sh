# For run.sh here and in compat/evio2017/suite.

# ownTests runs evio's tests on the copy of the module in $copy/evio, which has its test
# files and, in place of its implementation, forward.go. (go test -overlay would do
# without the copy, but Go replaces no file of the module cache.) Its arguments go to go
# test; RACE= leaves the race detector out.
ownTests() {
	cp forward.go.txt "$copy/evio/forward.go"
	cp go.mod go.sum "$copy"
	go mod edit -replace "github.com/tidwall/evio=$copy/evio" "$copy/go.mod"
	local try
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
}
