package metrics

import "github.com/prometheus/client_golang/prometheus"

// A family is the metrics of a name, with different labels.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func counter(name, help string, labels ...string) family {
	return family{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue}
}

func gauge(name, help string, labels ...string) family {
	return family{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

// send gives a value to Prometheus.
func (f family) send(to chan<- prometheus.Metric, value float64, labels ...string) {
	sendIf(to)(prometheus.NewConstMetric(f.desc, f.kind, value, labels...))
}

// sendIf returns a function that gives Prometheus a metric, if it takes that: it does not if a
// label is not UTF-8, such as a code of errors that a client has chosen.
func sendIf(to chan<- prometheus.Metric) func(prometheus.Metric, error) {
	return func(m prometheus.Metric, err error) {
		if err == nil {
			to <- m
		}
	}
}

// describe is Collector.Describe for families.
func describe(to chan<- *prometheus.Desc, all ...family) {
	for _, f := range all {
		to <- f.desc
	}
}
