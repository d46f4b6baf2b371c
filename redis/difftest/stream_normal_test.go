package difftest

import (
	"slices"

	"github.com/rondo-go/rondo/resp"
)

func init() {
	normalForms["untimed"] = untimed
	normalForms["unidle"] = unidle
}

// untimed is masked, but it also masks the times of pending entries, and keeps errors: the
// greatest number of an array that begins with an ID.
func untimed(v resp.Value, args []string) (_ resp.Value, err error) {
	pending := len(v.Elems) >= 3 && v.Elems[0].Kind == resp.Bulk && v.Elems[len(v.Elems)-1].Kind == resp.Int && v.Elems[len(v.Elems)-2].Kind == resp.Int
	if pending && v.Kind == resp.Array {
		v.Elems[len(v.Elems)-2] = resp.Value{Kind: resp.Simple, Str: []byte("time")}
	}
	for i, elem := range v.Elems {
		if i > 0 && slices.Contains(args, string(v.Elems[i-1].Str)) && elem.Kind == resp.Int {
			v.Elems[i] = resp.Value{Kind: resp.Simple, Str: []byte("time")}
		} else if v.Elems[i], err = untimed(elem, args); err != nil {
			return v, err
		}
	}
	return v, nil
}

// unidle masks how long the entries of XPENDING's reply are idle.
func unidle(v resp.Value, _ []string) (resp.Value, error) {
	for i, e := range v.Elems {
		if len(e.Elems) == 4 && e.Elems[2].Kind == resp.Int {
			v.Elems[i].Elems[2] = resp.Value{Kind: resp.Simple, Str: []byte("idle")}
		}
	}
	return v, nil
}
