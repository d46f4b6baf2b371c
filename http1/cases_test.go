package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	ok         = 200 // the request is accepted
	incomplete = 0   // and valid so far
)

// A syntaxCase is one request, and the status of its answer. The clause is the one of RFC
// 9112, or, with a prefix, of RFC 9110 or 3986.
type syntaxCase struct {
	clause string
	in     string
	want   int
}

// line is a request with a request line and a Host.
func line(s string) string { return s + "\r\nHost: a.example\r\n\r\n" }

// head is a request with some fields, beside Host.
func head(fields ...string) string {
	return "GET / HTTP/1.1\r\nHost: a.example\r\n" + strings.Join(fields, "\r\n") + "\r\n\r\n"
}

// host is a request with one Host field.
func host(value string) string { return "GET / HTTP/1.1\r\nHost:" + value + "\r\n\r\n" }

// sized is a request with a Content-Length and 5 bytes behind the head.
func sized(value string) string {
	return "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length:" + value + "\r\n\r\nhello"
}

// encoded is a request with a Transfer-Encoding, and a chunked body that fits it.
func encoded(value string, more ...string) string {
	fields := append([]string{"Transfer-Encoding:" + value}, more...)
	return "POST / HTTP/1.1\r\nHost: a.example\r\n" + strings.Join(fields, "\r\n") + "\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
}

// chunks is a request with a chunked body.
func chunks(body string) string {
	return "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n" + body
}

// first is a chunked body whose first size line is given.
func first(size string) string { return chunks(size + "hello\r\n0\r\n\r\n") }

// trailed is a chunked body with a trailer section.
func trailed(section string) string { return chunks("5\r\nhello\r\n0\r\n" + section) }

