package script

import (
	"errors"
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// A script is changed before it is compiled, so that the engine's functions take the place of
// what the virtual machine does itself otherwise:
//
//	a .. b .. c   becomes  concat(a, b, c)   numbers become text as in C, and memory is bounded
//	t[k] = v      becomes  t[index(k, t)] = v   an index far behind the end takes memory
//	a % b         becomes  mod(a, b)         it is computed as in C
//	{...}, {f()}  become   {spread(...)}     many values take memory
//
// And what each call of a script does otherwise by looking up globals:
//
//	redis.call(x)       becomes  call(x)     or run(x), if its value is not used: it isn't made then
//	redis.pcall(x)      becomes  pcall(x)    or prun(x)
//	return redis.call(x)  becomes  return last(x), in the script itself: +OK is always the same table
//	KEYS[1], ARGV[1]    are upvalues
//
// All of these are upvalues, whose names no script can write.
const (
	concatName = "\x00concat"
	indexName  = "\x00index"
	modName    = "\x00mod"
	spreadName = "\x00spread"
	argName    = "\x00arg"
	callName   = "\x00call"
	pcallName  = "\x00pcall"
	runName    = "\x00run"
	prunName   = "\x00prun"
	lastName   = "\x00last"
	plastName  = "\x00plast"
	keysName   = "\x00KEYS"
	argvName   = "\x00ARGV"
)

// upvalueNames are in the order of Engine.upvalues.
var upvalueNames = []string{concatName, indexName, modName, spreadName, argName, callName, pcallName, runName, prunName, lastName, plastName, keysName, argvName}

// maxSyntax bounds how deep a script nests.
const maxSyntax = 2000

var errSyntaxLevels = errors.New("chunk has too many syntax levels")

// maxComparisons bounds what the compiler does for a script's constants: it compares each with all
// others of its function, one by one.
const maxComparisons = 200e6

var errConstants = errors.New("chunk has too many constants")

// rewriter changes a script.
type rewriter struct {
	whole   bool // what it returns is the reply
	library bool // KEYS and ARGV are no names
	depth   int
	block   int         // lists of statements around
	inner   []*variadic // the functions around, from the script itself on
	global  names

	comparisons int // that the compiler will make
}

// variadic is what a function does with the arguments that have no names.
type variadic struct {
	dots bool // it uses ...
	arg  bool // it, or a function within, uses the name arg

	constants map[string]bool
}

// descend counts a level. It panics with errSyntaxLevels if there are too many.
func (r *rewriter) descend() {
	if r.depth++; r.depth > maxSyntax {
		panic(errSyntaxLevels)
	}
}

// constant counts a number, a text or a name. It panics with errConstants if there are too many.
func (r *rewriter) constant(text string) {
	f := r.inner[len(r.inner)-1]
	if f.constants == nil {
		f.constants = make(map[string]bool)
	}
	f.constants[text] = true
	if strings.HasPrefix(text, "foreach") { // of the library table: it calls functions by itself
		r.global.nests = true
	}
	if r.comparisons += len(f.constants); r.comparisons > maxComparisons {
		panic(errConstants)
	}
}

func (r *rewriter) stmts(list []ast.Stmt) {
	r.descend()
	r.block++
	for _, s := range list {
		r.stmt(s)
	}
	r.block--
	r.depth--
}

func (r *rewriter) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		for _, x := range s.Lhs {
			if get, ok := x.(*ast.AttrGetExpr); ok {
				get.Object = r.expr(get.Object)
				get.Key = r.index(r.expr(get.Key), get.Object)
			} else {
				r.global.changed(x)
				r.name(x)
			}
		}
		r.exprs(s.Rhs)
	case *ast.LocalAssignStmt:
		r.exprs(s.Exprs)
		r.global.declared(s.Names)
		if r.block == 1 {
			r.global.alias(s)
		}
	case *ast.FuncCallStmt:
		s.Expr = r.expr(s.Expr)
		r.global.use(s.Expr, unused)
	case *ast.DoBlockStmt:
		r.stmts(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = r.expr(s.Condition)
		r.stmts(s.Stmts)
	case *ast.RepeatStmt:
		s.Condition = r.expr(s.Condition)
		r.stmts(s.Stmts)
	case *ast.IfStmt:
		s.Condition = r.expr(s.Condition)
		r.stmts(s.Then)
		r.stmts(s.Else)
	case *ast.NumberForStmt:
		r.global.declared([]string{s.Name})
		s.Init, s.Limit = r.expr(s.Init), r.expr(s.Limit)
		if s.Step != nil {
			s.Step = r.expr(s.Step)
		}
		r.stmts(s.Stmts)
	case *ast.GenericForStmt:
		r.global.declared(s.Names)
		r.exprs(s.Exprs)
		r.stmts(s.Stmts)
	case *ast.FuncDefStmt:
		if _, ok := s.Name.Func.(*ast.IdentExpr); ok {
			r.global.changed(s.Name.Func)
		} else if s.Name.Func != nil { // a.b.c: as deep as an expression
			r.global.opaque = true // a may be KEYS, which then keeps c
			s.Name.Func = r.expr(s.Name.Func)
		}
		if s.Name.Receiver != nil {
			r.global.opaque = true
			s.Name.Receiver = r.expr(s.Name.Receiver)
		}
		r.function(s.Func)
	case *ast.ReturnStmt:
		r.exprs(s.Exprs)
		if r.whole && len(r.inner) == 1 && len(s.Exprs) == 1 {
			r.global.use(s.Exprs[0], returned)
		}
	}
}

