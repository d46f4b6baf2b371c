package resp_test

import (
	"fmt"

	"github.com/rondo-go/rondo/resp"
)

// A server reads every request that has arrived, and leaves the rest until want
// bytes have arrived.
func ExampleReadRequest() {
	in := []byte("*2\r\n$3\r\nGET\r\n$3\r\nkey\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$100\r\nhel")
	var args [][]byte
	for {
		var n, want int
		var err error
		args, n, want, err = resp.ReadRequest(in, args, resp.Limits{})
		if err != nil {
			fmt.Println("-ERR Protocol error:", err)
			return
		}
		if n == 0 {
			fmt.Printf("%d bytes left, %d wanted\n", len(in), want)
			return
		}
		fmt.Printf("%q\n", args)
		in = in[n:]
	}
	// Output:
	// ["GET" "key"]
	// ["PING"]
	// 23 bytes left, 122 wanted
}

func ExampleReadRequest_protocolError() {
	_, _, _, err := resp.ReadRequest([]byte("*1\r\nPING\r\n"), nil, resp.Limits{})
	fmt.Println(err)
	// Output: expected '$', got 'P'
}

// The same code answers clients of both protocol versions.
func ExampleReply() {
	for _, proto := range []int{2, 3} {
		r := resp.Reply{Proto: proto}
		r.Map(1)
		r.BulkString("maxmemory")
		r.Null()
		fmt.Printf("%q\n", r.B)
	}
	// Output:
	// "*2\r\n$9\r\nmaxmemory\r\n$-1\r\n"
	// "%1\r\n$9\r\nmaxmemory\r\n_\r\n"
}

// A client writes requests and reads the replies.
func ExampleReadValue() {
	request := resp.AppendRequest(nil, "CONFIG", "GET", "port")
	fmt.Printf("%q\n", request)

	reply := []byte("%1\r\n$4\r\nport\r\n$4\r\n6379\r\n")
	v, n, _, err := resp.ReadValue(reply)
	fmt.Printf("%c %q = %q, %d bytes, %v\n", v.Kind, v.Elems[0].Str, v.Elems[1].Str, n, err)
	// Output:
	// "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$4\r\nport\r\n"
	// % "port" = "6379", 24 bytes, <nil>
}
