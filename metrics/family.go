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
	to <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
}

// describe is Collector.Describe for families.
func describe(to chan<- *prometheus.Desc, all ...family) {
	for _, f := range all {
		to <- f.desc
	}
}
