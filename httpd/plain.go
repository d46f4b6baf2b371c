package httpd

import (
	"errors"
	"strings"

	"github.com/rondo-go/rondo"
)

// A plain is a Filter below TLS. As net/http does, it answers clients that speak HTTP without
// TLS. At the first bytes of others it removes itself.
type plain struct{ rondo.PassThrough }

func newPlain(*rondo.Conn) rondo.Filter { return plain{} }

var errPlain = errors.New("client sent an HTTP request to an HTTPS server")

// plainBegins is how requests begin, as net/http has it.
var plainBegins = []string{"GET /", "HEAD ", "POST ", "PUT /", "OPTIO"}

const plainAnswer = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"

// Inbound implements rondo.Filter.
func (plain) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	begin := string(in[:min(len(in), 5)])
	for _, word := range plainBegins {
		switch {
		case begin == word:
			s.Send([]byte(plainAnswer))
			return len(in), errPlain
		case strings.HasPrefix(word, begin):
			return 0, nil // more will come, within the time for a handshake
		}
	}
	s.Remove()
	return 0, nil
}
