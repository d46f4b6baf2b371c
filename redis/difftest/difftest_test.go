package difftest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "record the replies of redis-server 7.0 in testdata")

// TestReference checks that redis-server answers as was recorded, where there
// is one of the right version; or records its answers. Without one there is
// nothing to compare the recordings with, but that they are all there.
func TestReference(t *testing.T) {
	path, reason := findReference()
	if *update && path == "" {
		t.Fatalf("-update: %s", reason)
	}
	for name, f := range scriptFiles(t) {
		t.Run(name, func(t *testing.T) {
			f.checkRecorded(t)
			if path == "" {
				t.Logf("not compared with redis-server: %s", reason)
				return
			}
			f.compare(t, startReference(t, path, f.password), *update)
			if !*update {
				return
			}
			if err := os.WriteFile(f.path, f.text(), 0o644); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRondo checks that package redis answers as redis-server did: with one
// loop, with connections on other loops than the keys, and where a write never
// goes at once.
func TestRondo(t *testing.T) {
	engines := []struct {
		name, backend string
		loops         int
	}{{"1 loop", "", 1}, {"3 loops", "", 3}, {"std", "std", 1}}
	for name, f := range scriptFiles(t) {
		for _, e := range engines {
			t.Run(name+"/"+e.name, func(t *testing.T) {
				t.Parallel()
				f.compare(t, startRondo(t, e.backend, e.loops, f.password), false)
			})
		}
	}
}

// TestFiles checks that what is read from a file is all that is in it: written
// again, it is the same.
func TestFiles(t *testing.T) {
	for _, f := range scriptFiles(t) {
		want, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.text(); !bytes.Equal(got, want) {
			t.Errorf("%s: %s", f.path, difference(got, want, nil))
		}
	}
}

// checkRecorded checks that no step waits for a reply that was not recorded.
func (f *file) checkRecorded(t *testing.T) {
	for _, script := range f.scripts {
		for _, step := range script.steps {
			if step.expect == oneReply && step.reply == nil && !*update {
				t.Errorf("%s: %s: %s: no reply recorded; run the test with -update", f.path, script.name, f.lines[step.line])
			}
		}
	}
}

// compare plays the file's scripts to a server and compares its replies with
// those recorded, or records them.
func (f *file) compare(t *testing.T, s *server, record bool) {
	for _, script := range f.scripts {
		replies, err := s.run(script)
		for i, reply := range replies {
			step := script.steps[i]
			got, err := normalize(step.normal, reply)
			if record {
				step.reply = got
			}
			if err != nil || !bytes.Equal(got, step.reply) {
				t.Errorf("%s: %s: %s: %s", f.path, script.name, f.lines[step.line], difference(got, step.reply, err))
			}
		}
		if err != nil {
			at := "at the end"
			if len(replies) < len(script.steps) {
				at = f.lines[script.steps[len(replies)].line]
			}
			t.Errorf("%s: %s: %s: %v", f.path, script.name, at, err)
		}
	}
}

// difference tells where two replies part.
func difference(got, want []byte, err error) string {
	if err != nil {
		return err.Error()
	}
	a, b := quoteReply(got), quoteReply(want)
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	const enough = 12
	from := max(0, same-3)
	a, b = a[from:min(len(a), same+enough)], b[from:min(len(b), same+enough)]
	return fmt.Sprintf("from line %d of the reply\ngot:\n%s\nwant:\n%s", from+1, strings.Join(a, "\n"), strings.Join(b, "\n"))
}
