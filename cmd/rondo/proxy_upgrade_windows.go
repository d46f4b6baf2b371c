package main

import (
	"errors"
	"net"
	"os"
)

// Windows has neither the signal nor descriptors that can be passed on.

func notifyUpgrade() <-chan os.Signal { return nil }

func isSpawned() bool { return false }

func spawnedBy() (*net.UnixConn, error) { return nil, nil }

type child struct{}

func (child) Kill()       {}
func (child) Wait() error { return nil }

func spawn() (child, *net.UnixConn, error) { return child{}, nil, errors.ErrUnsupported }
