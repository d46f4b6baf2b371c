package script

import "github.com/yuin/gopher-lua/ast"

// names are the uses of names in a script that concern redis.call, KEYS and ARGV. If no local
// variable has such a name, its uses need not look up the global.
type names struct {
	locals  map[string]int    // how often a name is declared
	aliases map[string]string // local variables of the script itself with the value redis.call or redis.pcall
	changes map[string]bool   // variables that are assigned to

	calls  []commandCall
	tables []*ast.IdentExpr // KEYS and ARGV
	reads  int              // of tables: those of an element, the length, or by unpack
	opaque bool             // the script can get at KEYS and ARGV by other names
	nests  bool             // calls can nest deep: there are functions, or what calls them by itself
}

// commandCall is a call of redis.call or redis.pcall, maybe by an alias.
type commandCall struct {
	x     *ast.FuncCallExpr
	name  string // "call" or "pcall"
	alias string // "": redis.call
	use   valueUse
}

// valueUse is what a script does with the value of redis.call.
type valueUse uint8

const (
	used     valueUse = iota
	unused            // nothing: the call is a statement
	returned          // it is the script's result
)

func (n *names) declared(list []string) {
	if n.locals == nil {
		n.locals = make(map[string]int)
	}
	for _, name := range list {
		n.locals[name]++
	}
}

// changed notes an assignment to a variable.
func (n *names) changed(x ast.Expr) {
	if id, ok := x.(*ast.IdentExpr); ok {
		if n.changes == nil {
			n.changes = make(map[string]bool)
		}
		n.changes[id.Value] = true
	}
}

// used notes the use of a variable's value.
func (n *names) used(x *ast.IdentExpr) {
	switch x.Value {
	case "KEYS", "ARGV":
		n.tables = append(n.tables, x)
	case "_G", "load", "loadstring":
		n.opaque, n.nests = true, true
	case "setmetatable": // a function of a library may call itself by it
		n.nests = true
	}
}

// read notes an expression of which no more than elements or the length is taken.
func (n *names) read(x ast.Expr) {
	if id, ok := x.(*ast.IdentExpr); ok && (id.Value == "KEYS" || id.Value == "ARGV") {
		n.reads++
	}
}

// commandName returns "call" or "pcall" for redis.call or redis.pcall.
func commandName(x ast.Expr) string {
	for _, name := range []string{"call", "pcall"} {
		if fieldOf(x, "redis", name) {
			return name
		}
	}
	return ""
}

// fieldOf reports whether an expression is a field of a name.
func fieldOf(x ast.Expr, name, field string) bool {
	get, ok := x.(*ast.AttrGetExpr)
	if !ok {
		return false
	}
	object, isName := get.Object.(*ast.IdentExpr)
	key, isText := get.Key.(*ast.StringExpr)
	return isName && isText && object.Value == name && key.Value == field
}

// alias notes a declaration in the script itself, not in a function or block: so the names hold
// for all that follows.
func (n *names) alias(s *ast.LocalAssignStmt) {
	if len(s.Names) != len(s.Exprs) {
		return
	}
	for i, x := range s.Exprs {
		if name := commandName(x); name != "" {
			if n.aliases == nil {
				n.aliases = make(map[string]string)
			}
			n.aliases[s.Names[i]] = name
		}
	}
}

// called notes a call.
func (n *names) called(x *ast.FuncCallExpr) {
	if name := commandName(x.Func); name != "" {
		n.calls = append(n.calls, commandCall{x: x, name: name})
	} else if id, ok := x.Func.(*ast.IdentExpr); ok && n.aliases[id.Value] != "" {
		n.calls = append(n.calls, commandCall{x: x, name: n.aliases[id.Value], alias: id.Value})
	} else if ok && id.Value == "unpack" && len(x.Args) > 0 {
		n.read(x.Args[0])
	}
}

// use notes what becomes of a call's value. It follows called.
func (n *names) use(x ast.Expr, use valueUse) {
	if last := len(n.calls) - 1; last >= 0 && x == ast.Expr(n.calls[last].x) && !n.calls[last].x.AdjustRet {
		n.calls[last].use = use
	}
}

// finish gives the names that the whole script leaves alone those of upvalues.
func (n *names) finish(library bool) {
	for _, c := range n.calls {
		switch {
		case n.locals["redis"] > 0: // also if it is the value of an alias
			continue
		case c.alias != "" && (n.locals[c.alias] != 1 || n.changes[c.alias]):
			continue
		}
		names := [...]string{used: callName, unused: runName, returned: lastName}
		if c.name == "pcall" {
			names = [...]string{used: pcallName, unused: prunName, returned: plastName}
		}
		c.x.Func = ident(names[c.use], c.x.Func)
	}
	for _, x := range n.tables {
		if !library && n.locals[x.Value] == 0 && !n.changes[x.Value] {
			x.Value = "\x00" + x.Value
		}
	}
}

// readsOnly reports whether the script only reads KEYS and ARGV, and keeps neither.
func (n *names) readsOnly() bool {
	return n.reads == len(n.tables) && !n.opaque && n.locals["unpack"] == 0
}
