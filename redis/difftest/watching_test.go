package difftest

import (
	"fmt"

	"github.com/rondo-go/rondo/resp"
)

func init() {
	normalForms["entries"] = entries
	normalForms["samples"] = samples
	normalForms["histograms"] = histograms
	normalForms["keys"] = keys
}

// entries masks the number, the time, the duration and the client's port of each
// entry of the slow log.
func entries(v resp.Value, _ []string) (resp.Value, error) {
	for i := range v.Elems {
		e := v.Elems[i].Elems
		if len(e) != 6 {
			return v, fmt.Errorf("entry %d has %d parts", i, len(e))
		}
		e[0].Int, e[1].Int, e[2].Int = 0, 0, 0
		e[4].Str = number.ReplaceAll(e[4].Str, []byte("N"))
	}
	return v, nil
}

// samples masks the times of LATENCY LATEST and HISTORY. Of durations it keeps whether they are
// at least a second.
func samples(v resp.Value, _ []string) (resp.Value, error) {
	for i := range v.Elems {
		for j := range v.Elems[i].Elems {
			if e := &v.Elems[i].Elems[j]; e.Kind == resp.Int && e.Int > 1e6 {
				e.Int = 0
			} else if e.Kind == resp.Int {
				e.Int = min(e.Int/1000, 1) * 1000
			}
		}
	}
	return v, nil
}

// histograms keeps how many calls LATENCY HISTOGRAM has of each command.
func histograms(v resp.Value, _ []string) (resp.Value, error) {
	for i := 1; i < len(v.Elems); i += 2 {
		e := v.Elems[i].Elems
		if len(e) != 4 {
			return v, fmt.Errorf("histogram %d has %d parts", i, len(e))
		}
		all := e[3].Elems
		if len(all) == 0 || all[len(all)-1].Int != e[1].Int {
			return v, fmt.Errorf("histogram %d does not count all calls", i)
		}
		e[3].Elems = nil
	}
	return sortedPairs(v, nil)
}

// keys replaces the values of a map, at any depth, by their kinds.
func keys(v resp.Value, _ []string) (_ resp.Value, err error) {
	for i := 1; i < len(v.Elems); i += 2 {
		if e := &v.Elems[i]; e.Elems != nil {
			*e, err = keys(*e, nil)
		} else {
			*e, err = kind(*e, nil)
		}
		if err != nil {
			return v, err
		}
	}
	return v, nil
}
