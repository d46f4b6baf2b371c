module github.com/rondo-go/rondo/ci/clients

go 1.24.0

require (
	github.com/redis/go-redis/v9 v9.7.0
	github.com/redis/rueidis v1.0.54
)

require (
	github.com/cespare/xxhash/v2 v2.2.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	golang.org/x/sys v0.29.0 // indirect
)
