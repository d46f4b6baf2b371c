package http1

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// ToHTTP makes the Request that net/http's server makes of the head; see [Request.Into].
func (r *Request) ToHTTP() (*http.Request, error) {
	both := new(struct {
		request http.Request
		url     url.URL
	})
	both.request.URL = &both.url
	if err := r.Into(&both.request); err != nil {
		return nil, err
	}
	return &both.request, nil
}

// Into fills in the fields of req that net/http's server takes from a request's head:
// Method, URL, Proto, Header, ContentLength, TransferEncoding, Trailer, Close, Host and
// RequestURI. It keeps req's context, and the memory of its URL, if it has one. Body is
// http.NoBody if there is no body; otherwise the caller sets it, and adds the fields of the
// trailer section to Trailer when they have arrived.
//
// req does not alias the input. Its strings share one piece of memory: a program that keeps
// one of them for long should clone it.
//
// err is an [*Error]: package url refuses the target.
func (r *Request) Into(req *http.Request) error {
	header, target, host := r.header()
	if req.URL == nil {
		req.URL = new(url.URL)
	}
	if !r.setURL(req.URL, target) {
		return errTarget
	}
	req.Method, req.RequestURI = methodName(r.Method), target
	req.Proto, req.ProtoMajor, req.ProtoMinor = r.proto()
	req.Header = header
	req.ContentLength = r.ContentLength
	req.Close = r.Close
	if req.Host = req.URL.Host; req.Host == "" {
		req.Host = host
	}
	switch {
	case r.Preface:
		req.ContentLength = -1
		req.Body = http.NoBody
	case r.ContentLength < 0:
		req.TransferEncoding = []string{"chunked"}
		if r.notes.trailers > 0 {
			req.Trailer = announced(header)
		}
	case r.ContentLength == 0:
		req.Body = http.NoBody
	}
	return nil
}

func (r *Request) proto() (proto string, major, minor int) {
	switch {
	case r.Preface:
		return "HTTP/2.0", 2, 0
	case r.Minor == 1:
		return "HTTP/1.1", 1, 1
	case r.Minor == 0:
		return "HTTP/1.0", 1, 0
	}
	return "HTTP/1." + strconv.Itoa(r.Minor), 1, r.Minor
}

// header makes a Header of the fields. It also returns copies of the target and of the Host
// field, which is not in the Header. All values, the names that are not known ones, and the
// target are parts of one string.
func (r *Request) header() (h http.Header, target, host string) {
	var stack [32]string
	keys := append(stack[:0], make([]string, 0, max(0, len(r.Fields)-len(stack)))...)
	size := len(r.Target)
	for i := range r.Fields {
		f := &r.Fields[i]
		key := knownName(f.Name)
		if key == "" {
			size += len(f.Name)
		}
		size += len(f.Value)
		keys = append(keys, key)
	}
	var b strings.Builder
	b.Grow(size)
	b.Write(r.Target)
	for i := range r.Fields {
		if keys[i] == "" {
			writeName(&b, r.Fields[i].Name)
		}
		b.Write(r.Fields[i].Value)
	}
	text := b.String()
	cut := func(n int) (s string) {
		s, text = text[:n], text[n:]
		return s
	}
	target = cut(len(r.Target))

	h = make(http.Header, len(r.Fields))
	values := make([]string, len(r.Fields))
	var seen uint64 // a bit for each name in h; names may share one
	for i := range r.Fields {
		key := keys[i]
		if key == "" {
			key = cut(len(r.Fields[i].Name))
		}
		value := cut(len(r.Fields[i].Value))
		switch key {
		case "Host":
			host = value
			continue
		case "Transfer-Encoding":
			continue
		}
		values[i] = value
		bit := uint64(1) << (uint(len(key)*7+int(key[0])+int(key[len(key)-1])*3) % 64)
		if seen&bit != 0 {
			if have := h[key]; have != nil {
				h[key] = append(have, value)
				continue
			}
		}
		seen |= bit
		h[key] = values[i : i+1 : i+1]
	}
	if pragma := h["Pragma"]; len(pragma) > 0 && pragma[0] == "no-cache" && h["Cache-Control"] == nil {
		h["Cache-Control"] = []string{"no-cache"} // as net/http does
	}
	return h, target, host
}

// setURL parses the target as net/http does.
func (r *Request) setURL(u *url.URL, target string) bool {
	if r.plain && r.Form == OriginForm {
		*u = url.URL{Path: target[:len(r.Path)]}
		if len(r.Query) > 0 {
			u.RawQuery = target[len(r.Path)+1:]
		} else {
			u.ForceQuery = len(r.Path) < len(target)
		}
		return true
	}
	if r.Form == AuthorityForm {
		target = "http://" + target
	}
	parsed, err := url.ParseRequestURI(target)
	if err != nil {
		return false
	}
	*u = *parsed
	if r.Form == AuthorityForm {
		u.Scheme = ""
	}
	return true
}

// announced takes the Trailer fields out of a Header, and returns the names in them.
func announced(h http.Header) (trailer http.Header) {
	fields := h["Trailer"]
	delete(h, "Trailer")
	for _, list := range fields {
		for name := range strings.SplitSeq(list, ",") {
			if name = textproto.TrimString(name); name != "" {
				if trailer == nil {
					trailer = make(http.Header)
				}
				trailer[http.CanonicalHeaderKey(name)] = nil
			}
		}
	}
	return trailer
}

// AddFields adds copies of fields to a Header, such as those of a [Body]'s Trailer to
// Request.Trailer.
func AddFields(h http.Header, fields []Field) {
	for _, f := range fields {
		key := knownName(f.Name)
		if key == "" {
			var b strings.Builder
			writeName(&b, f.Name)
			key = b.String()
		}
		h[key] = append(h[key], string(f.Value))
	}
}
