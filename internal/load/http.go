package load

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/rondo-go/rondo/http1"
)

// HTTPOptions configure an HTTP workload.
type HTTPOptions struct {
	Pipeline int    // as in Config
	Request  []byte // head and body
	Status   int    // of the answers
	Body     []byte // of the answers
	AnyBody  bool   // do not compare the answers' bodies
}

// HTTP is the workload for an HTTP server: the same request over and over, whose answers have
// a known status and body. Their heads may differ otherwise. The server must keep connections
// open.
func HTTP(o HTTPOptions) (Workload, error) {
	var request http1.Request
	if n, err := request.Parse(o.Request, http1.Rules{}); err != nil {
		return Workload{}, err
	} else if n == 0 {
		return Workload{}, errors.New("the request's head is incomplete")
	}
	if err := fits(len(o.Request), o.Pipeline); err != nil {
		return Workload{}, err
	}
	h := &httpTest{HTTPOptions: o, method: string(request.Method)}
	requests := repeat(o.Request, o.Pipeline*len(o.Request))
	return Workload{
		Name:        "http",
		RequestSize: len(o.Request),
		Talk: func(int) Talk {
			return Talk{&taped{head{tape: requests}, len(o.Request)}, &httpReplies{httpTest: h}}
		},
	}, nil
}

// httpTest is what the connections of a workload share.
type httpTest struct {
	HTTPOptions
	method string
}

// httpReplies are answers over HTTP/1.
type httpReplies struct {
	*httpTest
	kept  []byte // received bytes that cannot be read alone
	head  http1.Response
	body  http1.Body
	begun bool // body is the current answer's
	seen  int  // bytes of its content
}

func (h *httpReplies) Check(in []byte, limit int) (n, replies int, wrong *Mismatch) {
	b := in
	if len(h.kept) > 0 {
		h.kept = append(h.kept, in...)
		b = h.kept
	}
	for len(b) > 0 && replies < limit {
		n, ended, wrong := h.read(b)
		if wrong != nil {
			wrong.Reply = int64(replies) + 1
			return max(0, len(in)-len(b)), replies, wrong
		}
		if ended {
			replies++
		} else if n == 0 {
			h.kept = append(h.kept[:0], b...)
			return len(in), replies, nil
		}
		b = b[n:]
	}
	h.kept = h.kept[:0]
	return len(in) - len(b), replies, nil
}

// read reads a part of an answer, of n bytes. If n is 0 and the answer has not ended, it needs
// more bytes.
func (h *httpReplies) read(b []byte) (n int, ended bool, wrong *Mismatch) {
	if !h.begun {
		n, err := h.head.Parse(b, http1.Rules{})
		switch {
		case err != nil:
			return 0, false, &Mismatch{Part: " of the head, " + err.Error(), Got: excerpt(b, 0, 0), Want: h.statusLine()}
		case n == 0 || h.head.Status < 200: // incomplete, or not the answer yet
			return n, false, nil
		case h.head.Status != h.Status:
			return 0, false, &Mismatch{Part: " of the head", Byte: len("HTTP/1.1 "), Got: excerpt(b, 0, 0), Want: h.statusLine()}
		}
		h.begun, h.seen = true, 0
		h.body = h.head.Body(h.method)
		return n, h.ended(), h.short()
	}
	data, n, err := h.body.Next(b)
	if err != nil {
		return 0, false, &Mismatch{Part: " of the body, " + err.Error(), Byte: h.seen, Got: excerpt(b, 0, 0), Want: h.wanted(0)}
	}
	if same := common(data, h.Body[min(h.seen, len(h.Body)):]); same < len(data) && !h.AnyBody {
		h.seen += same
		return 0, false, &Mismatch{Part: " of the body", Byte: h.seen, Got: excerpt(data, same, same), Want: h.wanted(same)}
	}
	h.seen += len(data)
	return n, h.ended(), h.short()
}

// ended reports whether the current answer has ended, and prepares for the next one.
func (h *httpReplies) ended() bool {
	h.begun = !h.body.Done()
	return !h.begun
}

// short returns the error of an answer that has ended with too little content.
func (h *httpReplies) short() *Mismatch {
	if h.begun || h.AnyBody || h.seen == len(h.Body) {
		return nil
	}
	return &Mismatch{Part: " of the body", Byte: h.seen, Want: h.wanted(0)}
}

// wanted returns the expected content around the next byte: at most back bytes before it.
func (h *httpReplies) wanted(back int) []byte {
	at := min(h.seen, len(h.Body))
	return excerpt(h.Body, at, back)
}

func (h *httpReplies) statusLine() []byte {
	return []byte("HTTP/1.1 " + strconv.Itoa(h.Status) + " " + http.StatusText(h.Status))
}
