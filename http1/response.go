package http1

// A Response is the head of a response, for clients and proxies. All slices alias the
// input. The zero value is ready for Parse; a Response that is used again keeps the memory
// of Fields.
type Response struct {
	Minor  int // of the version HTTP/1.Minor
	Status int // three digits
	Reason []byte
	Fields []Field

	// Close: the server closes the connection behind the response.
	Close bool

	notes notes
	rules Rules
}

// Parse reads the head of a response at the start of in, as [Request.Parse] reads a
// request's. The space behind the status may be missing if there is no reason.
func (r *Response) Parse(in []byte, rules Rules) (n int, err error) {
	r.begin(&rules)
	return r.parse(in, nil)
}

// begin forgets the last response.
func (r *Response) begin(rules *Rules) {
	fields := r.Fields[:0]
	*r = Response{}
	r.Fields = fields
	r.rules = *rules
	r.rules.fill()
}

func (r *Response) parse(in []byte, p *Partial) (n int, err error) {
	line, at, err := firstLine(in, &r.rules)
	if at == 0 {
		if err == errLongLine {
			err = errStatusLine
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

// parseLine reads the status line.
func (r *Response) parseLine(line []byte) error {
	const size = versionSize + len(" 200")
	if len(line) < size || line[versionSize] != ' ' {
		return errStatusLine
	}
	major, minor, ok := parseVersion(line[:versionSize])
	switch {
	case !ok:
		return errStatusLine
	case major != 1:
		return errUnsupported
	}
	r.Minor = minor
	for _, c := range line[versionSize+1 : size] {
		if c < '0' || c > '9' {
			return errStatusLine
		}
		r.Status = r.Status*10 + int(c-'0')
	}
	if r.Status < 100 {
		return errStatusLine
	}
	if r.Reason = line[size:]; len(r.Reason) > 0 {
		if r.Reason[0] != ' ' {
			return errStatusLine
		}
		r.Reason = r.Reason[1:]
		for i, c := range r.Reason {
			if c < ' ' && c != '\t' || c == 0x7f {
				return valueError(r.Reason[i])
			}
		}
	}
	return nil
}

// finish checks what concerns several fields.
func (r *Response) finish() error {
	t := &r.notes
	switch {
	case t.lengths > 1:
		return errLengths
	case t.encodings > 0:
		if err := t.chunked(r.Minor, r.Fields); err != nil {
			return err
		}
	}
	r.Close = t.close || r.Minor == 0 && !t.keepAlive
	return nil
}

// ContentLength returns the length that the head announces; -1 if it announces none, or
// chunks. The response to HEAD, and one of status 304, has no body in spite of it.
func (r *Response) ContentLength() int64 {
	if r.notes.lengths == 0 {
		return -1
	}
	return r.notes.length
}

// Body returns a decoder for the body of the response to a request with the given method.
// There is none after HEAD, with status 1xx, 204 and 304, and after CONNECT with status 2xx,
// whose stream then belongs to the tunnel: RFC 9112, section 6.3. A body without length
// goes on until the stream ends: its Done never reports true. Its Next refuses a body of
// more than Rules.Body bytes.
func (r *Response) Body(method string) Body {
	switch {
	case method == "HEAD", r.Status < 200, r.Status == 204, r.Status == 304,
		method == "CONNECT" && r.Status < 300:
		return Body{}
	case r.notes.encodings > 0:
		return newBody(-1, &r.rules)
	case r.notes.lengths > 0:
		return newBody(r.notes.length, &r.rules)
	}
	return Body{state: bodyStream, room: r.rules.Body}
}

// Get returns the value of the first field with a name, in any case; nil if there is none.
func (r *Response) Get(name string) []byte { return get(r.Fields, name) }

// Reset forgets the input, so that it can be freed, and keeps the memory of Fields.
func (r *Response) Reset() {
	clear(r.Fields[:cap(r.Fields)])
	*r = Response{Fields: r.Fields[:0]}
}
