package address

import "testing"

func TestParse(t *testing.T) {
	for s, want := range map[string]Address{
		":5000":                               {Network: "tcp", Host: ":5000"},
		"tcp://:5000":                         {Network: "tcp", Host: ":5000"},
		"tcp-net://:5000?reuseport=true":      {Network: "tcp", Host: ":5000", Std: true, ReusePort: true},
		"udp6://[::1]:53?reuseport=1":         {Network: "udp6", Host: "[::1]:53", ReusePort: true},
		"tcp://:1?reuseport=Yes&x=1":          {Network: "tcp", Host: ":1", ReusePort: true},
		"tcp://:1?x&reuseport=0":              {Network: "tcp", Host: ":1"},
		"tcp://:1?reuseport=":                 {Network: "tcp", Host: ":1"},
		"tcp://:1?reuseport=false":            {Network: "tcp", Host: ":1"},
		"unix-net:///run/x":                   {Network: "unix", Host: "/run/x", Std: true},
		"unix://socket":                       {Network: "unix", Host: "socket"},
		"tcp://":                              {Network: "tcp"},
		"tulip://howdy":                       {Network: "tulip", Host: "howdy"},
		"tcp://:1?reuseport=no&reuseport=yes": {Network: "tcp", Host: ":1", ReusePort: true},
	} {
		if got := Parse(s); got != want {
			t.Errorf("%q: %+v, want %+v", s, got, want)
		}
	}
}
