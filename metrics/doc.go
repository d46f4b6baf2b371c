// Package metrics shows the counters of rondo's engines and servers to Prometheus. It is a
// module of its own, so that programs without it need nothing of Prometheus.
//
//	registry.MustRegister(metrics.Engine(engine))
//	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
//
// Nothing is counted twice, and nothing is gathered between two scrapes: a scrape reads what
// the servers count anyway. A scrape of an Engine or a Proxy waits for no loop.
//
// A program with several engines, or servers of a kind, registers each with a label of its own:
//
//	prometheus.WrapRegistererWith(prometheus.Labels{"engine": "front"}, registry).MustRegister(metrics.Engine(front))
//
// For OpenTelemetry, give the registry to go.opentelemetry.io/contrib/bridges/prometheus, which
// passes what it gathers on. For expvar no package is needed: see the example.
//
// The figures of Go and of the process (memory, collections, descriptors) are package
// collectors of client_golang.
package metrics
