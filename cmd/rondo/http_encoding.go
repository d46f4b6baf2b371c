package main

import (
	"slices"
	"strconv"
	"strings"
)

// identity is the encoding of content as it is.
const identity = "identity"

// preferred returns the encoding of offered that the Accept-Encoding fields prefer, or "" for
// the content as it is (RFC 9110, 12.5.3). Of encodings that the client likes as much, the
// first is chosen. The content as it is comes last, unless the fields name it.
func preferred(fields, offered []string) (best string) {
	weights := make(map[string]float64)
	for _, field := range fields {
		for element := range strings.SplitSeq(field, ",") {
			if name, weight, ok := weighted(element); ok {
				weights[name] = weight
			}
		}
	}
	most := 0.0
	if w, named := weights[identity]; named {
		most = w
	}
	for _, name := range offered {
		w, named := weights[name]
		if !named {
			w = weights["*"]
		}
		if w > most || w == most && w > 0 && best == "" {
			best, most = name, w
		}
	}
	return best
}

// weighted parses an element of Accept-Encoding, such as "gzip;q=0.5".
func weighted(element string) (name string, weight float64, ok bool) {
	parts := strings.Split(element, ";")
	for i := range parts {
		parts[i] = strings.ToLower(strings.Trim(parts[i], " \t"))
	}
	name = parts[0]
	if name == "x-gzip" {
		name = "gzip"
	}
	i := slices.IndexFunc(parts[1:], func(p string) bool { return strings.HasPrefix(p, "q=") })
	if i < 0 {
		return name, 1, name != ""
	}
	weight, err := strconv.ParseFloat(parts[1+i][len("q="):], 64)
	return name, weight, err == nil && weight >= 0 && weight <= 1 && name != ""
}
