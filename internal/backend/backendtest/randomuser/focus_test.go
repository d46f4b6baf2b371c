package randomuser

import (
	"slices"
	"strings"
)

// A focus is a callback and some actions that a seed prefers. With chance alone most
// pairs of a callback and an action would be rare. The seed's world has everything that
// the actions need, and the user tries them whenever the callback is called, the ones
// not yet done first.
type focus struct {
	callback string
	actions  []*action
	makers   []*action // lead to the callback, or to what the actions need
}

// inFocus is the number of actions in a seed's focus. With 2,000 seeds, each pair is in
// the focus of at least two.
const inFocus = 12

// rare are callbacks that worlds seldom reach, with the extra seeds that they get.
var rare = map[string]int{
	"EOFHandler.EOF": 3, "DrainHandler.Drained": 6, "Pauser.Paused": 6, "Piper.Piped": 6, "Filter.EOF": 4, "Conn.Detach": 6,
	"Broadcast": 6, "Loop.OnClose": 2, "Co.Go": 4, "Trace.FilterFailed": 2, "PacketErrorHandler.PacketFailed": 5,
	"Trace.BeforeWrite": 1, "Trace.AfterWrite": 1, "LoopLocal.New": 1,
}

// focus returns the focus of a script.
func (s script) focus() *focus {
	sim := s.Backend == "sim"
	if len(s.Focus) == 0 {
		return focusOf(s.Seed, sim)
	}
	f := &focus{callback: s.Focus[0]}
	for _, name := range s.Focus[1:] {
		f.actions = append(f.actions, actionNamed(name))
	}
	f.makes()
	return f
}

// focusOf returns the focus of a seed.
func focusOf(seed uint64, sim bool) *focus {
	var all []string
	for _, c := range callbacks {
		if impossible(c, &actions[0], sim) == "" {
			all = append(all, c)
			all = append(all, slices.Repeat([]string{c}, rare[c])...)
		}
	}
	f := &focus{callback: all[seed%uint64(len(all))]}
	var possible []*action
	for i := range actions {
		if impossible(f.callback, &actions[i], sim) == "" {
			possible = append(possible, &actions[i])
		}
	}
	n := uint64(len(possible))
	share := uint64(0) // which of the callback's seeds this one is
	for i := range seed % uint64(len(all)) {
		if all[i] == f.callback {
			share++
		}
	}
	turn := seed/uint64(len(all))*uint64(1+rare[f.callback]) + share
	for i := range uint64(inFocus) {
		f.actions = append(f.actions, possible[(turn*inFocus+i)*spread(n)%n])
	}
	f.makes()
	return f
}

// makes finds actions that lead to the focus.
func (f *focus) makes() {
	f.add(f.callback)
	for _, name := range madeBy[f.callback] {
		f.add(name)
	}
	for _, a := range f.actions {
		for _, name := range suppliers[a.need] {
			f.add(name)
		}
	}
}

// spread returns a step that visits all of n, in distant positions.
func spread(n uint64) uint64 {
	for _, step := range []uint64{37, 41, 43} {
		if n%step != 0 {
			return step
		}
	}
	return 1
}

func (f *focus) add(name string) {
	if a := actionNamed(name); a != nil {
		f.makers = append(f.makers, a)
	}
}

// madeBy lists actions that lead to callbacks of another name.
var madeBy = map[string][]string{
	"Pauser.Paused":                   {"Conn.Pause", "Conn.Resume"},
	"Piper.Piped":                     {"IO.Pipe"},
	"DrainHandler.Drained":            {"Conn.Write"},
	"Broadcast":                       {"Conn.Write", "Conn.SetLimits"},
	"Ender.Ending":                    {"Conn.Close"},
	"ShutdownHandler.Shutdown":        {"Engine.Shutdown"},
	"FilterOpenFunc":                  {"Conn.Use"},
	"Filter.Start":                    {"Conn.Use"},
	"Filter.Closed":                   {"Conn.Close", "FilterPort.Remove"},
	"Filter.Outbound":                 {"Conn.Write"},
	"Filter.CloseWrite":               {"Conn.CloseWrite", "Conn.Close"},
	"LoopLocal.New":                   {"LoopLocal.Get"},
	"Trace.FilterReady":               {"Conn.Use"},
	"Trace.FilterFailed":              {"FilterPort.Fail"},
	"PacketHandler.Packet":            {"PacketConn.WriteTo"},
	"PacketHandler.Closed":            {"PacketConn.Close", "Engine.ListenPacket"},
	"PacketErrorHandler.PacketFailed": {"PacketConn.WriteTo", "PacketRef.Close", "Engine.DialPacket"},
}

// suppliers lists actions that create what other actions need.
var suppliers = map[need][]string{
	aPoll: {"Loop.Poll"}, aTimer: {"Loop.AfterFunc", "Loop.Every"}, aDialing: {"Loop.Dial"},
	aPacket: {"Engine.ListenPacket"}, aStage: {"Conn.Use"},
}

func actionNamed(name string) *action {
	for i := range actions {
		if actions[i].name == name {
			return &actions[i]
		}
	}
	return nil
}

// wants reports whether a world needs a listener of some kind for the focus.
func (f *focus) wants(kind string) bool {
	if f == nil {
		return false
	}
	needs := func(which ...need) bool {
		return slices.ContainsFunc(f.actions, func(a *action) bool { return slices.Contains(which, a.need) })
	}
	switch kind {
	case "filtered":
		return strings.HasPrefix(f.callback, "Filter") || strings.HasPrefix(f.callback, "Trace.Filter") || needs(aStage)
	case "co":
		return f.callback == "Coroutine" || f.callback == "Co.Go" || f.callback == "Await"
	case "drains":
		return f.callback == "DrainHandler.Drained"
	case "ends":
		return f.callback == "EOFHandler.EOF" || f.callback == "Filter.EOF"
	case "hooks":
		return f.callback == "Trace.BeforeWrite" || f.callback == "Trace.AfterWrite"
	default:
		return strings.HasPrefix(f.callback, "Packet") || needs(aPacket, aSocket)
	}
}

// impossible returns why a callback cannot call an action, or "" if it can.
func impossible(callback string, a *action, sim bool) string {
	noLoop := callback == "goroutine" || callback == "Await"
	inCoroutine := callback == "Coroutine" || callback == "Co.Go"
	switch {
	case sim && (callback == "Conn.Control" || callback == "PacketConn.Control" || callback == "Loop.Poll"):
		return "the simulator has no descriptors"
	case sim && a.need == aPoll:
		return "the simulator has no descriptors to poll"
	case noLoop && a.need != nothing && a.need != anyWhere && a.need != aListener && a.need != aSocket:
		return "what is a loop's must not be used elsewhere; Engine.Check finds it"
	case !inCoroutine && a.need == aCo:
		return "it is for coroutines"
	}
	return ""
}
