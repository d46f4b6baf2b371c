package script

import (
	"errors"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// A script is changed before it is compiled, so that the engine's functions take the place of
// what the virtual machine does itself otherwise:
//
//	a .. b .. c   becomes  concat(a, b, c)   numbers become text as in C, and memory is bounded
//	t[k] = v      becomes  t[index(k)] = v   an index far behind the end takes memory
//
// The functions are upvalues, whose names no script can write.
const (
	concatName = "\x00concat"
	indexName  = "\x00index"
)

// maxSyntax bounds how deep a script nests.
const maxSyntax = 2000

var errSyntaxLevels = errors.New("chunk has too many syntax levels")

// rewriter changes a script.
type rewriter struct {
	depth  int
	nested int  // functions around
	varArg bool // the script itself uses its arguments: ...
}

// descend counts a level. It panics with errSyntaxLevels if there are too many.
func (r *rewriter) descend() {
	if r.depth++; r.depth > maxSyntax {
		panic(errSyntaxLevels)
	}
}

func (r *rewriter) stmts(list []ast.Stmt) {
	r.descend()
	for _, s := range list {
		r.stmt(s)
	}
	r.depth--
}

func (r *rewriter) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		for i, x := range s.Lhs {
			if get, ok := x.(*ast.AttrGetExpr); ok {
				get.Object = r.expr(get.Object)
				get.Key = r.index(r.expr(get.Key))
			} else {
				s.Lhs[i] = r.expr(x)
			}
		}
		r.exprs(s.Rhs)
	case *ast.LocalAssignStmt:
		r.exprs(s.Exprs)
	case *ast.FuncCallStmt:
		s.Expr = r.expr(s.Expr)
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
		s.Init, s.Limit = r.expr(s.Init), r.expr(s.Limit)
		if s.Step != nil {
			s.Step = r.expr(s.Step)
		}
		r.stmts(s.Stmts)
	case *ast.GenericForStmt:
		r.exprs(s.Exprs)
		r.stmts(s.Stmts)
	case *ast.FuncDefStmt:
		if s.Name.Func != nil { // a.b.c: as deep as an expression
			s.Name.Func = r.expr(s.Name.Func)
		}
		if s.Name.Receiver != nil {
			s.Name.Receiver = r.expr(s.Name.Receiver)
		}
		r.function(s.Func)
	case *ast.ReturnStmt:
		r.exprs(s.Exprs)
	}
}

func (r *rewriter) exprs(list []ast.Expr) {
	for i, x := range list {
		list[i] = r.expr(x)
	}
}

func (r *rewriter) function(f *ast.FunctionExpr) {
	r.nested++
	r.stmts(f.Stmts)
	r.nested--
}

func (r *rewriter) expr(x ast.Expr) ast.Expr {
	r.descend()
	defer func() { r.depth-- }()
	switch x := x.(type) {
	case *ast.Comma3Expr:
		r.varArg = r.varArg || r.nested == 0
	case *ast.AttrGetExpr:
		x.Object, x.Key = r.expr(x.Object), r.expr(x.Key)
	case *ast.TableExpr:
		for _, f := range x.Fields {
			if f.Key != nil {
				f.Key = r.index(r.expr(f.Key))
			}
			f.Value = r.expr(f.Value)
		}
	case *ast.FuncCallExpr:
		if x.Func != nil {
			x.Func = r.expr(x.Func)
		}
		if x.Receiver != nil {
			x.Receiver = r.expr(x.Receiver)
		}
		r.exprs(x.Args)
	case *ast.LogicalOpExpr:
		x.Lhs, x.Rhs = r.expr(x.Lhs), r.expr(x.Rhs)
	case *ast.RelationalOpExpr:
		x.Lhs, x.Rhs = r.expr(x.Lhs), r.expr(x.Rhs)
	case *ast.ArithmeticOpExpr:
		x.Lhs, x.Rhs = r.expr(x.Lhs), r.expr(x.Rhs)
	case *ast.UnaryMinusOpExpr:
		x.Expr = r.expr(x.Expr)
	case *ast.UnaryNotOpExpr:
		x.Expr = r.expr(x.Expr)
	case *ast.UnaryLenOpExpr:
		x.Expr = r.expr(x.Expr)
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

// index makes a call of an index that may be large.
func (r *rewriter) index(k ast.Expr) ast.Expr {
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
	return call(indexName, k, single(k))
}

// call makes a call with one result, on the line of another expression.
func call(name string, at ast.Expr, args ...ast.Expr) ast.Expr {
	f := &ast.IdentExpr{Value: name}
	f.SetLine(at.Line())
	f.SetLastLine(at.LastLine())
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

// wrap makes the chunk of a function that makes the script's function, with the names of the
// engine's functions as its arguments.
func (r *rewriter) wrap(script []ast.Stmt) []ast.Stmt {
	at := func(n ast.PositionHolder) {
		n.SetLine(1)
		n.SetLastLine(1)
	}
	names := &ast.LocalAssignStmt{Names: []string{concatName, indexName}, Exprs: []ast.Expr{&ast.Comma3Expr{}}}
	f := &ast.FunctionExpr{ParList: &ast.ParList{HasVargs: r.varArg}, Stmts: script}
	ret := &ast.ReturnStmt{Exprs: []ast.Expr{f}}
	for _, n := range []ast.PositionHolder{names, names.Exprs[0], f, ret} {
		at(n)
	}
	if n := len(script); n > 0 {
		f.SetLastLine(max(1, script[n-1].LastLine(), script[n-1].Line()))
	}
	return []ast.Stmt{names, ret}
}
