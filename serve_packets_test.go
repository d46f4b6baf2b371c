package rondo_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
)

// ServePackets takes a bare host:port for udp, and tells of what is none.
func TestServePacketsAddress(t *testing.T) {
	err := rondo.ServePackets("127.0.0.1:65536", nil)
	var op *net.OpError
	if !errors.As(err, &op) || !strings.HasPrefix(op.Net, "udp") {
		t.Errorf("a port that cannot be: %v", err)
	}
	if err := rondo.ServePackets("tcp://127.0.0.1:0", nil); err == nil {
		t.Error("served datagrams by tcp")
	}
}
