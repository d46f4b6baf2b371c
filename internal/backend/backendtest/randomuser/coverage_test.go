package randomuser

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// notTried are the exported functions and methods that are not actions of the user, and
// the reasons.
var notTried = map[string]string{
	"Listener.Files":        "is for another process, and no loop may call it; package proxy tests it",
	"Listener.KeepFile":     "likewise",
	"Listener.IsStill":      "likewise; package upgrade tests it",
	"Packets.*":             "is for another process, and no loop may call it; package upgrade tests it",
	"Loop.AttachPacket":     "likewise",
	"HandlerFunc.Data":      "calls the function",
	"HandlerFunc.Closed":    "does nothing",
	"PacketHandlerFunc.*":   "calls the function, or does nothing",
	"PassThrough.*":         "is called by the engine",
	"PanicError.*":          "is an error",
	"ParseAddress":          "touches nothing",
	"Serve":                 "makes an engine, which is Engine.Listen, and waits for ever",
	"ServePackets":          "likewise, of Engine.ListenPacket",
	"coro.Handler":          "makes an Opener: listeners are served with it",
	"coro.AwaitOn":          "is coro.Await, but for who starts the goroutine",
	"Filtered":              "likewise",
	"FilteredDial":          "likewise",
	"PrefixConn":            "makes a net.Conn, as Detach does",
	"Engine.AttachListener": "is Engine.Listen, but for the socket",

	// In package bridge.
	"bridge.EndsInput":    "touches nothing",
	"Loop.SetGuest":       "is rtls's, whose handshakes call it",
	"Loop.Check":          "is in every method that belongs to a loop",
	"Loop.HandedOut":      "is coroutines', which call it",
	"Loop.Time":           "likewise",
	"Loop.In":             "likewise",
	"Loop.At":             "likewise",
	"Loop.Timers":         "likewise",
	"Loop.Buffers":        "likewise",
	"Loop.Log":            "likewise",
	"Loop.Panicked":       "likewise",
	"Loop.ExitEnded":      "likewise",
	"Served.*":            "likewise",
	"Loop.Depart":         "is what Passing.Rest's function calls",
	"Passing.OutputEnded": "is called for connections that Loop.Depart has given, and that come back",
	"Running.*":           "likewise",
	"Watching.Marked":     "is a goroutine's that looks from outside, as package watchdog does",
	"Watching.TraceName":  "likewise",
	"Watching.Ended":      "likewise",
	"Measuring.Tally":     "likewise, as package loopstats does",
	"Measuring.Measured":  "likewise",
	"Direct.*":            "is a goroutine's that knows that nothing is under way, as package proactor does",
	"IO.Failed":           "tells of Direct's errors",
	"IO.Watched":          "changes nothing",
	"IO.SendPiped":        "puts bytes of one stream into another: relay's random tests try it",
}

// notCalled are functions that the engine calls and that are not callbacks of the user.
var notCalled = map[string]string{
	"Engine.Refuse":         "is called with connections that are too many, of which these worlds have none: laws try it",
	"Resolver.LookupNetIP":  "runs on a goroutine of its own, and knows nothing of loops",
	"Engine.Listen":         "its function is an OpenFunc",
	"Engine.AttachListener": "its function is an OpenFunc",
	"Engine.Dial":           "its function is an OpenFunc",
	"Engine.Attach":         "its function is an OpenFunc",
	"Engine.Adopt":          "its function is an OpenFunc",
	"Loop.Attach":           "its function is an OpenFunc",
	"Conn.Move":             "its function is an OpenFunc",
	"Conn.Use":              "its functions are an OpenFunc and FilterOpenFuncs",
	"Filtered":              "its functions are an OpenFunc and FilterOpenFuncs",
	"FilteredDial":          "its functions are Loop.Dial's and FilterOpenFuncs",
	"Serve":                 "its function is an OpenFunc",
	"HandlerFunc":           "is Handler.Data",
	"PacketHandlerFunc":     "is PacketHandler.Packet",

	"coro.Handler":     "its function is the site Coroutine",
	"coro.Await":       "its function is the site Await",
	"coro.AwaitOn":     "likewise",
	"RunQueue.*":       "is a coroutine's site",
	"Keeper.*":         "calls nothing of the user's",
	"Reader.*":         "likewise",
	"Replacer.*":       "likewise",
	"Passer.*":         "is asked by package upgrade alone",
	"Loop.AttachNow":   "its function is an OpenFunc",
	"Loop.AttachSole":  "likewise",
	"Listing.List":     "its function is package admin's, and changes nothing",
	"Running.Handlers": "is for who looks after a loop that stands still",
	"Running.TakeOver": "likewise",
	"Running.Watch":    "likewise",
}

