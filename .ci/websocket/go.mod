module github.com/rondo-go/rondo/ci/websocket

go 1.24.0

replace github.com/rondo-go/rondo => ../..

require github.com/rondo-go/rondo v0.0.0
