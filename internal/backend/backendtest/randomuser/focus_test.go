package randomuser

import "strings"

// Most pairs of a callback and an action are rare if all is left to chance. So each
// seed has a pair in focus: its world has what the pair needs, and the user tries it
// whenever the callback is called.
type focus struct {
	callback string
	action   *action
	makers   []*action // that bring the callback about, or what the action needs
}

// focusOf is the pair of a seed. Neighbours have nothing to do with each other.
func focusOf(seed uint64, sim bool) *focus {
	pairs := possiblePairs(sim)
	p := pairs[seed*7919%uint64(len(pairs))]
	f := &focus{callback: p[0], action: actionNamed(p[1])}
	f.add(p[0])
	for _, name := range madeBy[p[0]] {
		f.add(name)
	}
	for _, name := range suppliers[f.action.need] {
		f.add(name)
	}
	return f
}

func (f *focus) add(name string) {
	if a := actionNamed(name); a != nil {
		f.makers = append(f.makers, a)
	}
}

// madeBy names actions that lead to callbacks of another name.
var madeBy = map[string][]string{
	"Pauser.Paused":             {"Conn.Pause", "Conn.Resume"},
	"Drainer.Drained":           {"Conn.Write"},
	"Ender.Ending":              {"Conn.Close"},
	"FilterOpener":              {"Conn.Use"},
	"Filter.Start":              {"Conn.Use"},
	"Filter.Closed":             {"Conn.Close", "Stage.Remove"},
	"Filter.Outbound":           {"Conn.Write"},
	"Filter.CloseWrite":         {"Conn.CloseWrite", "Conn.Close"},
	"Local.New":                 {"Local.Get"},
	"Trace.FilterReady":         {"Conn.Use"},
	"Trace.FilterFailed":        {"Stage.Fail"},
	"PacketHandler.Packet":      {"PacketConn.WriteTo"},
	"PacketHandler.Closed":      {"PacketConn.Close", "Engine.ListenPacket"},
	"PacketFailer.PacketFailed": {"PacketConn.WriteTo", "PacketRef.Close", "Engine.DialPacket"},
}

// suppliers name actions that bring about what others need.
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
	switch kind {
	case "filtered":
		return strings.HasPrefix(f.callback, "Filter") || strings.HasPrefix(f.callback, "Trace.Filter") || f.action.need == aStage
	case "co":
		return f.callback == "Coroutine" || f.callback == "Co.Go" || f.callback == "Await" || f.action.need == aCo
	default:
		return strings.HasPrefix(f.callback, "Packet") || f.action.need == aPacket || f.action.need == aSocket
	}
}

// impossible tells why a callback cannot call an action; "": it can.
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

// possiblePairs lists what can be reached, always in the same order.
func possiblePairs(sim bool) (pairs [][2]string) {
	for _, c := range callbacks {
		for i := range actions {
			if impossible(c, &actions[i], sim) == "" {
				pairs = append(pairs, [2]string{c, actions[i].name})
			}
		}
	}
	return pairs
}