var syntaxCases = []syntaxCase{
	// 2.2: message parsing.
	{"2.2 CRLF", line("GET / HTTP/1.1"), ok},
	{"2.2 LF behind the request line", "GET / HTTP/1.1\nHost: a.example\r\n\r\n", 400},
	{"2.2 LF behind a field", "GET / HTTP/1.1\r\nHost: a.example\nA: b\r\n\r\n", 400},
	{"2.2 LF in place of the empty line", "GET / HTTP/1.1\r\nHost: a.example\r\n\n", 400},
	{"2.2 LF everywhere", "GET / HTTP/1.1\nHost: a.example\n\n", 400},
	{"2.2 CR in place of CRLF", "GET / HTTP/1.1\rHost: a.example\r\n\r\n", 400},
	{"2.2 CR CR LF behind the request line", "GET / HTTP/1.1\r\r\nHost: a.example\r\n\r\n", 400},
	{"2.2 CR CR LF behind a field", "GET / HTTP/1.1\r\nHost: a.example\r\r\n\r\n", 400},
	{"2.2 CR CR LF as the empty line", "GET / HTTP/1.1\r\nHost: a.example\r\n\r\r\n", 400},
	{"2.2 bare CR in the method", line("GE\rT / HTTP/1.1"), 400},
	{"2.2 bare CR in the target", line("GET /\ra HTTP/1.1"), 400},
	{"2.2 bare CR in the version", line("GET / HTTP/1\r.1"), 400},
	{"2.2 bare CR in a name", head("A\rB: c"), 400},
	{"2.2 bare CR in a value", head("A: b\rc"), 400},
	{"2.2 bare CR before a value", head("A:\rb"), 400},
	{"2.2 bare CR before a name", head("\rA: b"), 400},
	{"2.2 a field hidden behind a CR", head("A: b\rTransfer-Encoding: chunked"), 400},
	{"2.2 an empty line first", "\r\n" + line("GET / HTTP/1.1"), 400}, // as http.ReadRequest
	{"2.2 two empty lines first", "\r\n\r\n" + line("GET / HTTP/1.1"), 400},
	{"2.2 LF first", "\n" + line("GET / HTTP/1.1"), 400},
	{"2.2 a space first", " " + line("GET / HTTP/1.1"), 400},
	{"2.2 a blank line", " \r\n\r\n", 400},
	{"2.2 white space before the first field", "GET / HTTP/1.1\r\n Host: a.example\r\n\r\n", 400},
	{"2.2 a tab before the first field", "GET / HTTP/1.1\r\n\tHost: a.example\r\n\r\n", 400},
	{"2.2 a blank line before the fields", "GET / HTTP/1.1\r\n \r\nHost: a.example\r\n\r\n", 400},
	{"2.2 garbage", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400},
	{"2.2 high bytes", "\xff\xfe\xfd / HTTP/1.1\r\n\r\n", 400},
	{"2.2 NUL alone", "\x00\r\n\r\n", 400},
	{"2.2 nothing", "", incomplete},
	{"2.2 half a request line", "GET / HT", incomplete},
	{"2.2 no field yet", "GET / HTTP/1.1\r\n", incomplete},
	{"2.2 half a field", "GET / HTTP/1.1\r\nHos", incomplete},
	{"2.2 no empty line", "GET / HTTP/1.1\r\nHost: a.example\r\n", incomplete},
	{"2.2 half an empty line", "GET / HTTP/1.1\r\nHost: a.example\r\n\r", incomplete},

	// 2.3: version.
	{"2.3 HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", ok},
	{"2.3 HTTP/1.2 is HTTP/1", line("GET / HTTP/1.2"), ok},
	{"2.3 HTTP/1.9 is HTTP/1", line("GET / HTTP/1.9"), ok},
	{"2.3 HTTP/0.9", line("GET / HTTP/0.9"), 505},
	{"2.3 HTTP/2.0", line("GET / HTTP/2.0"), 505},
	{"2.3 HTTP/3.0", line("GET / HTTP/3.0"), 505},
	{"2.3 HTTP/9.9", line("GET / HTTP/9.9"), 505},
	{"2.3 small letters", line("GET / http/1.1"), 400},
	{"2.3 mixed letters", line("GET / HTtP/1.1"), 400},
	{"2.3 another name", line("GET / HTPP/1.1"), 400},
	{"2.3 no minor version", line("GET / HTTP/1"), 400},
	{"2.3 an empty minor version", line("GET / HTTP/1."), 400},
	{"2.3 zero in front", line("GET / HTTP/01.1"), 400},
	{"2.3 zero in the minor version", line("GET / HTTP/1.01"), 400},
	{"2.3 a comma", line("GET / HTTP/1,1"), 400},
	{"2.3 a space within", line("GET / HTTP/ 1.1"), 400},
	{"2.3 a letter", line("GET / HTTP/1.x"), 400},
	{"2.3 three numbers", line("GET / HTTP/1.1.1"), 400},
	{"2.3 a minus", line("GET / HTTP/-1.1"), 400},
	{"2.3 no slash", line("GET / HTTP1.1"), 400},
	{"2.3 HTTPS", line("GET / HTTPS/1.1"), 400},
	{"2.3 no version", "GET /\r\n\r\n", 400},
	{"2.3 an empty version", line("GET / "), 400},
	{"2.3 the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\n", ok},
	{"2.3 the preface with a field", line("PRI * HTTP/2.0"), 505},
	{"2.3 the preface with a path", "PRI / HTTP/2.0\r\n\r\n", 505},
	{"2.3 the preface in HTTP/1.1", line("PRI * HTTP/1.1"), 400},

	// 3: request line.
	{"3 two spaces behind the method", line("GET  / HTTP/1.1"), 400},
	{"3 two spaces behind the target", line("GET /  HTTP/1.1"), 400},
	{"3 a space at the end", line("GET / HTTP/1.1 "), 400},
	{"3 a tab behind the method", line("GET\t/ HTTP/1.1"), 400},
	{"3 a tab behind the target", line("GET /\tHTTP/1.1"), 400},
	{"3 a form feed", line("GET\f/ HTTP/1.1"), 400},
	{"3 no target", line("GET HTTP/1.1"), 400},
	{"3 an empty target", line("GET  HTTP/1.1"), 400},
	{"3 the method alone", line("GET"), 400},
	{"3 no method", line(" / HTTP/1.1"), 400},
	{"3 a line of 8000 bytes", line("GET /" + strings.Repeat("a", 7986) + " HTTP/1.1"), ok},
	{"3 a target of 100 KB", line("GET /" + strings.Repeat("a", 100_000) + " HTTP/1.1"), 414},
	{"3 a query of 100 KB", line("GET /?" + strings.Repeat("a", 100_000) + " HTTP/1.1"), 414},
	{"3 a method of 100 KB", line(strings.Repeat("A", 100_000) + " / HTTP/1.1"), 501},
	{"3 garbage of 100 KB", strings.Repeat("\xff", 100_000), 400},

	// 3.1: method.
	{"3.1 a method in small letters is another one", line("get / HTTP/1.1"), ok},
	{"3.1 an unknown method", line("PROPFIND / HTTP/1.1"), ok},
	{"3.1 a method of all characters", line("!#$%&'*+-.^_`|~09azAZ / HTTP/1.1"), ok},
	{"3.1 a bracket", line("GE[T / HTTP/1.1"), 400},
	{"3.1 a colon", line("GET: / HTTP/1.1"), 400},
	{"3.1 a quote", line("\"GET\" / HTTP/1.1"), 400},
	{"3.1 a slash", line("G/ET / HTTP/1.1"), 400},
	{"3.1 NUL", line("GET\x00 / HTTP/1.1"), 400},
	{"3.1 DEL", line("GE\x7fT / HTTP/1.1"), 400},
	{"3.1 UTF-8", line("G\u00cbT / HTTP/1.1"), 400},

	// 3.2: target.
	{"3.2.1 a path", line("GET /a/b;c=d/e.f HTTP/1.1"), ok},
	{"3.2.1 a query", line("GET /a?b=c&d=e?f HTTP/1.1"), ok},
	{"3.2.1 an empty query", line("GET /a? HTTP/1.1"), ok},
	{"3.2.1 two question marks", line("GET /a?? HTTP/1.1"), ok},
	{"3.2.1 two slashes", line("GET //a/b HTTP/1.1"), ok},
	{"3.2.1 dots", line("GET /../a HTTP/1.1"), ok},
	{"3.2.1 an escape", line("GET /a%20b HTTP/1.1"), ok},
	{"3.2.1 an escaped slash", line("GET /a%2fb HTTP/1.1"), ok},
	{"3.2.1 an escaped NUL", line("GET /a%00 HTTP/1.1"), ok},
	{"3.2.1 escaped CR and LF", line("GET /a%0d%0aX: b HTTP/1.1"), 400}, // the space
	{"3.2.1 all that is not escaped", line("GET /-._~!$&'()*+,;=:@ HTTP/1.1"), ok},
	{"3.2.1 what browsers send", line("GET /a|b^c?d={e}`[f]\\ HTTP/1.1"), ok},
	{"3986 2.1 half an escape", line("GET /a%2 HTTP/1.1"), 400},
	{"3986 2.1 a percent sign", line("GET /100% HTTP/1.1"), 400},
	{"3986 2.1 an escape that is not hexadecimal", line("GET /%zz HTTP/1.1"), 400},
	{"3986 2.1 an escape with one such digit", line("GET /%1g HTTP/1.1"), 400},
	{"3986 2.1 a percent sign in the query", line("GET /?100% HTTP/1.1"), ok}, // as net/http
	{"3.2 a fragment", line("GET /a#b HTTP/1.1"), 400},
	{"3.2 a fragment behind a query", line("GET /a?b#c HTTP/1.1"), 400},
	{"3.2 a space", line("GET /a b HTTP/1.1"), 400},
	{"3.2 a space in the query", line("GET /?a b HTTP/1.1"), 400},
	{"3.2 a no-break space", line("GET /a\xa0b HTTP/1.1"), 400},
	{"3.2 NUL", line("GET /a\x00b HTTP/1.1"), 400},
	{"3.2 NUL in the query", line("GET /?a\x00b HTTP/1.1"), 400},
	{"3.2 DEL", line("GET /a\x7f HTTP/1.1"), 400},
	{"3.2 a control character", line("GET /a\x01b HTTP/1.1"), 400},
	{"3986 2 UTF-8", line("GET /\u00e9 HTTP/1.1"), 400},
	{"3986 2 UTF-8 in the query", line("GET /?\u00e9 HTTP/1.1"), 400},
	{"3986 2 an overlong slash", line("GET /\xc0\xaf HTTP/1.1"), 400},
	{"3.2 a relative path", line("GET a/b HTTP/1.1"), 400},
	{"3.2 dots without a slash", line("GET ../a HTTP/1.1"), 400},
	{"3.2 a query alone", line("GET ?a HTTP/1.1"), 400},
	{"3.2 a backslash first", line("GET \\a HTTP/1.1"), 400},
	{"3.2.2 absolute form", line("GET http://a.example/b?c HTTP/1.1"), ok},
	{"3.2.2 without a path", line("GET http://a.example HTTP/1.1"), ok},
	{"3.2.2 a query without a path", line("GET http://a.example?b HTTP/1.1"), ok},
	{"3.2.2 with a port", line("GET http://a.example:8080/ HTTP/1.1"), ok},
	{"3.2.2 capitals in the scheme", line("GET HTTP://a.example/ HTTP/1.1"), ok},
	{"3.2.2 another scheme", line("GET ftp://a.example/ HTTP/1.1"), ok},
	{"3.2.2 another host than Host's", line("GET http://b.example/ HTTP/1.1"), ok},
	{"3.2.2 an IPv6 address", line("GET http://[::1]:80/ HTTP/1.1"), ok},
	{"9110 4.2.1 no host", line("GET http:///a HTTP/1.1"), 400},
	{"9110 4.2.1 a port without a host", line("GET http://:80/ HTTP/1.1"), 400},
	{"9110 4.2.4 a user", line("GET http://user@a.example/ HTTP/1.1"), 400},
	{"9110 4.2.4 a user and a password", line("GET http://user:password@a.example/ HTTP/1.1"), 400},
	{"3.2.2 no slashes", line("GET http:a.example HTTP/1.1"), 400},
	{"3.2.2 one slash", line("GET http:/a.example HTTP/1.1"), 400},
	{"3.2.2 a scheme alone", line("GET http: HTTP/1.1"), 400},
	{"3.2.2 no scheme", line("GET ://a.example/ HTTP/1.1"), 400},
	{"3.2.2 a digit first in the scheme", line("GET 1http://a.example/ HTTP/1.1"), 400},
	{"3.2.2 an underscore in the scheme", line("GET ht_tp://a.example/ HTTP/1.1"), 400},
	{"3.2.2 mailto", line("GET mailto:a@a.example HTTP/1.1"), 400},
	{"3.2.2 an invalid host", line("GET http://a{b/ HTTP/1.1"), 400},
	{"3.2.2 an invalid port", line("GET http://a.example:x/ HTTP/1.1"), 400},
	{"3.2.2 two ports", line("GET http://a.example:1:2/ HTTP/1.1"), 400},
	{"3.2.2 an escape in the host", line("GET http://a%41/ HTTP/1.1"), 400},
	{"3.2.2 an invalid address", line("GET http://[::g]/ HTTP/1.1"), 400},
	{"3.2.2 IPv4 in brackets", line("GET http://[127.0.0.1]/ HTTP/1.1"), 400},
	{"3.2.2 an open bracket", line("GET http://[::1/ HTTP/1.1"), 400},
	{"3.2.2 an invalid escape in the path", line("GET http://a.example/%zz HTTP/1.1"), 400},
	{"3.2.3 authority form", line("CONNECT a.example:443 HTTP/1.1"), ok},
	{"3.2.3 an IPv6 address", line("CONNECT [::1]:443 HTTP/1.1"), ok},
	{"3.2.3 no Host", "CONNECT a.example:443 HTTP/1.1\r\n\r\n", ok}, // as net/http
	{"9110 9.3.6 a path, of net/rpc", line("CONNECT /_goRPC_ HTTP/1.1"), ok},
	{"9110 9.3.6 no port", line("CONNECT a.example HTTP/1.1"), 400},
	{"9110 9.3.6 an empty port", line("CONNECT a.example: HTTP/1.1"), 400},
	{"9110 9.3.6 an invalid port", line("CONNECT a.example:https HTTP/1.1"), 400},
	{"9110 9.3.6 port 65536", line("CONNECT a.example:65536 HTTP/1.1"), 400},
	{"9110 9.3.6 an address without a port", line("CONNECT [::1] HTTP/1.1"), 400},
	{"3.2.3 no host", line("CONNECT :443 HTTP/1.1"), 400},
	{"3.2.3 a user", line("CONNECT user@a.example:443 HTTP/1.1"), 400},
	{"3.2.3 a path behind the port", line("CONNECT a.example:443/b HTTP/1.1"), 400},
	{"3.2.3 absolute form", line("CONNECT http://a.example:443 HTTP/1.1"), 400},
	{"3.2.3 an asterisk", line("CONNECT * HTTP/1.1"), 400},
	{"3.2.3 GET in authority form", line("GET a.example:80 HTTP/1.1"), 400},
	{"3.2.4 asterisk form", line("OPTIONS * HTTP/1.1"), ok},
	{"3.2.4 GET *", line("GET * HTTP/1.1"), 400},
	{"3.2.4 NOTIFY *", line("NOTIFY * HTTP/1.1"), 400},
	{"3.2.4 two asterisks", line("OPTIONS ** HTTP/1.1"), 400},
	{"3.2.4 an asterisk and a path", line("OPTIONS */a HTTP/1.1"), 400},

	// 3.2, 9110 7.2: Host.
	{"3.2 no Host", "GET / HTTP/1.1\r\n\r\n", 400},
	{"3.2 no Host, but absolute form", "GET http://a.example/ HTTP/1.1\r\n\r\n", 400},
	{"3.2 an empty Host", host(""), ok},
	{"3.2 two Hosts", head("Host: b.example"), 400},
	{"3.2 the same Host twice", head("Host: a.example"), 400},
	{"3.2 two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400},
	{"3.2 two Hosts beside absolute form", "GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
	{"9110 7.2 a port", host(" a.example:80"), ok},
	{"9110 7.2 an empty port", host(" a.example:"), ok},
	{"9110 7.2 an address", host(" 127.0.0.1"), ok},
	{"9110 7.2 an IPv6 address", host(" [::1]"), ok},
	{"9110 7.2 an IPv6 address and a port", host(" [::1]:80"), ok},
	{"9110 7.2 an IPv6 address with a zone", host(" [fe80::1%25eth0]:80"), ok},
	{"9110 7.2 an IPv6 address without brackets", host(" ::1"), ok}, // as net/http
	{"9110 7.2 an underscore", host(" a_b.example"), ok},
	{"9110 7.2 white space around it", host(" \t a.example \t"), ok},
	{"9110 7.2 a list", host(" a.example, b.example"), 400},
	{"9110 7.2 a user", host(" user@a.example"), 400},
	{"9110 7.2 a path", host(" a.example/b"), 400},
	{"9110 7.2 a query", host(" a.example?b"), 400},
	{"9110 7.2 a fragment", host(" a.example#b"), 400},
	{"9110 7.2 a scheme", host(" http://a.example"), 400},
	{"9110 7.2 a space", host(" a b"), 400},
	{"9110 7.2 a tab", host(" a\tb"), 400},
	{"9110 7.2 a brace", host(" {"), 400},
	{"9110 7.2 a control character", host(" a\x06"), 400},
	{"9110 7.2 NUL", host(" a\x00b"), 400},
	{"9110 7.2 a high byte", host(" \xff"), 400},
	{"9110 7.2 a backslash", host(" a\\b"), 400},
	{"9110 7.2 an invalid port", host(" a.example:x"), 400},
	{"9110 7.2 a negative port", host(" a.example:-1"), 400},
	{"9110 7.2 port 65536", host(" a.example:65536"), 400},
	{"9110 7.2 two ports", host(" a.example:80:90"), 400},
	{"9110 7.2 an open bracket", host(" [::1"), 400},
	{"9110 7.2 a bracket within", host(" a[::1]"), 400},
	{"9110 7.2 no address in brackets", host(" [a.example]"), 400},
	{"9110 7.2 text behind the brackets", host(" [::1]a"), 400},
	{"3986 3.2.2 half an escape", host(" a%4"), 400},

	// 5: fields.
	{"5 no space behind the colon", head("A:b"), ok},
	{"5 spaces and tabs around a value", head("A: \t b \t "), ok},
	{"5 a tab within a value", head("A: b\tc"), ok},
	{"5 an empty value", head("A:"), ok},
	{"5 a blank value", head("A: \t"), ok},
	{"5 colons in a value", head("A: b:c: d"), ok},
	{"5 the same field twice", head("A: b", "A: c"), ok},
	{"5 a name of all characters", head("!#$%&'*+-.^_`|~09azAZ: b"), ok},
	{"9110 5.5 high bytes in a value", head("A: \xff\u00e9"), ok},
	{"9110 5.5 NUL", head("A: b\x00c"), 400},
	{"9110 5.5 a control character", head("A: b\x01"), 400},
	{"9110 5.5 a vertical tab", head("A: b\vc"), 400},
	{"9110 5.5 a form feed", head("A: b\fc"), 400},
	{"9110 5.5 a backspace", head("A: \b"), 400},
	{"9110 5.5 an escape character", head("A: \x1b[31m"), 400},
	{"9110 5.5 DEL", head("A: b\x7f"), 400},
	{"9110 5.6.2 no name", head(": b"), 400},
	{"9110 5.6.2 a bracket", head("A[B: c"), 400},
	{"9110 5.6.2 a space within", head("A B: c"), 400},
	{"9110 5.6.2 a slash", head("A/B: c"), 400},
	{"9110 5.6.2 quotes", head("\"A\": b"), 400},
	{"9110 5.6.2 parentheses", head("A(B): c"), 400},
	{"9110 5.6.2 NUL", head("A\x00B: c"), 400},
	{"9110 5.6.2 a high byte", head("A\xffB: c"), 400},
	{"9110 5.6.2 UTF-8", head("\u00cb: c"), 400},
	{"9110 5.6.2 an at sign", head("A@B: c"), 400},
	{"5 no colon", head("A"), 400},
	{"5 no colon, but a space", head("A b"), 400},
	{"5.1 a space before the colon", head("A : b"), 400},
	{"5.1 a tab before the colon", head("A\t: b"), 400},
	{"5.1 a space before Content-Length's colon", head("Content-Length : 5"), 400},
	{"5.1 a space before Transfer-Encoding's colon", head("Transfer-Encoding : chunked"), 400},
	{"5.1 a tab in Content-Length's name", head("Content\tLength: 5"), 400},
	{"5.2 a continued line", head("A: b", " c"), 400},
	{"5.2 a continued line with a tab", head("A: b", "\tc"), 400},
	{"5.2 an empty continued line", head("A: b", " "), 400},
	{"5.2 a field in a continued line", head("A: b", " Transfer-Encoding: chunked"), 400},
	{"5.2 a continued Host", "GET / HTTP/1.1\r\nHost:\r\n a.example\r\n\r\n", 400},
	{"5.2 a continued Transfer-Encoding", encoded("\r\n chunked"), 400},
	{"5.2 a continued Content-Length", head("Content-Length:", " 0"), 400},
	{"5.4 a value of 60,000 bytes", head("A: " + strings.Repeat("b", 60_000)), ok},
	{"5.4 a value of 100 KB", head("A: " + strings.Repeat("b", 100_000)), 431},
	{"5.4 a name of 100 KB", head(strings.Repeat("a", 100_000) + ": b"), 431},
	{"5.4 a line of 100 KB without a colon", head(strings.Repeat("a", 100_000)), 431},
	{"5.4 200 fields", head(strings.Repeat("A: b\r\n", 199) + "C: d"), ok},
	{"5.4 10,000 fields", head(strings.Repeat("A: b\r\n", 9_999) + "C: d"), 431},
	{"5.4 300 fields of 100 bytes", head(strings.Repeat("A: "+strings.Repeat("b", 95)+"\r\n", 299) + "C: d"), 431},

	// 6.1: Transfer-Encoding.
	{"6.1 chunked", encoded(" chunked"), ok},
	{"6.1 in any case", encoded(" ChunKed"), ok},
	{"6.1 a name in capitals", head("TRANSFER-ENCODING: gzip"), 501},
	{"6.1 white space around it", encoded(" \t chunked \t"), ok},
	{"6.1 a tab before it", encoded("\tchunked"), ok},
	{"6.1 gzip", encoded(" gzip"), 501},
	{"6.1 identity", encoded(" identity"), 501},
	{"6.1 gzip, chunked", encoded(" gzip, chunked"), 501},
	{"6.1 chunked, gzip", encoded(" chunked, gzip"), 501},
	{"6.1 chunked twice in a list", encoded(" chunked, chunked"), 501},
	{"6.1 two fields", encoded(" chunked", "Transfer-Encoding: chunked"), 501},
	{"6.1 two fields, one unknown", encoded(" chunked", "Transfer-Encoding: x"), 501},
	{"6.1 an empty value", encoded(""), 501},
	{"6.1 a comma first", encoded(" , chunked"), 501},
	{"6.1 a comma last", encoded(" chunked,"), 501},
	{"6.1 xchunked", encoded(" xchunked"), 501},
	{"6.1 chunkedx", encoded(" chunkedx"), 501},
	{"6.1 with a parameter", encoded(" chunked;a=b"), 501},
	{"6.1 in quotes", encoded(" \"chunked\""), 501},
	{"6.1 a vertical tab before it", encoded(" \vchunked"), 400},
	{"6.1 a form feed before it", encoded(" \fchunked"), 400},
	{"6.1 NUL behind it", encoded(" chunked\x00"), 400},
	{"6.1 a CR before it", encoded(" \rchunked"), 400},
	{"6.1 an underscore in the name is another field", head("Transfer_Encoding: chunked"), ok},
	{"6.1 in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	{"6.1 in HTTP/1.0, beside a length", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400},
	{"6.1 in HTTP/1.2", "POST / HTTP/1.2\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ok},

	// 6.2, 9110 8.6: Content-Length.
	{"6.2 a length", sized(" 5"), ok},
	{"6.2 zero", head("Content-Length: 0"), ok},
	{"6.2 no length is no body", line("POST / HTTP/1.1"), ok},
	{"6.2 white space around it", sized(" \t 5 \t "), ok},
	{"6.2 zeros in front", sized(" 0005"), ok},
	{"6.2 00", head("Content-Length: 00"), ok},
	{"6.2 GET with a body", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", ok},
	{"6.2 more than there is", sized(" 6"), incomplete},
	{"6.2 much more than there is", sized(" 999999999"), incomplete},
	{"6.2 the greatest number", sized(" 9223372036854775807"), incomplete},
	{"6.2 an underscore in the name is another field", head("Content_Length: x"), ok},
	{"9110 8.6 an empty value", sized(""), 400},
	{"9110 8.6 a letter", sized(" abc"), 400},
	{"9110 8.6 a letter behind a digit", sized(" 5x"), 400},
	{"9110 8.6 a plus", sized(" +5"), 400},
	{"9110 8.6 a minus", sized(" -5"), 400},
	{"9110 8.6 minus zero", sized(" -0"), 400},
	{"9110 8.6 hexadecimal", sized(" 0x5"), 400},
	{"9110 8.6 octal", sized(" 0o5"), 400},
	{"9110 8.6 an underscore", sized(" 1_0"), 400},
	{"9110 8.6 a space within", sized(" 1 0"), 400},
	{"9110 8.6 a tab within", sized(" 1\t0"), 400},
	{"9110 8.6 a fraction", sized(" 5.0"), 400},
	{"9110 8.6 an exponent", sized(" 5e0"), 400},
	{"9110 8.6 quotes", sized(" \"5\""), 400},
	{"9110 8.6 a list", sized(" 5, 5"), 400},
	{"9110 8.6 a list of three", sized(" 5,5,5"), 400},
	{"9110 8.6 a list of two lengths", sized(" 5, 6"), 400},
	{"9110 8.6 a comma behind it", sized(" 5,"), 400},
	{"9110 8.6 2^63", sized(" 9223372036854775808"), 400},
	{"9110 8.6 2^64+5", sized(" 18446744073709551621"), 400},
	{"9110 8.6 100 digits", sized(" " + strings.Repeat("9", 100)), 400},
	{"9110 8.6 a fullwidth digit", sized(" \uff15"), 400},
	{"9110 8.6 NUL behind it", sized(" 5\x00"), 400},

	// 6.3: message body length.
	{"6.3 both", encoded(" chunked", "Content-Length: 5"), 400},
	{"6.3 both, the length first", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	{"6.3 both, the length zero", encoded(" chunked", "Content-Length: 0"), 400},
	{"6.3 both, the length invalid", encoded(" chunked", "Content-Length: x"), 400},
	{"6.3 both, the length with a plus", encoded(" chunked", "Content-Length: +5"), 400},
	{"6.3 both, an unknown encoding", encoded(" x", "Content-Length: 5"), 501},
	{"6.3 both, two encodings", encoded(" chunked", "Transfer-Encoding: x", "Content-Length: 5"), 501},
	{"6.3 two lengths", head("Content-Length: 5", "Content-Length: 6"), 400},
	{"6.3 the same length twice", sized(" 5\r\nContent-Length: 5"), 400},
	{"6.3 two lengths, one zero", head("Content-Length: 0", "Content-Length: 6"), 400},
	{"6.3 two lengths, one invalid", head("Content-Length: 5", "Content-Length: x"), 400},
	{"6.3 two lengths in two spellings", sized(" 5\r\ncontent-length: 05"), 400},
	{"6.3 HEAD with a body", "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", ok},
	{"6.3 OPTIONS with a body", "OPTIONS / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", ok},
	{"9110 9.3.8 TRACE with a body", "TRACE / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 400},
	{"9110 9.3.8 TRACE with chunks", "TRACE / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	{"9110 9.3.8 TRACE", line("TRACE / HTTP/1.1"), ok},
	{"9110 10.1.1 100-continue", sized(" 5\r\nExpect: 100-continue"), ok},

	// 7.1: chunked.
	{"7.1 one chunk", chunks("5\r\nhello\r\n0\r\n\r\n"), ok},
	{"7.1 two chunks", chunks("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"), ok},
	{"7.1 no chunk", chunks("0\r\n\r\n"), ok},
	{"7.1 small hexadecimal digits", chunks("a\r\n0123456789\r\n0\r\n\r\n"), ok},
	{"7.1 capital hexadecimal digits", chunks("A\r\n0123456789\r\n0\r\n\r\n"), ok},
	{"7.1 zeros in front", chunks("005\r\nhello\r\n000\r\n\r\n"), ok},
	{"7.1 sixteen digits", chunks("0000000000000005\r\nhello\r\n0\r\n\r\n"), ok},
	{"7.1 no last chunk", chunks("5\r\nhello\r\n"), incomplete},
	{"7.1 no empty line", chunks("5\r\nhello\r\n0\r\n"), incomplete},
	{"7.1 half a chunk", chunks("5\r\nhel"), incomplete},
	{"7.1 seventeen digits", chunks("00000000000000005\r\nhello\r\n0\r\n\r\n"), 400},
	{"7.1 2^63", first("8000000000000000\r\n"), 400},
	{"7.1 2^64-1", first("FFFFFFFFFFFFFFFF\r\n"), 400},
	{"7.1 2^64+5", first("10000000000000005\r\n"), 400},
	{"7.1 2^63-1", first("7FFFFFFFFFFFFFFF\r\n"), incomplete},
	{"7.1 no size", first("\r\n"), 400},
	{"7.1 a letter", first("g\r\n"), 400},
	{"7.1 a letter behind a digit", first("5x\r\n"), 400},
	{"7.1 a prefix", first("0x5\r\n"), 400},
	{"7.1 a suffix", first("5h\r\n"), 400},
	{"7.1 a plus", first("+5\r\n"), 400},
	{"7.1 a minus", first("-5\r\n"), 400},
	{"7.1 a plus before the last size", chunks("5\r\nhello\r\n+0\r\n\r\n"), 400},
	{"7.1 an underscore", first("0_5\r\n"), 400},
	{"7.1 a space before it", first(" 5\r\n"), 400},
	{"7.1 a space behind it", first("5 \r\n"), 400},
	{"7.1 a tab behind it", first("5\t\r\n"), 400},
	{"7.1 a space within", first("0 5\r\n"), 400},
	{"7.1 a comma", first("5,\r\n"), 400},
	{"7.1 NUL", first("5\x00\r\n"), 400},
	{"7.1 a high byte", first("\xff\r\n"), 400},
	{"7.1 LF behind the size", first("5\n"), 400},
	{"7.1 CR behind the size", first("5\r"), 400},
	{"7.1 CR CR LF behind the size", first("5\r\r\n"), 400},
	{"7.1 LF behind the data", chunks("5\r\nhello\n0\r\n\r\n"), 400},
	{"7.1 CR behind the data", chunks("5\r\nhello\r0\r\n\r\n"), 400},
	{"7.1 nothing behind the data", chunks("5\r\nhello0\r\n\r\n"), 400},
	{"7.1 more data than announced", chunks("5\r\nhello!!\r\n0\r\n\r\n"), 400},
	{"7.1 less data than announced", chunks("6\r\nhello\r\n0\r\n\r\n"), 400},
	{"7.1 LF behind the last size", chunks("0\n\r\n"), 400},
	{"7.1 many small chunks", chunks(strings.Repeat("1\r\nx\r\n", 50_000) + "0\r\n\r\n"), ok},

	// 7.1.1: chunk extensions.
	{"7.1.1 a name", first("5;a\r\n"), ok},
	{"7.1.1 a value", first("5;a=b\r\n"), ok},
	{"7.1.1 a quoted value", first("5;a=\"b;c\"\r\n"), ok},
	{"7.1.1 a quoted pair", first("5;a=\"\\\"\"\r\n"), ok},
	{"7.1.1 two extensions", first("5;a=b;c\r\n"), ok},
	{"7.1.1 white space", first("5; a = b ;\tc\r\n"), ok},
	{"7.1.1 on the last chunk", chunks("0;a=b\r\n\r\n"), ok},
	{"7.1.1 a signature", first("5;chunk-signature=" + strings.Repeat("0", 64) + "\r\n"), ok},
	{"7.1.1 white space before the semicolon", first("5 ;a\r\n"), 400}, // as net/http
	{"7.1.1 no name", first("5;\r\n"), 400},
	{"7.1.1 a blank name", first("5; \r\n"), 400},
	{"7.1.1 two semicolons", first("5;;a\r\n"), 400},
	{"7.1.1 a semicolon behind it", first("5;a;\r\n"), 400},
	{"7.1.1 no value", first("5;a=\r\n"), 400},
	{"7.1.1 a value without a name", first("5;=b\r\n"), 400},
	{"7.1.1 two values", first("5;a=b=c\r\n"), 400},
	{"7.1.1 two names", first("5;a b\r\n"), 400},
	{"7.1.1 a bracket in the name", first("5;a[b\r\n"), 400},
	{"7.1.1 a slash in the value", first("5;a=b/c\r\n"), 400},
	{"7.1.1 an open quote", first("5;a=\"b\r\n"), 400},
	{"7.1.1 text behind the quotes", first("5;a=\"b\"c\r\n"), 400},
	{"7.1.1 a space at the end", first("5;a \r\n"), 400},
	{"7.1.1 NUL", first("5;a\x00\r\n"), 400},
	{"7.1.1 NUL in quotes", first("5;a=\"\x00\"\r\n"), 400},
	{"7.1.1 a high byte", first("5;\xff\r\n"), 400},
	{"7.1.1 LF", first("5;a\n"), 400},
	{"7.1.1 LF behind the semicolon", first("5;\n"), 400},
	{"7.1.1 LF in quotes", first("5;a=\"b\nc\"\r\n"), 400},
	{"7.1.1 CR", first("5;a\rb\r\n"), 400},
	{"7.1.1 CR in quotes", first("5;a=\"b\rc\"\r\n"), 400},
	{"7.1.1 64 KiB", first("5;" + strings.Repeat("a", 64<<10) + "\r\n"), 400},
	{"7.1.1 a long one on each of many", chunks(strings.Repeat("1;"+strings.Repeat("a", 500)+"\r\nx\r\n", 100) + "0\r\n\r\n"), 400},

	// 7.1.2: trailer section.
	{"7.1.2 a field", trailed("Digest: x\r\n\r\n"), ok},
	{"7.1.2 two fields", trailed("A: b\r\nC: d\r\n\r\n"), ok},
	{"7.1.2 half a field", trailed("A: b"), incomplete},
	{"7.1.2 an announced field", encoded(" chunked", "Trailer: Digest"), ok},
	{"7.1.2 Authorization", trailed("Authorization: x\r\n\r\n"), ok}, // the caller ignores it
	{"9110 6.5.1 Content-Length", trailed("Content-Length: 50\r\n\r\n"), 400},
	{"9110 6.5.1 Transfer-Encoding", trailed("Transfer-Encoding: chunked\r\n\r\n"), 400},
	{"9110 6.5.1 Host", trailed("Host: b.example\r\n\r\n"), 400},
	{"9110 6.5.1 Trailer", trailed("Trailer: A\r\n\r\n"), 400},
	{"9110 6.5.1 announced Content-Length", encoded(" chunked", "Trailer: Content-Length"), 400},
	{"9110 6.5.1 announced Transfer-Encoding", encoded(" chunked", "Trailer: A, transfer-encoding"), 400},
	{"9110 6.5.1 announced Trailer", encoded(" chunked", "Trailer: Trailer"), 400},
	{"7.1.2 no colon", trailed("A\r\n\r\n"), 400},
	{"7.1.2 a space before the colon", trailed("A : b\r\n\r\n"), 400},
	{"7.1.2 no name", trailed(": b\r\n\r\n"), 400},
	{"7.1.2 a continued line", trailed("A: b\r\n c\r\n\r\n"), 400},
	{"7.1.2 a blank first", trailed(" A: b\r\n\r\n"), 400},
	{"7.1.2 a control character", trailed("A: \x01\r\n\r\n"), 400},
	{"7.1.2 a bare CR", trailed("A: b\rc\r\n\r\n"), 400},
	{"7.1.2 LF behind a field", trailed("A: b\n\r\n"), 400},
	{"7.1.2 LF in place of the empty line", trailed("\n"), 400},
	{"7.1.2 100 KB", trailed("A: " + strings.Repeat("b", 100_000) + "\r\n\r\n"), 431},
	{"7.1.2 1,000 fields", trailed(strings.Repeat("A:b\r\n", 1000) + "\r\n"), 431},
}

// outcome reads one request with its body, as a server does that takes all bytes at once.
func outcome(in []byte, rules Rules) (status int, err error) {
	var r Request
	n, err := r.Parse(in, rules)
	if n == 0 {
		return statusOf(err), err
	}
	body := r.Body()
	for in = in[n:]; !body.Done(); in = in[n:] {
		_, n, err = body.Next(in)
		if err != nil || n == 0 {
			return statusOf(err), err
		}
	}
	return ok, nil
}

func statusOf(err error) int {
	if err == nil {
		return incomplete
	}
	return err.(*Error).Status
}

// A netServer is a net/http server that reads each request from memory, and answers 200, or
// 400 if the body is invalid.
type netServer struct {
	conns chan net.Conn
}

func (s *netServer) Accept() (net.Conn, error) {
	c, more := <-s.conns
	if !more {
		return nil, io.EOF
	}
	return c, nil
}
func (s *netServer) Close() error   { return nil }
func (s *netServer) Addr() net.Addr { return &net.TCPAddr{} }

// A memoryConn reads what it holds, and then the end of the stream.
type memoryConn struct {
	net.Conn
	in     *bytes.Reader
	out    bytes.Buffer
	closed chan bool
}

func (c *memoryConn) Read(p []byte) (int, error)         { return c.in.Read(p) }
func (c *memoryConn) Write(p []byte) (int, error)        { return c.out.Write(p) }
func (c *memoryConn) RemoteAddr() net.Addr               { return &net.TCPAddr{} }
func (c *memoryConn) LocalAddr() net.Addr                { return &net.TCPAddr{} }
func (c *memoryConn) SetDeadline(t time.Time) error      { return nil }
func (c *memoryConn) SetReadDeadline(t time.Time) error  { return nil }
func (c *memoryConn) SetWriteDeadline(t time.Time) error { return nil }
func (c *memoryConn) Close() error {
	select {
	case c.closed <- true:
	default:
	}
	return nil
}

func newNetServer(t *testing.T) *netServer {
	s := &netServer{conns: make(chan net.Conn)}
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close") // what follows is not another request
			if _, err := io.ReadAll(r.Body); errors.Is(err, io.ErrUnexpectedEOF) {
				w.WriteHeader(http.StatusTeapot) // incomplete
			} else if err != nil {
				w.WriteHeader(http.StatusBadRequest)
			}
		})}
	go server.Serve(s)
	t.Cleanup(func() { close(s.conns) })
	return s
}

// ask returns the status of net/http's answer; incomplete if there is none.
func (s *netServer) ask(in []byte) int {
	c := &memoryConn{in: bytes.NewReader(in), closed: make(chan bool, 1)}
	s.conns <- c
	<-c.closed
	out := bufio.NewReader(&c.out)
	answer, err := http.ReadResponse(out, nil)
	if err == nil && answer.StatusCode == http.StatusContinue {
		answer, err = http.ReadResponse(out, nil)
	}
	if err != nil || answer.StatusCode == http.StatusTeapot {
		return incomplete
	}
	return answer.StatusCode
}

// TestSyntax reads each case in one piece, and byte by byte, and compares with net/http: what
// a net/http server refuses is refused, and what is accepted is the request that
// http.ReadRequest reads.
func TestSyntax(t *testing.T) {
	if len(syntaxCases) < 200 {
		t.Errorf("only %d cases", len(syntaxCases))
	}
	server := newNetServer(t)
	all := make([]int, len(syntaxCases)) // net/http's; it sleeps before it closes
	var wg sync.WaitGroup
	for i, c := range syntaxCases {
		wg.Add(1)
		go func() {
			defer wg.Done()
			all[i] = server.ask([]byte(c.in))
		}()
	}
	wg.Wait()
	seen := make(map[string]bool)
	same, stricter := 0, 0
	for i, c := range syntaxCases {
		if seen[c.clause] {
			t.Errorf("%s: twice", c.clause)
		}
		seen[c.clause] = true
		status, err := outcome([]byte(c.in), Rules{})
		if status != c.want {
			t.Errorf("%s: %.80q: %d, %v, want %d", c.clause, c.in, status, err, c.want)
		}
		switch theirs := all[i]; {
		case status == ok && theirs != ok:
			t.Errorf("%s: %.80q: laxer than net/http's %d", c.clause, c.in, theirs)
		case status == theirs:
			same++
		case theirs == ok:
			stricter++
		}
		if status == ok {
			compareRequest(t, []byte(c.in), Rules{})
		}
		if len(c.in) > 2000 {
			continue
		}
		whole, pieces := streamLog([]byte(c.in), nil, Rules{}), streamLog([]byte(c.in), []byte{0}, Rules{})
		if !slices.Equal(whole, pieces) {
			t.Errorf("%s: in one piece: %q\nbyte by byte: %q", c.clause, whole, pieces)
		}
	}
	t.Logf("%d cases: %d with net/http's status, %d that net/http accepts", len(syntaxCases), same, stricter)
}

// TestBareLF reads what the rule allows, and nothing more.
func TestBareLF(t *testing.T) {
	rules := Rules{BareLF: true}
	for in, want := range map[string]int{
		"CONNECT /_goRPC_ HTTP/1.0\n\n":                            ok, // net/rpc's client
		"GET / HTTP/1.1\nHost: a\n\n":                              ok,
		"GET / HTTP/1.1\r\nHost: a\nA: b\r\n\n":                    ok,
		"GET / HTTP/1.1\nHost: a\n\r\n":                            ok,
		"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n":                      400,
		"GET / HTTP/1.1\nHost: a\r\r\n\n":                          400,
		"GET / HTTP/1.1\nHost: a\n b\n\n":                          400,
		"GET / HTTP/1.1\nHost: a\nA: b\rc\n\n":                     400,
		"\nGET / HTTP/1.1\nHost: a\n\n":                            400,
		strings.ReplaceAll(chunks("0\r\n\r\n"), "\r\n", "\n"):      400,
		strings.ReplaceAll(head("A: b"), "\r\n", "\n") + "0\n\n":   ok,
		chunks("0\r\nA: b\n\r\n"):                                  400,
		"GET /" + strings.Repeat("a", DefaultLine) + " HTTP/1.1\n": 414,
	} {
		if status, err := outcome([]byte(in), rules); status != want {
			t.Errorf("%.80q: %d, %v, want %d", in, status, err, want)
		}
		if want == ok {
			compareRequest(t, []byte(in), rules)
		}
	}
}

// TestNonASCII reads targets that curl sends.
func TestNonASCII(t *testing.T) {
	for in, want := range map[string]int{
		line("GET /?a=\u00fc HTTP/1.1"):       ok,
		line("GET /\u00fc?a HTTP/1.1"):        ok,
		line("GET /\xff%41 HTTP/1.1"):         ok,
		line("GET http://a/\u00fc HTTP/1.1"):  ok,
		line("GET http://\u00fc/ HTTP/1.1"):   400,
		line("GET /\x80\x01 HTTP/1.1"):        400,
		line("GET /\u00fc b HTTP/1.1"):        400,
		line("CONNECT \u00fc.de:80 HTTP/1.1"): 400,
		line("G\u00cbT / HTTP/1.1"):           400,
		host(" \u00fc"):                       400,
	} {
		if status, err := outcome([]byte(in), Rules{NonASCII: true}); status != want {
			t.Errorf("%.80q: %d, %v, want %d", in, status, err, want)
		}
		if want == ok {
			compareRequest(t, []byte(in), Rules{NonASCII: true})
		}
	}
}
