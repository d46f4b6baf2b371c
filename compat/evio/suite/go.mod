module github.com/rondo-go/rondo/compat/evio/suite

go 1.24.0

require (
	github.com/rondo-go/rondo v0.0.0
	github.com/tidwall/evio v1.0.8
)

require (
	github.com/kavu/go_reuseport v1.5.0 // indirect
	golang.org/x/sys v0.35.0 // indirect
)

replace github.com/rondo-go/rondo => ../../..
