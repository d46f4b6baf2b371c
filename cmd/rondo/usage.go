package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// usageError is a mistake in the command line. The program has done nothing
// yet.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// joinNegative joins each flag with the negative number after it, which the
// parser would take for a flag.
func joinNegative(args []string) (joined []string) {
	for i, arg := range args {
		negative := len(arg) > 1 && arg[0] == '-' && '0' <= arg[1] && arg[1] <= '9'
		if last := len(joined) - 1; negative && i > 0 && strings.HasPrefix(args[i-1], "--") && args[i-1] != "--" && !strings.Contains(args[i-1], "=") {
			joined[last] += "=" + arg
			continue
		}
		joined = append(joined, arg)
	}
	return joined
}

// misused returns the parser's error, in better words if a flag has no value.
func misused(err error) error {
	text := err.Error()
	flag, _, _ := strings.Cut(text, ": ")
	if strings.Contains(text, ": missing value, expecting ") || strings.Contains(text, ` value but got "EOL"`) {
		return usagef("%s: the value is missing", flag)
	}
	return usageError{err}
}

// checkNumber returns an error if a flag's number is out of range.
func checkNumber[T int | int64 | size](flag string, v, least, most T) error {
	switch {
	case v < least:
		return usagef("%s is %d: want %d or more", flag, v, least)
	case v > most:
		return usagef("%s is %d: want %d or less", flag, v, most)
	}
	return nil
}

// helpOf returns a flag's help with the default at its end.
func helpOf(v *kong.Value) string {
	help := kong.DefaultHelpValueFormatter(v)
	switch {
	case v.Flag == nil, v.Name == "help", v.Name == "version", strings.Contains(help, "Default: "):
		return help
	case v.IsBool() && v.Default == "true":
		return help + " Default: yes."
	case v.IsBool():
		return help + " Default: no."
	case v.Default == "":
		return help + " Default: none."
	}
	return help + " Default: " + v.Default + "."
}
