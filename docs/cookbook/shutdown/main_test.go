package main

import (
	"context"
	"io"
	"log"
	"net"
	"strings"
	"testing"
	"time"
)

// TestRun: what was written before the end is delivered.
func TestRun(t *testing.T) {
	read, write := io.Pipe()
	before := log.Writer()
	log.SetOutput(write)
	defer log.SetOutput(before)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, "127.0.0.1:0", open) }()
	line := make([]byte, 100)
	n, err := read.Read(line)
	_, address, found := strings.Cut(strings.TrimSpace(string(line[:n])), "listening on ")
	if !found {
		t.Fatalf("%q, %v", line[:n], err)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, "hello")
	answer := make([]byte, 5)
	if _, err := io.ReadFull(c, answer); string(answer) != "hello" || err != nil {
		t.Errorf("%q, %v", answer, err)
	}
	stop()
	if rest, err := io.ReadAll(c); len(rest) > 0 || err != nil {
		t.Errorf("at the end %q, %v", rest, err)
	}
	c.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
