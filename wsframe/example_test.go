package wsframe_test

import (
	"fmt"

	"github.com/rondo-go/rondo/wsframe"
)

// A server reads what a client sends, and leaves what is incomplete.
func ExampleReader() {
	key := [4]byte{1, 2, 3, 4}
	in := wsframe.AppendMasked(nil, wsframe.Text, []byte("hello"), key)
	in = wsframe.AppendMasked(in, wsframe.Close, wsframe.AppendClose(nil, wsframe.CodeNormal, "bye"), key)
	in = in[:len(in)-1]

	var r wsframe.Reader
	for {
		p, n, want, err := r.Read(in)
		if err != nil {
			fmt.Println(err)
			return
		}
		if n == 0 {
			fmt.Printf("%d bytes left, %d wanted\n", len(in), want)
			return
		}
		fmt.Printf("%v %q, last %t\n", p.Opcode, p.Payload, p.Last)
		in = in[n:]
	}
	// Output:
	// text "hello", last true
	// 10 bytes left, 11 wanted
}

// A server takes an offer of compression, and bounds both windows.
func ExampleDeflate_Answer() {
	offers, err := wsframe.ParseExtensions([]string{"permessage-deflate; client_max_window_bits; server_max_window_bits=12"})
	if err != nil {
		fmt.Println(err)
		return
	}
	wish := wsframe.Deflate{ClientMaxWindowBits: 10, ServerMaxWindowBits: 14}
	fmt.Println(wish.Answer(offers))
	// Output: permessage-deflate; server_max_window_bits=12; client_max_window_bits=10 true
}
