// Package address reads the addresses of evio's Serve.
package address

import "strings"

// An Address is a parsed address of Serve.
type Address struct {
	Network, Host string
	ReusePort     bool
	Std           bool // with the suffix -net
}

// Parse reads "scheme://host?reuseport=true". It never fails: listening reports
// a wrong address.
func Parse(s string) (a Address) {
	network, host, ok := strings.Cut(s, "://")
	if !ok {
		network, host = "tcp", s
	}
	a.Network, a.Std = strings.CutSuffix(network, "-net")
	var query string
	a.Host, query, _ = strings.Cut(host, "?")
	for _, part := range strings.Split(query, "&") {
		if value, ok := strings.CutPrefix(part, "reuseport="); ok && value != "" {
			a.ReusePort = strings.Contains("123456789TtYy", value[:1])
		}
	}
	return a
}

// Datagrams reports whether the scheme is a udp scheme.
func (a *Address) Datagrams() bool { return strings.HasPrefix(a.Network, "udp") }
