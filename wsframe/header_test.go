package wsframe

import (
	"bytes"
	"math"
	"testing"
)

func TestReadHeader(t *testing.T) {
	key := [4]byte{1, 2, 3, 4}
	tests := []struct {
		in   string
		want Header
		err  error
	}{
		{"\x81\x00", Header{Fin: true, Opcode: Text}, nil},
		{"\x02\x7d", Header{Opcode: Binary, Length: 125}, nil},
		{"\xc1\x7e\x00\x7e", Header{Fin: true, RSV: RSV1, Opcode: Text, Length: 126}, nil},
		{"\xf0\x7e\xff\xff", Header{Fin: true, RSV: 7, Length: 65535}, nil},
		{"\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00", Header{Fin: true, Opcode: Binary, Length: 65536}, nil},
		{"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", Header{Fin: true, Opcode: Binary, Length: math.MaxInt64}, nil},
		{"\x89\xfd\x01\x02\x03\x04", Header{Fin: true, Opcode: Ping, Masked: true, Key: key, Length: 125}, nil},
		{"\x82\xfe\x01\x00\x01\x02\x03\x04", Header{Fin: true, Opcode: Binary, Masked: true, Key: key, Length: 256}, nil},
		{"\x83", Header{}, errOpcode},
		{"\x87", Header{}, errOpcode},
		{"\x8b", Header{}, errOpcode},
		{"\x8f", Header{}, errOpcode},
		{"\x0b", Header{}, errOpcode},
		{"\x08", Header{}, errControlFragment},
		{"\x09", Header{}, errControlFragment},
		{"\x0a", Header{}, errControlFragment},
		{"\x88\x7e", Header{}, errControlLength},
		{"\x89\xff", Header{}, errControlLength},
		{"\x81\x7e\x00\x7d", Header{}, errLengthForm},
		{"\x81\x7f\x00\x00\x00\x00\x00\x00\xff\xff", Header{}, errLengthForm},
		{"\x81\x7f\x80\x00\x00\x00\x00\x00\x00\x00", Header{}, errLengthSign},
		{"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff", Header{}, errLengthSign},
	}
	for _, tt := range tests {
		in := []byte(tt.in)
		for have := range in {
			if _, n, want, err := ReadHeader(in[:have]); n != 0 || want <= have || want > len(in)+12 || err != nil {
				t.Errorf("%x: of %d bytes: n %d, want %d, err %v", in, have, n, want, err)
			}
		}
		for _, more := range []string{"", "payload"} {
			h, n, _, err := ReadHeader(append(in, more...))
			if h != tt.want || err != tt.err || err == nil && n != len(in) {
				t.Errorf("%x: %+v, n %d, err %v, want %+v, %v", in, h, n, err, tt.want, tt.err)
			}
		}
		if tt.err != nil {
			continue
		}
		if again := AppendHeader(nil, tt.want); !bytes.Equal(again, in) {
			t.Errorf("%+v became %x, want %x", tt.want, again, in)
		}
	}
}

// The frames of RFC 6455, 5.7.
func TestAppend(t *testing.T) {
	key := [4]byte{0x37, 0xfa, 0x21, 0x3d}
	tests := []struct{ got, want []byte }{
		{AppendFrame(nil, Text, []byte("Hello")), []byte("\x81\x05Hello")},
		{AppendMasked(nil, Text, []byte("Hello"), key), []byte("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58")},
		{AppendFrame(nil, Ping, []byte("Hello")), []byte("\x89\x05Hello")},
		{AppendMasked(nil, Pong, []byte("Hello"), key), []byte("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58")},
		{AppendFrame(nil, Binary, make([]byte, 256)), append([]byte("\x82\x7e\x01\x00"), make([]byte, 256)...)},
		{AppendFrame(nil, Binary, make([]byte, 65536)), append([]byte("\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00"), make([]byte, 65536)...)},
		{AppendFrame([]byte("x"), Close, nil), []byte("x\x88\x00")},
	}
	for _, tt := range tests {
		if !bytes.Equal(tt.got, tt.want) {
			t.Errorf("%.40x, want %.40x", tt.got, tt.want)
		}
	}
}

func TestOpcode(t *testing.T) {
	for o := range Opcode(16) {
		known := o == Continuation || o == Text || o == Binary || o == Close || o == Ping || o == Pong
		if o.IsKnown() != known || o.IsControl() != (o >= 8) || o.String() == "" {
			t.Errorf("%v: known %t, control %t", o, o.IsKnown(), o.IsControl())
		}
	}
}

func TestMask(t *testing.T) {
	key := [4]byte{0xde, 0xad, 0x00, 0x01}
	for size := range 100 {
		for pos := range 5 {
			p := make([]byte, size)
			for i := range p {
				p[i] = byte(i * 7)
			}
			Mask(p, key, pos)
			for i, c := range p {
				if want := byte(i*7) ^ key[(pos+i)%4]; c != want {
					t.Fatalf("%d bytes from %d: byte %d is %x, want %x", size, pos, i, c, want)
				}
			}
		}
	}
}
