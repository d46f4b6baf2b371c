package main

import (
	"context"
	"net"
	"strings"
	"testing"
)

func TestParseRedisBenchmark(t *testing.T) {
	const csv = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"GET","99900.10","0.26","0.08","0.255","0.375","0.479","1.503"
`
	got, err := parseRedisBenchmark(csv, "get")
	want := figures{PerSecond: 99900.10, P50: 255, P95: 375, P99: 479, Max: 1503}
	if err != nil || got != want {
		t.Errorf("parseRedisBenchmark = %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "\"GET\",\"99900.10\"\n", strings.Replace(csv, "0.255", "fast", 1), strings.Replace(csv, "GET", "SET", 1)} {
		if got, err := parseRedisBenchmark(bad, "get"); err == nil {
			t.Errorf("parseRedisBenchmark(%q) = %+v, want an error", bad, got)
		}
	}
}

func TestParseRondoBench(t *testing.T) {
	const printed = `{"results": [{"test": "get", "requests_per_s": 1234.5, "latency_us": {"mean": 2, "p50": 1, "p90": 3, "p99": 4, "p99.9": 5, "max": 6}}]}`
	got, err := parseRondoBench([]byte(printed))
	want := figures{PerSecond: 1234.5, P50: 1, P90: 3, P99: 4, P999: 5, Max: 6}
	if err != nil || got != want {
		t.Errorf("parseRondoBench = %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", `{"results": []}`, strings.Replace(printed, "1234.5", "0", 1)} {
		if got, err := parseRondoBench([]byte(bad)); err == nil {
			t.Errorf("parseRondoBench(%q) = %+v, want an error", bad, got)
		}
	}
}

func TestCheckRedis(t *testing.T) {
	port := listen(t, func(c net.Conn, _ []byte) {
		c.Write([]byte("+OK\r\n$3\r\nxxy\r\n"))
	})
	if err := checkRedis(context.Background(), port); err == nil || !strings.Contains(err.Error(), "xxy") {
		t.Errorf("error %v, want one that shows the wrong reply", err)
	}
}