// callbacks are the places where the user's code is called: all kinds of sites.
var callbacks = []string{
	"Handler.Data", "Handler.Closed", "EOFHandler.EOF", "DrainHandler.Drained", "Pauser.Paused", "Piper.Piped", "Ender.Ending", "ShutdownHandler.Shutdown",
	"OpenFunc", "FilterOpenFunc",
	"Filter.Start", "Filter.Inbound", "Filter.Outbound", "Filter.EOF", "Filter.CloseWrite", "Filter.Closed",
	"Conn.WriteOwned", "Conn.SendFile", "Conn.Control", "Conn.Detach", "Passing.Rest",
	"Loop.Post", "Loop.Defer", "Loop.Deliver", "Loop.AfterFunc", "Loop.Every", "Loop.OnClose", "Loop.Dial", "Loop.Poll",
	"LoopLocal.New", "Ref.Do", "Broadcast", "Coroutine", "Co.Go", "Await",
	"Trace.Accepted", "Trace.BeforeWrite", "Trace.AfterWrite", "Trace.FilterReady", "Trace.FilterFailed", "Trace.Turn",
	"PacketHandler.Packet", "PacketHandler.Closed", "PacketErrorHandler.PacketFailed", "PacketRef.Do", "PacketConn.Control",
	"goroutine",
}

// tried are the packages whose API the user calls.
var tried = []string{"", "/coro", "/internal/bridge"}

// typesOf returns the tried packages.
func typesOf(t *testing.T) (pkgs []*types.Package) {
	t.Helper()
	var paths []string
	for _, p := range tried {
		paths = append(paths, "github.com/rondo-go/rondo"+p)
	}
	args := append([]string{"list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}"}, paths...)
	list, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files := make(map[string]string)
	for line := range strings.Lines(string(list)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[name] = file
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	for _, path := range paths {
		pkg, err := imp.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, pkg)
	}
	return pkgs
}

// implemented are the interfaces of package bridge that its users implement: the others
// are theirs to call.
var implemented = []string{"RunQueue", "Pauser", "Piper", "Ender", "Passer", "Keeper", "Reader", "Replacer"}

// An api lists what a user can call, and where a user can be called.
type api struct{ methods, calls []string }

// takes records a function that takes functions of the user.
func (a *api) takes(name string, sig *types.Signature) {
	for i := range sig.Params().Len() {
		p := sig.Params().At(i).Type()
		if s, ok := p.Underlying().(*types.Slice); ok && sig.Variadic() {
			p = s.Elem()
		}
		if _, ok := p.Underlying().(*types.Signature); ok {
			a.calls = append(a.calls, name)
			return
		}
	}
}

// read records the API of a package. Except for the root package, functions get the
// package's name as a prefix.
func (a *api) read(pkg *types.Package) {
	for _, name := range pkg.Scope().Names() {
		o := pkg.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o := o.(type) {
		case *types.Func:
			if pkg.Name() != "rondo" {
				name = pkg.Name() + "." + name
			}
			a.methods = append(a.methods, name)
			a.takes(name, o.Signature())
		case *types.TypeName:
			if named, ok := o.Type().(*types.Named); ok {
				a.readType(name, named)
			}
		}
	}
}

func (a *api) readType(name string, named *types.Named) {
	switch u := named.Underlying().(type) {
	case *types.Interface:
		theirs := named.Obj().Pkg().Name() == "bridge" && !slices.Contains(implemented, name)
		for m := range u.ExplicitMethods() {
			switch method := name + "." + m.Name(); {
			case !m.Exported():
			case theirs:
				a.methods = append(a.methods, method)
				a.takes(method, m.Signature())
			default:
				a.calls = append(a.calls, method)
			}
		}
		return
	case *types.Signature:
		a.calls = append(a.calls, name)
	case *types.Struct:
		for f := range u.Fields() {
			if _, ok := f.Type().Underlying().(*types.Signature); ok && f.Exported() {
				a.calls = append(a.calls, name+"."+f.Name())
			}
		}
	}
	for m := range named.Methods() {
		if m.Exported() {
			a.methods = append(a.methods, name+"."+m.Name())
			a.takes(name+"."+m.Name(), m.Signature())
		}
	}
}

// TestNothingIsLeftOut compares the user's actions and callbacks with the API.
func TestNothingIsLeftOut(t *testing.T) {
	var all api
	for _, pkg := range typesOf(t) {
		all.read(pkg)
	}
	if len(all.methods) < 100 || len(all.calls) < 30 {
		t.Fatalf("there are only %d methods and %d callbacks", len(all.methods), len(all.calls))
	}
	known := make(map[string]bool)
	for _, a := range actions {
		known[a.name] = true
	}
	for _, m := range all.methods {
		typ, _, _ := strings.Cut(m, ".")
		if !known[m] && notTried[m] == "" && notTried[typ+".*"] == "" {
			t.Errorf("%s is no action of the random user: add one, or say in notTried why not", m)
		}
	}
	for _, c := range all.calls {
		typ, _, _ := strings.Cut(c, ".")
		if !slices.Contains(callbacks, c) && notCalled[c] == "" && notCalled[typ+".*"] == "" {
			t.Errorf("%s calls the user, and the random user does not know: add it to callbacks and a site, or say in notCalled why not", c)
		}
	}
	for m := range notTried {
		if known[m] {
			t.Errorf("%s is an action, and in notTried", m)
		}
	}
}
