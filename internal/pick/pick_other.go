//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package pick

var builtin = []entry{portable}

const best = "std"
