package conf

import "strings"

// Options reads the arguments of redis-server. The first one may be the name of a file; the rest
// become lines that have the same effect behind the file's: "--port 7000 --bind a b" is a line for
// each name. An argument behind a name is its value, also if it begins with --, as long as the
// name has none; a name and its values may be one argument, "--port 7000". Without a value, save
// gets an empty one. stdin reports that the first or the last argument is "-": the standard input
// has more lines, to be read between the file and these.
func Options(args []string) (file, text string, stdin bool) {
	var b strings.Builder
	valued := true // the last name has a value
	for i, arg := range args {
		last := i == len(args)-1
		switch {
		case i == 0 && !strings.HasPrefix(arg, "-"):
			file = arg
			continue
		case arg == "-" && (i == 0 || last):
			stdin = true
			continue
		case !valued || !strings.HasPrefix(arg, "--"):
			b.WriteString(Quote(arg) + " ")
			valued = true
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(arg[2:] + " ")
		words, _ := Split(arg)
		valued = len(words) != 1
		next := !last && strings.HasPrefix(args[i+1], "--")
		if !valued && strings.EqualFold(arg, "--save") && (last || next) {
			b.WriteString(`""`)
			valued = true
		}
	}
	return file, b.String(), stdin
}
