package rtls_test

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/rtls"
)

// What no handshake could succeed with is found where it is given.
func TestFieldsThatMeanNothing(t *testing.T) {
	negative := &rtls.Options{OffLoop: -1}
	for want, f := range map[string]func(){
		"rtls: Server: config is nil":                    func() { rtls.Server(nil) },
		"rtls: Client: config is nil":                    func() { rtls.Client(nil) },
		"rtls: Server: the config gives no certificate":  func() { rtls.Server(&tls.Config{}) },
		"rtls: Options.OffLoop is -1: want 0, for hands": func() { negative.Server(serverConfig(0)) },
		"rtls: Options.OffLoop is -1: want 0":            func() { negative.Client(clientConfig()) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, want) {
					t.Errorf("panicked with %q, want %q", got, want)
				}
			}()
			f()
		}()
	}
	rtls.Server(&tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }})
	rtls.Server(&tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }})
}
