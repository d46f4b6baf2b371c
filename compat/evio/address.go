package evio

import "strings"

// address is one of Serve's, taken apart.
type address struct {
	network, host string
	reusePort     bool
	std           bool // of the -net suffix
}

// parse reads "scheme://host?reuseport=true". It refuses nothing: what is wrong the
// listening tells.
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

// datagrams reports whether the scheme is udp's.
func (a *address) datagrams() bool { return strings.HasPrefix(a.network, "udp") }
