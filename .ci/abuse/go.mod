module github.com/rondo-go/rondo/ci/abuse

go 1.24.0
