package redis

import (
	"strings"
	"testing"
)

// BenchmarkPipeline runs GETs and SETs in pipelines, with and without the slow log.
func BenchmarkPipeline(b *testing.B) {
	for _, mode := range []struct{ name, limit string }{{"off", "-1"}, {"slowlog", "10000"}, {"each", "500"}} {
		for _, cmd := range []string{"GET k\r\n", "SET k v\r\n", "LRANGE l 0 1\r\n"} {
			b.Run(mode.name+"/"+cmd[:3], func(b *testing.B) {
				bench := newBench(b, &Server{})
				bench.do("a", "SET", "k", "v")
				bench.do("a", "RPUSH", "l", "a", "b")
				bench.do("a", "CONFIG", "SET", "slowlog-log-slower-than", mode.limit)
				f := bench.connect("a")
				in := []byte(strings.Repeat(cmd, 32))
				for b.Loop() {
					bench.send(f, in)
					f.out = f.out[:0]
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(32*b.N), "ns/command")
			})
		}
	}
}
