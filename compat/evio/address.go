package evio

import "strings"

// address is a parsed address of Serve.
type address struct {
	network, host string
	reusePort     bool
	std           bool // with the suffix -net
}

// parse reads "scheme://host?reuseport=true". It never fails: listening reports
// a wrong address.
func parse(s string) (a address) {
	network, host, ok := strings.Cut(s, "://")
	if !ok {
		network, host = "tcp", s
	}
	a.network, a.std = strings.CutSuffix(network, "-net")
	var query string
	a.host, query, _ = strings.Cut(host, "?")
	for _, part := range strings.Split(query, "&") {
		if value, ok := strings.CutPrefix(part, "reuseport="); ok && value != "" {
			a.reusePort = strings.Contains("123456789TtYy", value[:1])
		}
	}
	return a
}

// datagrams reports whether the scheme is a udp scheme.
func (a *address) datagrams() bool { return strings.HasPrefix(a.network, "udp") }