func (r *rewriter) exprs(list []ast.Expr) {
	for i, x := range list {
		list[i] = r.expr(x)
	}
}

// function changes a function. The table arg, which Lua makes for one that does not use ..., is
// made by the engine.
func (r *rewriter) function(f *ast.FunctionExpr) {
	v := r.body(f)
	if !v.arg {
		return
	}
	if outer := r.inner[len(r.inner)-1]; !f.ParList.HasVargs {
		outer.arg = true
	}
	if !v.dots && f.ParList.HasVargs {
		local := &ast.LocalAssignStmt{Names: []string{"arg"}, Exprs: []ast.Expr{call(argName, f, &ast.Comma3Expr{})}}
		local.SetLine(f.Line())
		local.SetLastLine(f.Line())
		f.Stmts = append([]ast.Stmt{local}, f.Stmts...)
	}
}

func (r *rewriter) body(f *ast.FunctionExpr) *variadic {
	v := &variadic{}
	r.global.nests = r.global.nests || len(r.inner) > 0
	r.inner = append(r.inner, v)
	r.global.declared(f.ParList.Names)
	r.stmts(f.Stmts)
	r.inner = r.inner[:len(r.inner)-1]
	return v
}

// name notes what the use of a name says of the functions around.
func (r *rewriter) name(x ast.Expr) {
	if id, ok := x.(*ast.IdentExpr); ok && id.Value == "arg" && len(r.inner) > 0 {
		r.inner[len(r.inner)-1].arg = true
	}
}

func (r *rewriter) expr(x ast.Expr) ast.Expr {
	r.descend()
	defer func() { r.depth-- }()
	switch x := x.(type) {
	case *ast.Comma3Expr:
		r.inner[len(r.inner)-1].dots = true
	case *ast.NumberExpr:
		r.constant(x.Value)
	case *ast.StringExpr:
		r.constant(x.Value)
	case *ast.IdentExpr:
		r.constant(x.Value)
		r.name(x)
		r.global.used(x)
	case *ast.AttrGetExpr:
		x.Object, x.Key = r.expr(x.Object), r.expr(x.Key)
		r.global.read(x.Object)
	case *ast.TableExpr:
		for _, f := range x.Fields {
			if f.Key != nil {
				f.Key = r.index(r.expr(f.Key), nil)
			}
			f.Value = r.expr(f.Value)
		}
		spread(x)
	case *ast.FuncCallExpr:
		if x.Func != nil {
			x.Func = r.expr(x.Func)
		}
		if x.Receiver != nil {
			x.Receiver = r.expr(x.Receiver)
		}
		r.exprs(x.Args)
		r.constant(x.Method)
		r.global.called(x)
	case *ast.LogicalOpExpr:
		x.Lhs, x.Rhs = r.expr(x.Lhs), r.expr(x.Rhs)
	case *ast.RelationalOpExpr:
		x.Lhs, x.Rhs = r.expr(x.Lhs), r.expr(x.Rhs)
	case *ast.ArithmeticOpExpr:
		x.Lhs, x.Rhs = r.expr(x.Lhs), r.expr(x.Rhs)
		if x.Operator == "%" {
			return call(modName, x, single(x.Lhs), single(x.Rhs))
		}
	case *ast.UnaryMinusOpExpr:
		x.Expr = r.expr(x.Expr)
	case *ast.UnaryNotOpExpr:
		x.Expr = r.expr(x.Expr)
	case *ast.UnaryLenOpExpr:
		x.Expr = r.expr(x.Expr)
		r.global.read(x.Expr)
	case *ast.FunctionExpr:
		r.function(x)
	case *ast.StringConcatOpExpr:
		return r.concat(x)
	}
	return x
}

