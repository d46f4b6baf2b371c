package load

import "fmt"

// Echo is the workload of a server that sends back what it is sent: messages of
// size bytes, up to pipeline of them at once. They are pieces of one text, which
// each connection begins elsewhere: what is lost, doubled, reordered or sent to
// the wrong connection differs.
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

// MaxInFlight is how many bytes of requests a connection may have in flight.
const MaxInFlight = 64 << 20

// fits tells whether requests of a size, so many at once, are not too much.
func fits(size, pipeline int) error {
	if size > MaxInFlight/pipeline {
		return fmt.Errorf("%d requests of %d bytes in flight are more than the %d MiB that a connection may have: choose smaller ones, or fewer", pipeline, size, MaxInFlight>>20)
	}
	return nil
}
