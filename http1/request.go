package http1

import "bytes"

// A Request is the head of a request. All slices alias the input that was parsed. The zero
// value is ready for Parse; a Request that is used again keeps the memory of Fields.
type Request struct {
	Method  []byte
	Target  []byte // as received
	Form    Form
	Scheme  []byte // of a target in absolute form
	Path    []byte // of a target in origin or absolute form, escaped; "*" in asterisk form
	Query   []byte // of a target in origin or absolute form, without the question mark
	Minor   int    // of the version HTTP/1.Minor
	Preface bool   // the head is HTTP/2's "PRI * HTTP/2.0": not HTTP/1 at all
	Fields  []Field

	// Host is the host, and the port if there is one, that the request is for: the target's
	// in absolute and authority form, and otherwise the Host field's.
	Host []byte

	// ContentLength is the length of the body; -1 if it is chunked, 0 if there is none.
	ContentLength int64

	// Close: the client does not send another request on the connection. It is set for
	// HTTP/1.0 without keep-alive, and by "Connection: close".
	Close bool

	// ExpectContinue: the client waits for status 100 before it sends the body. RFC 9110,
	// section 10.1.1 says that HTTP/1.0 does not.
	ExpectContinue bool

	plain bool // the path needs no unescaping
	notes notes
	rules Rules
}

// Parse reads the head of a request at the start of in. It takes n bytes: the request
// line, the fields, and the empty line. When n is 0 and err is nil, the head is
// incomplete, and r holds nothing of use. Parse does not skip empty lines in front of the
// request line.
//
// Parse checks a line as soon as the line is complete, and what concerns several lines
// when the head is complete. For heads that arrive in many pieces, use a [Partial].
//
// err is an [*Error].
func (r *Request) Parse(in []byte, rules Rules) (n int, err error) {
	r.begin(&rules)
	return r.parse(in, nil)
}

// begin forgets the last request.
func (r *Request) begin(rules *Rules) {
	fields := r.Fields[:0]
	*r = Request{}
	r.Fields = fields
	r.rules = *rules
	r.rules.fill()
}

func (r *Request) parse(in []byte, p *Partial) (n int, err error) {
	line, at, err := firstLine(in, &r.rules)
	if at == 0 {
		if err == errLongLine {
			err = longLine(in[:r.rules.Line])
		}
		p.stop(0, 0, min(len(in), r.rules.Head, r.rules.Line+2))
		return 0, err
	}
	if err := r.parseLine(line); err != nil {
		return 0, err
	}
	r.Fields, n, err = readFields(in, at, &r.rules, p, r.Fields, &r.notes)
	if n == 0 {
		return 0, err
	}
	if err := r.finish(); err != nil {
		return 0, err
	}
	p.stop(0, 0, 0)
	return n, nil
}

// longLine tells a long target from a long method, and that from garbage.
func longLine(b []byte) error {
	method := span(b, isToken)
	switch {
	case method == len(b):
		return errLongMethod
	case method == 0 || b[method] != ' ':
		return errMethod
	}
	return errLongLine
}

const versionSize = len("HTTP/1.1")

// parseLine reads the request line.
func (r *Request) parseLine(line []byte) error {
	method := span(line, isToken)
	if method == 0 || method == len(line) || line[method] != ' ' {
		return errMethod
	}
	r.Method = line[:method:method]
	end := len(line) - versionSize - 1
	if end <= method || line[end] != ' ' {
		return errVersion
	}
	r.Target = line[method+1 : end : end]
	major, minor, ok := parseVersion(line[end+1:])
	switch {
	case !ok:
		return errVersion
	case major == 2 && minor == 0 && string(r.Method) == "PRI" && string(r.Target) == "*":
		r.Preface, r.Form, r.Path = true, AsteriskForm, r.Target
		return nil
	case bytes.IndexByte(r.Target, ' ') >= 0:
		return errVersion // the second word is not a version
	case major != 1:
		return errUnsupported
	}
	r.Minor = minor
	if err := r.parseTarget(r.rules.NonASCII); err != nil {
		return err
	}
	return nil
}

// parseVersion reads "HTTP/1.1", or any other two digits.
func parseVersion(b []byte) (major, minor int, ok bool) {
	if len(b) != versionSize || string(b[:5]) != "HTTP/" || b[6] != '.' {
		return 0, 0, false
	}
	major, minor = int(b[5])-'0', int(b[7])-'0'
	return major, minor, uint(major) <= 9 && uint(minor) <= 9
}

// finish checks what concerns several fields.
func (r *Request) finish() error {
	t := &r.notes
	if r.Preface {
		if len(r.Fields) > 0 {
			return errUnsupported
		}
		r.Close = true
		return nil
	}
	switch {
	case t.hosts > 1:
		return errHosts
	case t.hosts == 0 && r.Minor > 0 && string(r.Method) != "CONNECT":
		return errNoHost
	case !validHost(t.host, false):
		return errHost
	case t.lengths > 1:
		return errLengths
	}
	r.ContentLength = t.length
	if t.encodings > 0 {
		if err := t.chunked(r.Minor, r.Fields); err != nil {
			return err
		}
		r.ContentLength = -1
	}
	if r.Host == nil {
		r.Host = t.host
	}
	r.Close = t.close || r.Minor == 0 && !t.keepAlive
	r.ExpectContinue = t.expectsContinue && r.Minor > 0
	switch {
	case r.ContentLength != 0 && string(r.Method) == "TRACE":
		return errTraceBody
	case r.ContentLength > r.rules.Body:
		return errBodySize
	}
	return nil
}

// Get returns the value of the first field with a name, in any case; nil if there is none.
func (r *Request) Get(name string) []byte { return get(r.Fields, name) }

// KeepAlive reports whether the client of HTTP/1.0 asks for a connection that stays open.
// It then wants "Connection: keep-alive" in the answer, and a Content-Length.
func (r *Request) KeepAlive() bool { return r.Minor == 0 && !r.Close }

// Reset forgets the input, so that it can be freed, and keeps the memory of Fields.
func (r *Request) Reset() {
	clear(r.Fields[:cap(r.Fields)])
	*r = Request{Fields: r.Fields[:0]}
}
