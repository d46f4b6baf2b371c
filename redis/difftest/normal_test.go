package difftest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rondo-go/rondo/resp"
)

// normalForms are what replies are turned into that differ with reason.
var normalForms = map[string]func(v resp.Value, args []string) (resp.Value, error){
	"kind":      kind,
	"sorted":    sorted,
	"unordered": unordered,
	"pairs":     sortedPairs,
	"scanned":   scanned,
	"about":     about,
	"masked":    masked,
	"lines":     lines,
	"fields":    fields,
	"digits":    digits,
	"digest":    digest,
}

// normalize returns a reply in a normal form, given by its name and arguments,
// or in several in turn, with " | " between them.
func normalize(normal string, reply []byte) ([]byte, error) {
	if normal == "" {
		return reply, nil
	}
	v, n, _, err := resp.ReadValue(reply)
	if err != nil || n != len(reply) {
		return nil, fmt.Errorf("%q is not one reply: %v", reply, err)
	}
	for _, one := range strings.Split(normal, " | ") {
		words := strings.Fields(one)
		form := normalForms[words[0]]
		if form == nil {
			return nil, fmt.Errorf("there is no normal form %q", words[0])
		}
		if v, err = form(v, words[1:]); err != nil {
			return nil, fmt.Errorf("%q as %s: %w", reply, one, err)
		}
	}
	return resp.AppendValue(nil, v), nil
}

// kind keeps the type alone.
func kind(v resp.Value, _ []string) (resp.Value, error) {
	switch v.Kind {
	case resp.Array, resp.Set, resp.Push, resp.Map:
		return resp.Value{Kind: v.Kind}, nil
	case resp.Error:
		return v, fmt.Errorf("it is an error")
	}
	return resp.Value{Kind: resp.Simple, Str: []byte{byte(v.Kind)}}, nil
}

// digest replaces a reply by a hash of it.
func digest(v resp.Value, _ []string) (resp.Value, error) {
	whole := resp.AppendValue(nil, v)
	return resp.Value{Kind: resp.Simple, Str: fmt.Appendf(nil, "%d bytes, SHA-256 %x", len(whole), sha256.Sum256(whole))}, nil
}

func less(a, b resp.Value) int {
	return bytes.Compare(resp.AppendValue(nil, a), resp.AppendValue(nil, b))
}

// sorted puts elements in order; those of the element that args numbers, if it
// does.
func sorted(v resp.Value, args []string) (resp.Value, error) {
	elems := v.Elems
	if len(args) > 0 {
		i, err := strconv.Atoi(args[0])
		if err != nil || i >= len(elems) {
			return v, fmt.Errorf("no element %s", args[0])
		}
		elems = elems[i].Elems
	}
	slices.SortFunc(elems, less)
	return v, nil
}

// unordered puts the elements of all arrays and maps in order, at any depth.
func unordered(v resp.Value, _ []string) (_ resp.Value, err error) {
	for i, elem := range v.Elems {
		if v.Elems[i], err = unordered(elem, nil); err != nil {
			return v, err
		}
	}
	slices.SortFunc(v.Elems, less)
	return v, nil
}

// sortedPairs puts the pairs of a map, or of an array that stands for one, in
// the order of their keys.
func sortedPairs(v resp.Value, _ []string) (resp.Value, error) {
	pairs := slices.Collect(slices.Chunk(v.Elems, 2))
	slices.SortFunc(pairs, func(a, b []resp.Value) int { return less(a[0], b[0]) })
	v.Elems = slices.Concat(pairs...)
	return v, nil
}

// scanned puts the elements of a reply to SSCAN, say, in order; an error stays.
func scanned(v resp.Value, _ []string) (resp.Value, error) {
	if len(v.Elems) < 2 {
		return v, nil
	}
	return sorted(v, []string{"1"})
}

// about makes of an integer that differs from args[0] by no more than args[1]
// that number.
func about(v resp.Value, args []string) (resp.Value, error) {
	want, err1 := strconv.ParseInt(args[0], 10, 64)
	tolerance, err2 := strconv.ParseInt(args[1], 10, 64)
	if v.Kind != resp.Int || err1 != nil || err2 != nil {
		return v, fmt.Errorf("no integer")
	}
	if v.Int >= want-tolerance && v.Int <= want+tolerance {
		v.Int = want
	}
	return v, nil
}

// masked replaces what stands behind the given strings by its kind, at any
// depth.
func masked(v resp.Value, args []string) (_ resp.Value, err error) {
	for i, elem := range v.Elems {
		form := masked
		if i > 0 && slices.Contains(args, string(v.Elems[i-1].Str)) {
			form = kind
		}
		if v.Elems[i], err = form(elem, args); err != nil {
			return v, err
		}
	}
	return v, nil
}

// lines keeps, of a text of "key:value" lines with "# title" lines between them,
// the keys and titles that were given, in order.
func lines(v resp.Value, args []string) (resp.Value, error) {
	var kept []string
	for _, line := range strings.SplitAfter(string(v.Str), "\r\n") {
		key, _, _ := strings.Cut(line, ":")
		if slices.Contains(args, strings.Trim(key, "# \r\n")) {
			kept = append(kept, line)
		}
	}
	slices.Sort(kept)
	v.Str = []byte(strings.Join(kept, ""))
	return v, nil
}

var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// digits replaces the numbers in texts by N, at any depth.
func digits(v resp.Value, _ []string) (_ resp.Value, err error) {
	v.Str = number.ReplaceAll(v.Str, []byte("N"))
	for i, elem := range v.Elems {
		if v.Elems[i], err = digits(elem, nil); err != nil {
			return v, err
		}
	}
	return v, nil
}

var field = regexp.MustCompile(`([a-z_-]+)=[^ ,\r\n]*`)

// fields masks, in a text with "key=value" in it, the values of all keys but
// those that were given.
func fields(v resp.Value, args []string) (resp.Value, error) {
	v.Str = field.ReplaceAllFunc(v.Str, func(f []byte) []byte {
		key, _, _ := bytes.Cut(f, []byte("="))
		if slices.Contains(args, string(key)) {
			return f
		}
		return append(slices.Clip(key), "=?"...)
	})
	return v, nil
}
