//go:build !unix

package pick

var builtin = []entry{portable}
