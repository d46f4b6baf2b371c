package wsframe

import (
	"reflect"
	"strings"
	"testing"
)

// The example of RFC 6455, 1.3.
func TestAcceptKey(t *testing.T) {
	if got := AcceptKey("dGhlIHNhbXBsZSBub25jZQ=="); got != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Error(got)
	}
}

func TestValidKey(t *testing.T) {
	for key, want := range map[string]bool{
		"dGhlIHNhbXBsZSBub25jZQ==":  true,
		"":                          false,
		"dGhlIHNhbXBsZSBub25jZQ":    false,
		"dGhlIHNhbXBsZSBub25jZR==":  false, // bits behind the 16 bytes
		"dGhlIHNhbXBsZSBub25jZSE=":  false, // 17 bytes
		"dGhlIHNhbXBsZSBub25j\nQ==": false,
		"dGhlIHNhbXBsZSBub25jZQ= =": false,
	} {
		if ValidKey(key) != want {
			t.Errorf("%q: %t", key, !want)
		}
	}
}

func TestParseExtensions(t *testing.T) {
	one := func(name string, params ...Param) Extension { return Extension{name, params} }
	tests := []struct {
		in   []string
		want []Extension // nil: malformed
	}{
		{[]string{"foo"}, []Extension{one("foo")}},
		{[]string{"foo, bar; baz=2", "x;y"}, []Extension{one("foo"), one("bar", Param{"baz", "2", true}), one("x", Param{Name: "y"})}},
		{[]string{` foo ; a = "b" ;c="\d" `}, []Extension{one("foo", Param{"a", "b", true}, Param{"c", "d", true})}},
		{[]string{",foo,,bar,"}, []Extension{one("foo"), one("bar")}},
		{[]string{""}, nil},
		{[]string{","}, nil},
		{[]string{"foo bar"}, nil},
		{[]string{"foo;"}, nil},
		{[]string{"foo;=1"}, nil},
		{[]string{"foo; a="}, nil},
		{[]string{`foo; a=""`}, nil},
		{[]string{`foo; a="b`}, nil},
		{[]string{`foo; a="b c"`}, nil},
		{[]string{`foo; a="b\`}, nil},
		{[]string{"foo/bar"}, nil},
		{[]string{"foo\x00"}, nil},
		{[]string{"f\xc3\xb6"}, nil},
	}
	for _, tt := range tests {
		got, err := ParseExtensions(tt.in)
		if !reflect.DeepEqual(got, tt.want) || (err == nil) != (tt.want != nil) {
			t.Errorf("%q: %+v, %v", tt.in, got, err)
		}
	}
	if got, err := ParseExtensions(nil); got != nil || err != nil {
		t.Errorf("without a header: %v, %v", got, err)
	}
}

func TestIsToken(t *testing.T) {
	for s, want := range map[string]bool{"chat": true, "v1.x-y_z!": true, "": false, "a b": false, "a,b": false, "a\"": false, "é": false, "a\x7f": false} {
		if IsToken(s) != want {
			t.Errorf("%q: %t", s, !want)
		}
	}
}

func TestDeflateAnswer(t *testing.T) {
	const name = "permessage-deflate"
	tests := []struct {
		wish         Deflate
		offer, want  string // want "": declined
		clientAgrees bool
	}{
		{Deflate{}, name, name, true},
		{Deflate{}, name + "; client_max_window_bits", name, true},
		{Deflate{}, name + "; client_max_window_bits=10", name + "; client_max_window_bits=10", true},
		{Deflate{}, name + "; server_max_window_bits=15", name + "; server_max_window_bits=15", true},
		{Deflate{}, name + "; server_max_window_bits=8; server_no_context_takeover", name + "; server_no_context_takeover; server_max_window_bits=8", true},
		{Deflate{}, name + "; client_no_context_takeover", name + "; client_no_context_takeover", true},
		{Deflate{}, name + `; client_max_window_bits="9"`, name + "; client_max_window_bits=9", true},
		{Deflate{ServerMaxWindowBits: 9}, name, name + "; server_max_window_bits=9", true},
		{Deflate{ServerMaxWindowBits: 9}, name + "; server_max_window_bits=8", name + "; server_max_window_bits=8", true},
		{Deflate{ServerMaxWindowBits: 9}, name + "; server_max_window_bits=12", name + "; server_max_window_bits=9", true},
		{Deflate{ClientMaxWindowBits: 9}, name + "; client_max_window_bits", name + "; client_max_window_bits=9", true},
		{Deflate{ClientMaxWindowBits: 9}, name + "; client_max_window_bits=8", name + "; client_max_window_bits=8", true},
		{Deflate{ClientMaxWindowBits: 9}, name, name + "; client_no_context_takeover", true},
		{Deflate{ServerNoContextTakeover: true, ClientNoContextTakeover: true}, name, name + "; server_no_context_takeover; client_no_context_takeover", true},
		{Deflate{}, name + "; unknown", "", false},
		{Deflate{}, name + "; server_no_context_takeover=1", "", false},
		{Deflate{}, name + "; client_no_context_takeover; client_no_context_takeover", "", false},
		{Deflate{}, name + "; server_max_window_bits", "", false},
		{Deflate{}, name + "; server_max_window_bits=7", "", false},
		{Deflate{}, name + "; server_max_window_bits=16", "", false},
		{Deflate{}, name + "; server_max_window_bits=08", "", false},
		{Deflate{}, name + "; client_max_window_bits=+9", "", false},
		{Deflate{}, "x-webkit-deflate-frame", "", false},
		{Deflate{}, name + "; unknown, other, " + name + "; client_max_window_bits=9", name + "; client_max_window_bits=9", false},
	}
	for _, tt := range tests {
		offers, err := ParseExtensions([]string{tt.offer})
		if err != nil {
			t.Errorf("%q: %v", tt.offer, err)
			continue
		}
		answer, ok := tt.wish.Answer(offers)
		if ok != (tt.want != "") || ok && answer.String() != tt.want {
			t.Errorf("%+v: the answer to %q is %q, %t, want %q", tt.wish, tt.offer, answer, ok, tt.want)
		}
		if tt.clientAgrees {
			offer, _ := ParseDeflate(offers[0])
			back, _ := ParseExtensions([]string{answer.String()})
			if _, ok, err := offer.Accept(back); !ok || err != nil {
				t.Errorf("%q does not accept %q: %v", tt.offer, answer, err)
			}
		}
	}
}

func TestDeflateAccept(t *testing.T) {
	const name = "permessage-deflate"
	full := Deflate{ServerNoContextTakeover: true, ClientNoContextTakeover: true, ServerMaxWindowBits: 10, ClientMaxWindowBits: 11}
	tests := []struct {
		offer  Deflate
		answer string
		want   Deflate
		ok     bool
		err    string
	}{
		{Deflate{}, "", Deflate{}, false, ""},
		{Deflate{}, name, Deflate{}, true, ""},
		{Deflate{}, name + "; server_max_window_bits=9; client_no_context_takeover", Deflate{ServerMaxWindowBits: 9, ClientNoContextTakeover: true}, true, ""},
		{Deflate{ClientMaxWindowBits: AnyBits}, name + "; client_max_window_bits=9", Deflate{ClientMaxWindowBits: 9}, true, ""},
		{full, name + "; server_no_context_takeover; server_max_window_bits=10", full, true, ""},
		{full, name + "; server_no_context_takeover; server_max_window_bits=8; client_max_window_bits=8",
			Deflate{ServerNoContextTakeover: true, ClientNoContextTakeover: true, ServerMaxWindowBits: 8, ClientMaxWindowBits: 8}, true, ""},
		{full, name + "; server_max_window_bits=10", Deflate{}, false, "does not fit"},
		{full, name + "; server_no_context_takeover", Deflate{}, false, "does not fit"},
		{full, name + "; server_no_context_takeover; server_max_window_bits=11", Deflate{}, false, "does not fit"},
		{full, name + "; server_no_context_takeover; server_max_window_bits=10; client_max_window_bits=12", Deflate{}, false, "does not fit"},
		{Deflate{}, name + "; client_max_window_bits=15", Deflate{}, false, "does not fit"},
		{Deflate{ClientMaxWindowBits: AnyBits}, name + "; client_max_window_bits", Deflate{}, false, "does not fit"},
		{Deflate{}, name + "; unknown=1", Deflate{}, false, "unknown"},
		{Deflate{}, "other", Deflate{}, false, `"other"`},
		{Deflate{}, name + ", " + name, Deflate{}, false, "twice"},
	}
	for _, tt := range tests {
		var headers []string
		if tt.answer != "" {
			headers = []string{tt.answer}
		}
		answer, err := ParseExtensions(headers)
		if err != nil {
			t.Error(err)
		}
		got, ok, err := tt.offer.Accept(answer)
		if got != tt.want || ok != tt.ok || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%v, answered with %q: %+v, %t, %v", tt.offer, tt.answer, got, ok, err)
		}
	}
}

func TestDeflateCheck(t *testing.T) {
	for d, want := range map[Deflate]bool{
		{}: true, {ServerMaxWindowBits: 8, ClientMaxWindowBits: 15}: true, {ClientMaxWindowBits: AnyBits}: true,
		{ServerMaxWindowBits: 7}: false, {ServerMaxWindowBits: AnyBits}: false, {ClientMaxWindowBits: 16}: false,
	} {
		if err := d.Check(); (err == nil) != want {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

// A server's answer always fits the offer, whatever both want; and extensions survive
// being written and parsed.
func FuzzDeflate(f *testing.F) {
	f.Add("permessage-deflate; client_max_window_bits; server_max_window_bits=10", false, true, 9, 8)
	f.Add(`permessage-deflate;server_no_context_takeover;a="b\"`, true, true, 15, 0)
	f.Fuzz(func(t *testing.T, header string, serverNo, clientNo bool, server, client int) {
		offers, err := ParseExtensions([]string{header})
		wish := Deflate{serverNo, clientNo, server, client}
		if err != nil || wish.Check() != nil {
			return
		}
		answer, ok := wish.Answer(offers)
		if !ok {
			return
		}
		var offer Deflate
		for _, e := range offers {
			if offer, err = ParseDeflate(e); err == nil {
				break
			}
		}
		parsed, err := ParseExtensions([]string{offer.String()})
		if again, err2 := ParseDeflate(parsed[0]); err != nil || err2 != nil || again != offer {
			t.Fatalf("%+v became %+v, %v, %v", offer, again, err, err2)
		}
		back, err := ParseExtensions([]string{answer.String()})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok, err := offer.Accept(back); !ok || err != nil {
			t.Fatalf("the answer %q to %q does not fit: %v", answer, header, err)
		}
	})
}
