module github.com/rondo-go/rondo/compat/evio2017/suite

go 1.24.0

require (
	github.com/rondo-go/rondo v0.0.0
	github.com/tidwall/evio v0.1.0
	github.com/tidwall/redcon v1.6.2
)

require (
	github.com/kavu/go_reuseport v1.5.0 // indirect
	github.com/tidwall/btree v1.1.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	golang.org/x/sys v0.35.0 // indirect
)

replace github.com/rondo-go/rondo => ../../..
