module github.com/rondo-go/rondo/ci/nettest

go 1.24.0

require (
	github.com/rondo-go/rondo v0.0.0
	go.uber.org/goleak v1.3.0
	golang.org/x/crypto v0.41.0
	golang.org/x/net v0.43.0
)

require (
	github.com/klauspost/compress v1.18.0 // indirect
	golang.org/x/sys v0.35.0 // indirect
	golang.org/x/text v0.28.0 // indirect
)

replace github.com/rondo-go/rondo => ../..
