package rondotest_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
)

// upper answers each line in upper case.
func upper(*rondo.Conn) rondo.Handler {
	return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (n int, err error) {
		for {
			end := bytes.IndexByte(in[n:], '\n')
			if end < 0 {
				return n, nil
			}
			line := in[n : n+end+1]
			if _, err := c.Write(bytes.ToUpper(line)); err != nil {
				return n, err
			}
			n += len(line)
		}
	})
}

// A line handler, and a client that sends a line in two parts. The answer must not depend
// on how the network cuts the bytes, so the example tries a thousand seeds.
func Example() {
	answers := map[string]int{}
	for seed := range uint64(1000) {
		n := rondotest.New(nil, rondotest.Options{Seed: seed + 1})
		n.Serve(":7", upper)
		c := n.Dial("tcp", "127.0.0.1:7")
		c.Send("hello\nwor")
		n.Run() // all of it arrives, some time
		c.Send("ld\n")
		c.CloseWrite()
		answer, err := io.ReadAll(c)
		if err != nil {
			panic(err)
		}
		answers[string(answer)]++
		n.Close()
	}
	for answer, times := range answers {
		fmt.Printf("%q %d times\n", answer, times)
	}
	// Output: "HELLO\nWORLD\n" 1000 times
}

// An idle timeout of an hour takes no time to test.
func ExampleNetwork_idle() {
	n := rondotest.New(nil, rondotest.Options{Seed: 1})
	defer n.Close()
	n.Serve(":7", func(c *rondo.Conn) rondo.Handler {
		c.SetIdle(time.Hour)
		return upper(c)
	})
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Send("hello\n")
	c.Expect("HELLO\n")

	began := n.Now()
	_, err := c.Read(make([]byte, 1))
	fmt.Println(err, "after", n.Now().Sub(began).Round(time.Minute))
	// Output: EOF after 1h0m0s
}

// In a test, pass the test to New: the Network then reports failures with the seed, and
// closes everything at the end.
func ExampleNew() {
	_ = func(t *testing.T) {
		for range 1000 {
			t.Run("", func(t *testing.T) {
				n := rondotest.New(t, rondotest.Options{Faults: rondotest.Harmless(0.1)})
				n.Serve(":7", upper)
				c := n.Dial("tcp", "127.0.0.1:7")
				c.Send(strings.Repeat("a\n", 1000))
				c.Expect(strings.Repeat("A\n", 1000))
			})
		}
	}
}
