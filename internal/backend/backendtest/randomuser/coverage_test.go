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

// notTried are exported functions and methods that are no actions of the user's, and why.
var notTried = map[string]string{
	"Co.Fire":               "is the timers'",
	"Dialing.Fire":          "is the timers'",
	"PacketConn.Fire":       "is the timers'",
	"PacketConn.Complete":   "is the backends'",
	"Poll.Complete":         "is the backends'",
	"HandlerFunc.Data":      "calls the function",
	"HandlerFunc.Closed":    "does nothing",
	"PacketHandlerFunc.*":   "calls the function, or does nothing",
	"PassThrough.*":         "is called by the engine",
	"PanicError.*":          "is an error",
	"ParseAddress":          "touches nothing",
	"Serve":                 "makes an engine, which is Engine.Listen, and waits for ever",
	"ServePackets":          "likewise, of Engine.ListenPacket",
	"Coroutine":             "makes an Opener: listeners are served with it",
	"Filtered":              "likewise",
	"FilteredDial":          "likewise",
	"Unread":                "makes a net.Conn, as Detach does",
	"Engine.AttachListener": "is Engine.Listen, but for the socket",
}

// notCalled are functions that the engine calls and that are no callbacks of the user's.
var notCalled = map[string]string{
	"Resolver.LookupNetIP":  "runs on a goroutine of its own, and knows nothing of loops",
	"Direct.Send":           "is the engine's",
	"Direct.Recv":           "is the engine's",
	"Engine.Listen":         "its function is an Opener",
	"Engine.AttachListener": "its function is an Opener",
	"Engine.Dial":           "its function is an Opener",
	"Engine.Attach":         "its function is an Opener",
	"Engine.Take":           "its function is an Opener",
	"Loop.Attach":           "its function is an Opener",
	"Loop.AttachNow":        "its function is an Opener",
	"Conn.Move":             "its function is an Opener",
	"Conn.Use":              "its functions are an Opener and FilterOpeners",
	"Filtered":              "its functions are an Opener and FilterOpeners",
	"FilteredDial":          "its functions are Loop.Dial's and FilterOpeners",
	"Serve":                 "its function is an Opener",
	"HandlerFunc":           "is Handler.Data",
	"PacketHandlerFunc":     "is PacketHandler.Packet",
}

// callbacks are where the user's code is called: all the kinds of sites.
var callbacks = []string{
	"Handler.Data", "Handler.Closed", "EOFer.EOF", "Drainer.Drained", "Pauser.Paused", "Ender.Ending",
	"Opener", "FilterOpener",
	"Filter.Start", "Filter.Inbound", "Filter.Outbound", "Filter.EOF", "Filter.CloseWrite", "Filter.Closed",
	"Conn.WriteOwned", "Conn.Control", "Conn.Detach",
	"Loop.Post", "Loop.Defer", "Loop.Deliver", "Loop.AfterFunc", "Loop.Every", "Loop.AtEnd", "Loop.Dial", "Loop.Poll",
	"Local.New", "Ref.Do", "Coroutine", "Co.Go", "Await",
	"Trace.Accepted", "Trace.BeforeWrite", "Trace.AfterWrite", "Trace.FilterReady", "Trace.FilterFailed", "Trace.Turn",
	"PacketHandler.Packet", "PacketHandler.Closed", "PacketFailer.PacketFailed", "PacketRef.Do", "PacketConn.Control",
	"goroutine",
}

// rondoTypes is the exported API of the root package.
func rondoTypes(t *testing.T) *types.Package {
	t.Helper()
	const path = "github.com/rondo-go/rondo"
	list, err := exec.Command("go", "list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}", path).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files := make(map[string]string)
	for line := range strings.Lines(string(list)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[name] = file
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	pkg, err := imp.Import(path)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

// api lists what a user can call, and where a user can be called.
func api(pkg *types.Package) (methods, calls []string) {
	takes := func(name string, sig *types.Signature) {
		for i := range sig.Params().Len() {
			p := sig.Params().At(i).Type()
			if s, ok := p.Underlying().(*types.Slice); ok && sig.Variadic() {
				p = s.Elem()
			}
			if _, ok := p.Underlying().(*types.Signature); ok {
				calls = append(calls, name)
				return
			}
		}
	}
	for _, name := range pkg.Scope().Names() {
		o := pkg.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o := o.(type) {
		case *types.Func:
			methods = append(methods, name)
			takes(name, o.Signature())
		case *types.TypeName:
			named, ok := o.Type().(*types.Named)
			if !ok {
				continue
			}
			switch u := named.Underlying().(type) {
			case *types.Interface:
				for m := range u.Methods() {
					calls = append(calls, name+"."+m.Name())
				}
				continue
			case *types.Signature:
				calls = append(calls, name)
			case *types.Struct:
				for f := range u.Fields() {
					if _, ok := f.Type().Underlying().(*types.Signature); ok && f.Exported() {
						calls = append(calls, name+"."+f.Name())
					}
				}
			}
			for m := range named.Methods() {
				if m.Exported() {
					methods = append(methods, name+"."+m.Name())
					takes(name+"."+m.Name(), m.Signature())
				}
			}
		}
	}
	return methods, calls
}

// TestNothingIsLeftOut compares the user's actions and callbacks with the API.
func TestNothingIsLeftOut(t *testing.T) {
	methods, calls := api(rondoTypes(t))
	if len(methods) < 100 || len(calls) < 30 {
		t.Fatalf("there are only %d methods and %d callbacks", len(methods), len(calls))
	}
	known := make(map[string]bool)
	for _, a := range actions {
		known[a.name] = true
	}
	for _, m := range methods {
		typ, _, _ := strings.Cut(m, ".")
		if !known[m] && notTried[m] == "" && notTried[typ+".*"] == "" {
			t.Errorf("%s is no action of the random user: add one, or say in notTried why not", m)
		}
	}
	for _, c := range calls {
		if !slices.Contains(callbacks, c) && notCalled[c] == "" {
			t.Errorf("%s calls the user, and the random user does not know: add it to callbacks and a site, or say in notCalled why not", c)
		}
	}
	for m := range notTried {
		if known[m] {
			t.Errorf("%s is an action, and in notTried", m)
		}
	}
}
