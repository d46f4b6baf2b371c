package metrics_test

import (
	"expvar"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/metrics"
	"github.com/rondo-go/rondo/redis"
)

// A server for Redis clients, and what Prometheus gets of it.
func Example() {
	engine := &rondo.Engine{NumLoops: 1}
	defer engine.Close()
	server := &redis.Server{Engine: engine}
	if _, err := server.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}); err != nil {
		log.Fatal(err)
	}
	client, err := server.NewClient()
	if err != nil {
		log.Fatal(err)
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.Engine(engine), metrics.Redis(client))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})

	scraped := httptest.NewServer(handler) // in a program: http.Handle("/metrics", handler)
	defer scraped.Close()
	answer, err := http.Get(scraped.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "rondo_redis_up ") || strings.HasPrefix(line, "rondo_accepted") {
			fmt.Print(line)
		}
	}
	// Output:
	// rondo_accepted_connections_total{loop="0"} 0
	// rondo_redis_up 1
}

// Package expvar needs nothing of this package: the counters marshal to JSON. They are at
// /debug/vars of http.DefaultServeMux.
func Example_expvar() {
	engine := &rondo.Engine{NumLoops: 1}
	expvar.Publish("rondo", expvar.Func(func() any { return engine.Stats() }))

	fmt.Println(strings.HasPrefix(expvar.Get("rondo").String(), `{"Open":0,"Accepted":0,`))
	// Output: true
}
