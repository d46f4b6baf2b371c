module github.com/rondo-go/rondo/compat/gaio/suite

go 1.24.0

require (
	github.com/rondo-go/rondo v0.0.0
	github.com/xtaci/gaio v1.2.34
)

require golang.org/x/sys v0.35.0 // indirect

replace github.com/rondo-go/rondo => ../../..
