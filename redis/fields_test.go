package redis

import (
	"context"
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
)

// Listen refuses meaningless values, and names the field.
func TestFieldsThatMeanNothing(t *testing.T) {
	for want, s := range map[string]*Server{
		"redis: Server.MaxClients is -1: want 0, for 10000, or more":     {MaxClients: -1},
		"redis: Server.Timeout is -1ns: want 0, for never, or more":      {Timeout: -1},
		"redis: Server.MaxMemory is -1: want 0, for no limit, or more":   {MaxMemory: -1},
		"redis: Server.Debug is 3: want DebugNo, DebugLocal or DebugYes": {Debug: DebugYes + 1},
		"rondo: Engine.NumLoops is -1: want 0, for GOMAXPROCS, or more":  {Engine: &rondo.Engine{NumLoops: -1}},
	} {
		if _, err := s.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		s.Close()
	}
	var s Server
	defer s.Close()
	for want, listen := range map[string]func() (*rondo.Listener, error){
		"redis: filter 1 is nil": func() (*rondo.Listener, error) {
			return s.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, pass, nil)
		},
		"listen tcp 127.0.0.1:0: SocketOptions.SendBuffer is -1": func() (*rondo.Listener, error) {
			return s.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{SendBuffer: -1})
		},
		"unknown network udp": func() (*rondo.Listener, error) { return s.Listen("udp", "127.0.0.1:0", rondo.SocketOptions{}) },
	} {
		if _, err := listen(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	var ctx context.Context
	if err := s.Shutdown(ctx); err == nil || !strings.Contains(err.Error(), "ctx is nil: want a context") {
		t.Error(err)
	}
}

func pass(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }
