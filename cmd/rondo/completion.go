package main

import (
	"bufio"
	"embed"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/rondo-go/rondo/internal/pick"
)

// completionCommand prints a script for a shell. The script asks the program for candidates, so
// that they fit the program's version, and all shells offer the same ones.
type completionCommand struct {
	Shell string `arg:"" help:"The shell: bash, zsh or fish." enum:"bash,zsh,fish"`
}

// Help is the end of "rondo completion --help".
func (*completionCommand) Help() string {
	return `The script asks the program for what may come next: commands, flags, and the values of flags.

Examples:

  source <(rondo completion bash)
      Complete in this bash. In ~/.bashrc: in every one.

  rondo completion bash > /etc/bash_completion.d/rondo
      Complete in all users' bash, if they have the package bash-completion.

  rondo completion zsh > /usr/local/share/zsh/site-functions/_rondo
      Complete in zsh, or in a directory of your own that is in fpath.

  rondo completion fish > ~/.config/fish/completions/rondo.fish
      Complete in fish.`
}

//go:embed completions
var completionScripts embed.FS

// Run prints the script.
func (c *completionCommand) Run() error {
	script, err := completionScripts.ReadFile("completions/rondo." + c.Shell)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(script)
	return err
}

// completer is the first argument of the scripts' questions. The words of the command line
// follow, without the program, up to the cursor: the last one may be a part, or empty.
const completer = "__complete"

// A candidate is a word that the last one may become.
type candidate struct{ word, help string }

// completion answers a script's question.
type completion struct {
	candidates []candidate
	files      string // "files" or "dirs": such names, too
}

// print writes a candidate in each line, with a tab before its help, and then :files or :dirs.
func (c completion) print(to io.Writer) error {
	out := bufio.NewWriter(to)
	for _, one := range c.candidates {
		fmt.Fprintf(out, "%s\t%s\n", one.word, one.help)
	}
	if c.files != "" {
		fmt.Fprintf(out, ":%s\n", c.files)
	}
	return out.Flush()
}

// offer adds a word if it begins with what has been typed.
func (c *completion) offer(word, help, typed string) {
	if strings.HasPrefix(word, typed) {
		c.candidates = append(c.candidates, candidate{word, firstWords(help)})
	}
}

// firstWords is the beginning of a help text, for a list.
func firstWords(help string) string {
	end := len(help)
	for _, stop := range []string{". ", ": ", "; ", " ("} {
		if i := strings.Index(help, stop); i >= 0 {
			end = min(end, i)
		}
	}
	return strings.TrimSuffix(help[:end], ".")
}

// complete returns what the last of the words may become.
func complete(app *kong.Node, words []string) completion {
	if len(words) == 0 {
		words = []string{""}
	}
	last := len(words) - 1
	at := &typing{node: app, given: make(map[*kong.Flag]bool)}
	for _, w := range words[:last] {
		at.pass(w)
	}
	return at.complete(words[last])
}

// typing is a place in a command line.
type typing struct {
	node     *kong.Node // the command
	args     int        // of node, so far
	flag     *kong.Flag // the next word is its value; nil: it is none
	onlyArgs bool       // after "--"
	given    map[*kong.Flag]bool
}

// pass goes on behind a word.
func (t *typing) pass(word string) {
	switch {
	case t.flag != nil:
		t.flag = nil
	case t.onlyArgs:
		t.args++
	case word == "--":
		t.onlyArgs = true
		if t.passesOn() {
			t.args++ // what follows is not its first word, the name of a file
		}
	case strings.HasPrefix(word, "--"):
		name, _, hasValue := strings.Cut(word[2:], "=")
		t.passFlag(t.find(name), hasValue)
	case strings.HasPrefix(word, "-") && word != "-":
		t.passShort(word[1:])
	default:
		for _, child := range t.node.Children {
			if child.Name == word {
				t.node, t.args = child, 0
				return
			}
		}
		t.onlyArgs = t.passesOn()
		t.args++
	}
}

// passesOn reports whether the command takes an argument here, and all behind it, as they are.
func (t *typing) passesOn() bool {
	return t.args < len(t.node.Positional) && t.node.Positional[t.args].Passthrough
}

// passedOn returns how many arguments stand before those that a command takes as they are.
func passedOn(app *kong.Node, args []string) int {
	at := &typing{node: app, given: make(map[*kong.Flag]bool)}
	for i, arg := range args {
		at.pass(arg)
		if at.onlyArgs {
			return i
		}
	}
	return len(args)
}

func (t *typing) passFlag(f *kong.Flag, hasValue bool) {
	if f == nil {
		return
	}
	t.given[f] = true
	if takesValue(f) && !hasValue {
		t.flag = f
	}
}

// passShort goes on behind flags of a letter, as in -c, -c50 or -Pc50.
func (t *typing) passShort(letters string) {
	for i, letter := range letters {
		for f := range t.flags {
			if f.Short != letter {
				continue
			}
			rest := letters[i+len(string(letter)):]
			t.passFlag(f, rest != "")
			if takesValue(f) {
				return
			}
		}
	}
}

// flags are those that the command has here.
func (t *typing) flags(yield func(*kong.Flag) bool) {
	for n := t.node; n != nil; n = n.Parent {
		for _, f := range n.Flags {
			if !f.Hidden && !yield(f) {
				return
			}
		}
	}
}

// find returns the flag of a name; nil: there is none.
func (t *typing) find(name string) *kong.Flag {
	for f := range t.flags {
		if name == f.Name || name == noFlag(f) {
			return f
		}
	}
	return nil
}

// noFlag is the name with which a flag is turned off; "": it cannot be.
func noFlag(f *kong.Flag) string {
	if f.Tag.Negatable == "" {
		return ""
	}
	return "no-" + f.Name
}

func takesValue(f *kong.Flag) bool { return !f.IsBool() && !f.IsCounter() }

// complete returns what may stand here and begins with typed.
func (t *typing) complete(typed string) (c completion) {
	name, value, hasValue := strings.Cut(strings.TrimPrefix(typed, "--"), "=")
	isFlag := !t.onlyArgs && strings.HasPrefix(typed, "-")
	switch {
	case t.flag != nil:
		c.offerValues(t.flag.Value, "", typed)
	case isFlag && hasValue && strings.HasPrefix(typed, "--"):
		if f := t.find(name); f != nil && takesValue(f) {
			c.offerValues(f.Value, "--"+name+"=", value)
		}
	case isFlag:
		t.offerFlags(&c, typed)
	default:
		t.offerArgs(&c, typed)
	}
	return c
}

// offerArgs offers commands and arguments, and if there are none, flags.
func (t *typing) offerArgs(c *completion, typed string) {
	if t.args == 0 {
		for _, child := range t.node.Children {
			if !child.Hidden {
				c.offer(child.Name, child.Help, typed)
			}
		}
	}
	if t.args < len(t.node.Positional) {
		c.offerValues(t.node.Positional[t.args], "", typed)
	}
	optional := t.args < len(t.node.Positional) && !t.node.Positional[t.args].Required
	if typed == "" && (len(c.candidates) == 0 && c.files == "" || optional) && !t.onlyArgs {
		t.offerFlags(c, typed)
	}
}

// offerFlags offers the flags that are not there already.
func (t *typing) offerFlags(c *completion, typed string) {
	for f := range t.flags {
		if t.given[f] && !f.IsCumulative() {
			continue
		}
		c.offer("--"+f.Name, f.Help, typed)
		if no := noFlag(f); no != "" {
			c.offer("--"+no, f.Help, typed)
		}
	}
}

// Values that are lists, with commas.
var listValues = map[string][]string{
	"backend": pick.Names(),
	"tests":   {"ping", "set", "get", "incr", "mset"},
}

// offerValues offers values of a flag or an argument, behind a prefix.
func (c *completion) offerValues(v *kong.Value, prefix, typed string) {
	if list, ok := listValues[v.Name]; ok {
		before := typed[:strings.LastIndex(typed, ",")+1]
		have := strings.Split(before, ",")
		for _, one := range list {
			if !slices.Contains(have, one) {
				c.offer(prefix+before+one, "", prefix+typed)
			}
		}
		return
	}
	if v.Enum != "" {
		for _, one := range v.EnumSlice() {
			c.offer(prefix+one, "", prefix+typed)
		}
		return
	}
	switch v.Tag.PlaceHolder {
	case "FILE":
		c.files = "files"
	case "DIR":
		c.files = "dirs"
	}
}
