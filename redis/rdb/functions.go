package rdb

import "errors"

// The types of a library of functions. The older one has its name beside its code.
const (
	TypeFunction2   Type = 245
	TypeFunctionOld Type = 246
)

// The errors of Functions, with Redis's texts.
var (
	ErrNotFunction  = errors.New("given type is not a function")
	errFunctionText = functionError("Failed loading library payload")
)

type functionError string

func (e functionError) Error() string { return string(e) }

// Functions returns the codes of the libraries that FUNCTION DUMP has made b of. limit is the
// length of the longest text that may have been compressed.
func Functions(b []byte, limit int) (codes []string, err error) {
	r := reader{b, limit}
	for len(r.b) > 0 {
		typ := Type(r.b[0])
		r.b = r.b[1:]
		switch typ {
		case TypeFunction2:
			code, ok := r.expanded()
			if !ok {
				return nil, errFunctionText
			}
			codes = append(codes, code)
		case TypeFunctionOld:
			code, ok := r.oldFunction()
			if !ok {
				return nil, errFunctionText
			}
			codes = append(codes, code)
		default:
			return nil, ErrNotFunction
		}
	}
	return codes, nil
}

// oldFunction reads a library of Redis 7.0's first versions, and gives it the first line that
// others have.
func (r *reader) oldFunction() (code string, ok bool) {
	name, ok1 := r.expanded()
	engine, ok2 := r.expanded()
	if !ok1 || !ok2 {
		return "", false
	}
	described, ok := r.length()
	if ok && described != 0 {
		_, ok = r.expanded()
	}
	if !ok {
		return "", false
	}
	code, ok = r.expanded()
	return "#!" + engine + " name=" + name + "\n" + code, ok
}

// expanded reads a string.
func (r *reader) expanded() (string, bool) {
	t, ok := r.text()
	if !ok {
		return "", false
	}
	var room []byte
	return string(t.bytes(&room)), true
}
