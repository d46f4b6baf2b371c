module github.com/rondo-go/rondo/ci/websocket

go 1.24.0

replace github.com/rondo-go/rondo => ../..

require (
	github.com/coder/websocket v1.8.13
	github.com/gorilla/websocket v1.5.3
	github.com/lxzan/gws v1.8.9
	github.com/rondo-go/rondo v0.0.0
)

require (
	github.com/dolthub/maphash v0.1.0 // indirect
	github.com/klauspost/compress v1.18.0 // indirect
	golang.org/x/sys v0.35.0 // indirect
)