// concat makes a call of a concatenation.
func (r *rewriter) concat(x *ast.StringConcatOpExpr) ast.Expr {
	var args []ast.Expr
	var rest ast.Expr = x
	for {
		more, ok := rest.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		args = append(args, r.expr(more.Lhs))
		rest = more.Rhs
	}
	return call(concatName, x, append(args, single(r.expr(rest)))...)
}

// index makes a call of an index of a table, or of a new one, that may be large.
func (r *rewriter) index(k, table ast.Expr) ast.Expr {
	switch k := k.(type) {
	case *ast.StringExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr:
		return k
	case *ast.NumberExpr:
		if n, err := strconv.ParseFloat(k.Value, 64); err == nil && n < 1<<12 {
			return k
		}
	case *ast.ArithmeticOpExpr: // t[#t+1]
		_, isLength := k.Lhs.(*ast.UnaryLenOpExpr)
		if n, ok := k.Rhs.(*ast.NumberExpr); ok && isLength && k.Operator == "+" && n.Value == "1" {
			return k
		}
	}
	if table == nil || !plain(table) {
		return call(indexName, k, single(k))
	}
	return call(indexName, k, single(k), table)
}

// plain reports whether an expression may be evaluated twice: it is a name, or a field of one.
func plain(x ast.Expr) bool {
	for {
		get, ok := x.(*ast.AttrGetExpr)
		if !ok {
			break
		}
		switch get.Key.(type) {
		case *ast.StringExpr, *ast.NumberExpr, *ast.IdentExpr:
		default:
			return false
		}
		x = get.Object
	}
	_, ok := x.(*ast.IdentExpr)
	return ok
}

// spread makes the values that end a table's list those of a call.
func spread(x *ast.TableExpr) {
	if len(x.Fields) == 0 {
		return
	}
	last := x.Fields[len(x.Fields)-1]
	if last.Key != nil {
		return
	}
	switch v := last.Value.(type) {
	case *ast.Comma3Expr:
		if v.AdjustRet {
			return
		}
	case *ast.FuncCallExpr:
		if v.AdjustRet {
			return
		}
	default:
		return
	}
	all := call(spreadName, last.Value, last.Value)
	all.AdjustRet = false
	last.Value = all
}

// call makes a call with one result, on the line of another expression.
func call(name string, at ast.Expr, args ...ast.Expr) *ast.FuncCallExpr {
	f := ident(name, at)
	x := &ast.FuncCallExpr{Func: f, Args: args, AdjustRet: true}
	x.SetLine(at.Line())
	x.SetLastLine(at.LastLine())
	return x
}

// single makes an expression have one value, as an operand has.
func single(x ast.Expr) ast.Expr {
	switch x := x.(type) {
	case *ast.FuncCallExpr:
		x.AdjustRet = true
	case *ast.Comma3Expr:
		x.AdjustRet = true
	}
	return x
}

// ident makes a name, on the line of another expression.
func ident(name string, at ast.Expr) *ast.IdentExpr {
	x := &ast.IdentExpr{Value: name}
	x.SetLine(at.Line())
	x.SetLastLine(at.LastLine())
	return x
}

// script changes a whole script and makes the chunk of a function that makes its function, with
// the engine's upvalues as its arguments.
func (r *rewriter) script(list []ast.Stmt) []ast.Stmt {
	at := func(n ast.PositionHolder) {
		n.SetLine(1)
		n.SetLastLine(1)
	}
	f := &ast.FunctionExpr{ParList: &ast.ParList{}, Stmts: list}
	at(f)
	f.ParList.HasVargs = r.body(f).dots
	r.global.finish(r.library)
	names := &ast.LocalAssignStmt{Names: upvalueNames, Exprs: []ast.Expr{&ast.Comma3Expr{}}}
	ret := &ast.ReturnStmt{Exprs: []ast.Expr{f}}
	for _, n := range []ast.PositionHolder{names, names.Exprs[0], ret} {
		at(n)
	}
	if n := len(list); n > 0 {
		f.SetLastLine(max(1, list[n-1].LastLine(), list[n-1].Line()))
	}
	return []ast.Stmt{names, ret}
}
