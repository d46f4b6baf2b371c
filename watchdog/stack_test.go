package watchdog

import (
	"strings"
	"testing"
)

// The stacks of loop 5, which runs coroutine 9, and of others. Goroutine 7 has ended.
const (
	loop5 = `goroutine 5 [coroutine, 2 minutes]:
iter.Pull[...].func2()
	/go/src/iter/iter.go:1
github.com/rondo-go/rondo/coro.(*scheduler).run(0x1)
	/rondo/coro/switch.go:1
created by github.com/rondo-go/rondo.(*Engine).Start in goroutine 1
	/rondo/engine.go:1`
	ofLoop5 = `goroutine 9 [sleep]:
time.Sleep(0x1)
	/go/src/time.go:1
main.first(...)
	/main.go:9
github.com/rondo-go/rondo/coro.(*Co).run(0x1, 0x2)
	/rondo/coro/switch.go:2
created by iter.Pull[...] in goroutine 5
	/go/src/iter/iter.go:2`
	ofLoop6 = `goroutine 10 [running]:
main.second(...)
	/main.go:10
created by iter.Pull[...] in goroutine 6
	/go/src/iter/iter.go:2`
	ofNobody = `goroutine 11 [chan receive]:
main.third(...)
	/main.go:11
created by iter.Pull[...] in goroutine 7
	/go/src/iter/iter.go:2`
	loop6 = `goroutine 6 [coroutine]:
main.fourth(...)
	/main.go:12`
)

// TestFind: a loop that runs a coroutine is kept by that one, also if another coroutine had begun
// it that has ended. If that is not sure, no function is named.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		stacks []string
		want   string // the function
		state  string
	}{
		{[]string{loop5, ofLoop5, ofLoop6, loop6}, "main.first", "sleep"},
		{[]string{loop5, loop6, ofLoop6, ofNobody}, "main.third", "chan receive"},
		{[]string{loop5, ofLoop6, loop6}, "", ""},
		{[]string{loop5, ofNobody, strings.Replace(ofNobody, "11", "12", 1), loop6}, "", ""},
		{[]string{loop6}, "", ""},
	} {
		all := []byte(strings.Join(c.stacks, "\n\n") + "\n")
		got := find(all, []byte("goroutine 5 "))
		if f, _, _ := got.place(); f != c.want || got.state != c.state || got.unsure != (c.want == "") || got.waits() && got.unsure {
			t.Errorf("found %q, state %q, unsure %t; want %q\n%s", f, got.state, got.unsure, c.want, got.text)
		}
		if got.unsure && len(c.stacks) > 1 && !strings.Contains(string(got.text), loop5) {
			t.Errorf("the stack of the loop is missing\n%s", got.text)
		}
	}
}

// TestGuess: a loop's goroutine that no profile shows as such is not named, but shown if it may
// be there.
func TestGuess(t *testing.T) {
	const (
		other = "goroutine profile: total 3\n1 @ 0x1 0x2\n#\t0x1\tmain.other+0x45\t/main.go:9\n"
		loop  = "\n1 @ 0x1 0x2\n#\t0x1\tmain.first+0x45\t/main.go:9\n#\t0x2\tgithub.com/rondo-go/rondo.(*Loop).work+0x1\t/loop.go:1\n"
	)
	cut := "\n1 @" + strings.Repeat(" 0x3", maxProfiled) + "\n#\t0x3\tmain.deep+0x45\t/main.go:10\n"
	for _, c := range []struct{ profile, want, text string }{
		{other, "", "not found"},
		{other + loop, "main.first", "main.first"},
		{other + cut, "main.deep", "main.deep"},
		{other + loop + cut, "", "one of these 2"},
	} {
		got := guess(c.profile)
		if f, _, _ := got.place(); f != c.want || !strings.Contains(string(got.text), c.text) || got.state != "" {
			t.Errorf("found %q, state %q, unsure %t; want %q\n%s", f, got.state, got.unsure, c.want, got.text)
		}
	}
}

// TestStateOf: the state is what a goroutine does, without what else the line says.
func TestStateOf(t *testing.T) {
	for line, want := range map[string]string{
		"goroutine 5 [running]:": "running",
		"goroutine 5 gp=0xc000 m=0 mp=0x1 [chan receive (nil chan), 2 minutes, locked to thread]:": "chan receive (nil chan)",
		`goroutine 5 [sleep labels:{"path": "/a]:, b"}]:`:                                          "sleep",
	} {
		if got := stateOf([]byte(line + "\nmain.f()")); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
}
