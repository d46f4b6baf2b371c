package http1

import "bytes"

// A Field is a line of a head or of a trailer section. Value has no white space at its
// ends. Both alias the input.
type Field struct{ Name, Value []byte }

// get returns the value of the first field with a name, in any case.
func get(all []Field, name string) []byte {
	for i := range all {
		if len(all[i].Name) == len(name) && sameName(all[i].Name, name) {
			return all[i].Value
		}
	}
	return nil
}

// sameName compares a field's name with another of the same length, in any case.
func sameName(b []byte, name string) bool {
	for i, c := range b {
		if c != name[i] && lower(c) != lower(name[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// A Partial reads heads as [Request.Parse] and [Response.Parse] do, and remembers how much
// of an incomplete head it has checked. A head in many pieces then costs two passes over
// its bytes in all, instead of one for each piece. The zero value is ready for the start
// of a head, and so is a Partial that has returned one. It holds no memory, so connections
// may share a Request: only the Partial belongs to one connection.
type Partial struct {
	searched uint32 // bytes that hold no end of the incomplete line
	line     uint32 // offset of the incomplete line
	fields   uint32 // complete fields
}

// Parse is [Request.Parse], but continues where the last call stopped because the head was
// incomplete. in must again begin with the start of the head and hold at least the same
// bytes; it may have moved. rules must not have changed. While the head is incomplete, r holds
// nothing of use.
func (p *Partial) Parse(r *Request, in []byte, rules Rules) (n int, err error) {
	r.begin(&rules)
	if p.searched > 0 {
		if done, err := p.resume(in, &r.rules); !done || err != nil {
			return 0, err
		}
	}
	return r.parse(in, p)
}

// ParseResponse is the same for [Response.Parse].
func (p *Partial) ParseResponse(r *Response, in []byte, rules Rules) (n int, err error) {
	r.begin(&rules)
	if p.searched > 0 {
		if done, err := p.resume(in, &r.rules); !done || err != nil {
			return 0, err
		}
	}
	return r.parse(in, p)
}

// resume checks the lines that have become complete since an earlier call. done: the head
// is complete, or its first line is, or too long.
func (p *Partial) resume(in []byte, rules *Rules) (done bool, err error) {
	b := in[:min(len(in), rules.Head)]
	if p.line > 0 {
		return p.resumeFields(b, rules)
	}
	b = b[:min(len(b), rules.Line+2)]
	if bytes.IndexByte(b[p.searched:], '\n') < 0 {
		p.searched = uint32(len(b))
		return len(b) == rules.Line+2 || len(b) == rules.Head, nil
	}
	return true, nil
}

// resumeFields is resume behind the first line. b is bounded by rules.Head.
func (p *Partial) resumeFields(b []byte, rules *Rules) (done bool, err error) {
	for {
		lf := bytes.IndexByte(b[p.searched:], '\n')
		if lf < 0 {
			p.searched = uint32(len(b))
			return len(b) == rules.Head, nil
		}
		f, next, end, err := readField(b, int(p.line), int(p.searched)+lf, rules.BareLF)
		if err != nil || end {
			return true, err
		}
		if err := f.check(kindOf(f.Name)); err != nil {
			return true, err
		}
		if p.fields++; p.fields > uint32(rules.Fields) {
			return true, errHeadFields
		}
		p.line, p.searched = uint32(next), uint32(next)
	}
}

// stop remembers an incomplete head whose line at an offset has not ended.
func (p *Partial) stop(line, fields, size int) {
	if p != nil {
		p.line, p.searched, p.fields = uint32(line), uint32(size), uint32(fields)
	}
}

// firstLine returns the first line of in, without its line break, and the offset behind
// it; 0 if it is incomplete.
func firstLine(in []byte, rules *Rules) (line []byte, next int, err error) {
	b := in[:min(len(in), rules.Head)]
	lf := bytes.IndexByte(b[:min(len(b), rules.Line+2)], '\n')
	switch {
	case lf < 0 && len(b) >= rules.Line+2:
		return nil, 0, errLongLine
	case lf < 0 && len(b) >= rules.Head:
		return nil, 0, errHeadSize
	case lf < 0:
		return nil, 0, nil
	case lf > 0 && b[lf-1] == '\r':
		return b[:lf-1], lf + 1, nil
	case !rules.BareLF:
		return nil, 0, errBareLF
	case lf > rules.Line:
		return nil, 0, errLongLine
	}
	return b[:lf], lf + 1, nil
}

// readField reads the line at b[at:], which ends with the LF at b[lf]. next is the offset
// behind it. end: it was the empty line.
func readField(b []byte, at, lf int, bareLF bool) (f Field, next int, end bool, err error) {
	line := b[at:lf]
	switch {
	case len(line) > 0 && line[len(line)-1] == '\r':
		line = line[:len(line)-1]
	case !bareLF:
		return f, 0, false, errBareLF
	}
	if len(line) == 0 {
		return f, lf + 1, true, nil
	}
	colon := span(line, isToken)
	if colon == 0 || colon == len(line) || line[colon] != ':' {
		return f, 0, false, nameError(line, colon)
	}
	value := line[colon+1:]
	for i := 0; ; i++ {
		i += control(value[i:])
		if i == len(value) {
			break
		}
		if value[i] != '\t' {
			return f, 0, false, valueError(value[i])
		}
	}
	return Field{line[:colon:colon], trim(value)}, lf + 1, false, nil
}

// nameError says why a line has no valid name.
func nameError(line []byte, at int) *Error {
	switch {
	case at == 0 && isBlank(line[0]):
		return errFold
	case at == len(line):
		return errColon
	case line[at] == ':':
		return errNoName
	case line[at] == '\r':
		return errBareCR
	case isBlank(line[at]) && bytes.HasPrefix(trim(line[at:]), []byte{':'}):
		return errSpaceColon
	}
	return errName
}

func valueError(c byte) *Error {
	if c == '\r' {
		return errBareCR
	}
	return errValue
}

// A fieldKind is a field that matters to the reader of a head.
type fieldKind uint8

const (
	otherField fieldKind = iota
	hostField
	lengthField
	encodingField
	connectionField
	expectField
	trailerField
)

// kindOf recognizes a field by its name.
func kindOf(name []byte) fieldKind {
	kind, word := otherField, ""
	switch len(name) {
	case len("host"):
		kind, word = hostField, "host"
	case len("expect"):
		kind, word = expectField, "expect"
	case len("trailer"):
		kind, word = trailerField, "trailer"
	case len("connection"):
		kind, word = connectionField, "connection"
	case len("content-length"):
		kind, word = lengthField, "content-length"
	case len("transfer-encoding"):
		kind, word = encodingField, "transfer-encoding"
	}
	if kind == otherField || !isWord(name, word) {
		return otherField
	}
	return kind
}

// check checks what can be checked of a field alone.
func (f *Field) check(kind fieldKind) error {
	if kind == lengthField {
		if _, ok := parseLength(f.Value); !ok {
			return errLength
		}
	}
	return nil
}

// notes are what the fields of a head say of the framing.
type notes struct {
	length                              int64
	host, encoding                      []byte
	hosts, lengths, encodings, trailers int
	close, keepAlive, expectsContinue   bool
}

// add notes a field.
func (t *notes) add(kind fieldKind, value []byte) {
	switch kind {
	case hostField:
		t.hosts++
		t.host = value
	case lengthField:
		t.lengths++
		t.length, _ = parseLength(value)
	case encodingField:
		t.encodings++
		t.encoding = value
	case connectionField:
		t.close = t.close || hasWord(value, "close")
		t.keepAlive = t.keepAlive || hasWord(value, "keep-alive")
	case expectField:
		t.expectsContinue = t.expectsContinue || isWord(value, "100-continue")
	case trailerField:
		t.trailers++
	}
}

// readFields reads fields from in[at:], and the empty line behind them; next is the offset
// behind it. next is 0 if it is incomplete, which p then remembers.
func readFields(in []byte, at int, rules *Rules, p *Partial, fields []Field, t *notes) (all []Field, next int, err error) {
	b := in[:min(len(in), rules.Head)]
	for {
		lf := bytes.IndexByte(b[at:], '\n')
		if lf < 0 {
			if len(b) == rules.Head {
				return fields, 0, errHeadSize
			}
			p.stop(at, len(fields), len(b))
			return fields, 0, nil
		}
		f, next, end, err := readField(b, at, at+lf, rules.BareLF)
		if err != nil || end {
			return fields, next, err
		}
		if kind := kindOf(f.Name); kind != otherField {
			if err := f.check(kind); err != nil {
				return fields, 0, err
			}
			t.add(kind, f.Value)
		}
		if len(fields) == rules.Fields {
			return fields, 0, errHeadFields
		}
		fields = append(fields, f)
		at = next
	}
}

// chunked checks the Transfer-Encoding and the Trailer fields.
func (t *notes) chunked(minor int, fields []Field) error {
	switch {
	case minor == 0:
		return errEncodingOld
	case t.encodings > 1 || !isWord(t.encoding, "chunked"):
		return errEncoding
	case t.lengths > 0:
		return errEncodingLength
	case t.trailers == 0:
		return nil
	}
	for _, f := range fields {
		if kindOf(f.Name) != trailerField {
			continue
		}
		for name := range bytes.SplitSeq(f.Value, []byte{','}) {
			if isForbiddenTrailer(kindOf(trim(name))) {
				return errTrailerName
			}
		}
	}
	return nil
}

// isForbiddenTrailer reports whether a field must stand in the head, since it says where the
// message ends or whom it is for: RFC 9110, section 6.5.1.
func isForbiddenTrailer(kind fieldKind) bool {
	return kind == hostField || kind == lengthField || kind == encodingField || kind == trailerField
}
