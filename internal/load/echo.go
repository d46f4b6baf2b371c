package load

import "fmt"

// Echo is the workload for an echo server: messages of size bytes, up to
// pipeline of them at once. They are pieces of one text, which each connection
// starts at another place. So lost, doubled, reordered or misdirected bytes
// show as a difference.
func Echo(size, pipeline int) (Workload, error) {
	if err := fits(size, pipeline); err != nil {
		return Workload{}, err
	}
	text := pattern(size * pipeline)
	return Workload{
		Name:        "echo",
		RequestSize: size,
		Talk: func(id int) Talk {
			start := head{text, place(id)}
			return Talk{&taped{start, size}, &tapedReplies{head: start, size: size}}
		},
	}, nil
}

// place spreads numbers over the pattern.
func place(i int) int { return i % patternPeriod * 12289 % patternPeriod }

// MaxInFlight is the maximum number of request bytes in flight on a connection.
const MaxInFlight = 64 << 20

// fits returns an error if pipeline requests of size bytes exceed MaxInFlight.
func fits(size, pipeline int) error {
	if size > MaxInFlight/pipeline {
		return fmt.Errorf("%d requests of %d bytes in flight exceed the %d MiB of a connection: want fewer or smaller requests", pipeline, size, MaxInFlight>>20)
	}
	return nil
}
