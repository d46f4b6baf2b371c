module github.com/rondo-go/rondo/bench/arena

go 1.24.0

replace github.com/rondo-go/rondo => ../..

require github.com/rondo-go/rondo v0.0.0

require (
	github.com/klauspost/compress v1.18.0 // indirect
	golang.org/x/sys v0.35.0 // indirect
)
