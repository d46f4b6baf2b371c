package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/internal/pick"
)

// What may come next, by the words of a command line, between which there is a blank here.
func TestComplete(t *testing.T) {
	parser, err := newParser("std")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, want string }{
		{"", "redis http proxy echo bench ping completion man version"},
		{"p", "proxy ping"},
		{"nope", ""},
		{"redis p", ":files"},
		{"redis --loops 2 redis.conf ", ""},
		{"redis redis.conf --tls-c", ""}, // directives
		{"bench ", "echo http redis"},
		{"--ver", "--version"},
		{"redis --tls-c", "--tls-cert --tls-ca"},
		{"redis --tls-cert x.pem --tls-c", "--tls-ca"},
		{"redis --tls-cert=x.pem --tls-c", "--tls-ca"},
		{"redis --addr x --add", "--addr"}, // may be given several times
		{"redis --prot", "--protected-mode"},
		{"redis --no-p", "--no-protected-mode"},
		{"redis --no-protected-mode --prot", ""},
		{"redis --tls-cert ", ":files"},
		{"redis --tls-cert=", ":files"},
		{"http --dir ", ":dirs"},
		{"man ", ":dirs"},
		{"completion ", "bash zsh fish"},
		{"completion f", "fish"},
		{"redis --log-format ", "text json"},
		{"redis --log-format j", "json"},
		{"redis --log-format=j", "--log-format=json"},
		{"redis --log-format json --log-l", "--log-level"},
		{"redis --loops ", ""},
		{"redis --loops --log-l", ""}, // a value
		{"redis --loops -1 --log-l", "--log-level"},
		{"redis --protected-mode=", ""},
		{"redis --nope=", ""},
		{"echo --nope x --log-l", "--log-level"},
		{"redis --backend ", strings.Join(pick.Names(), " ")},
		{"redis --backend std,", behindStd()},
		{"redis --backend=none,st", "--backend=none,std"},
		{"bench redis -t set,g", "set,get"},
		{"bench redis -c 50 --con", ""}, // --conns is there
		{"bench redis -c50 --con", ""},
		{"bench redis -c", ""}, // a flag of a letter is as short as can be
		{"ping -- --", ""},
		{"redis -- --ver", ""},
	} {
		var got []string
		answer := complete(parser.Model.Node, strings.Split(c.line, " "))
		for _, one := range answer.candidates {
			got = append(got, one.word)
		}
		if answer.files != "" {
			got = append(got, ":"+answer.files)
		}
		if words := strings.Join(got, " "); words != c.want {
			t.Errorf("%q: %q, want %q", c.line, words, c.want)
		}
	}
}

// Where nothing else may stand, flags are offered, with the beginning of their help.
func TestCompleteOffersFlags(t *testing.T) {
	out, code := run(t, completer, "redis", "")
	for _, want := range []string{"--addr\tAddress to serve\n", "--backend\tBackend for I/O\n", "--no-protected-mode\tRefuse clients from other hosts while no password is set\n", "--help\tShow context-sensitive help\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, out)
		}
	}
	if out, code := run(t, completer); code != 0 || !strings.HasPrefix(out, "redis\tServe Redis clients from one event loop\n") {
		t.Errorf("without a word: exit code %d, output\n%s", code, out)
	}
}

// A shell is a process with the completions of this program.
type shell struct {
	dir    string // the working directory
	script string
}

// shellWith returns what is needed for a shell; ok: it is there. The program that it finds as
// rondo answers questions as this one does; otherwise it prints its arguments.
func shellWith(t *testing.T, name string) (s shell, ok bool) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil || runtime.GOOS == "windows" {
		return s, false
	}
	s.dir = t.TempDir()
	s.script = filepath.Join(s.dir, "completions")
	out, code := run(t, "completion", name)
	if code != 0 {
		t.Fatalf("rondo completion %s: exit code %d, output %q", name, code, out)
	}
	rondo := "#!/bin/sh\n[ \"$1\" != " + completer + " ] || exec '" + binary + "' \"$@\"\nprintf '<%s>' \"$@\"\necho\n"
	for _, f := range []struct{ name, text string }{{s.script, out}, {filepath.Join(s.dir, "rondo"), rondo}, {filepath.Join(s.dir, "file.pem"), ""}} {
		if err := os.WriteFile(f.name, []byte(f.text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	return s, true
}

// do runs the shell with what is typed, and returns its output.
func (s *shell) do(t *testing.T, typed string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+s.dir+":"+os.Getenv("PATH"), "HOME="+s.dir, "TERM=dumb", "INPUTRC=/dev/null", "HISTFILE=")
	cmd.Stdin = strings.NewReader(typed)
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, &out, &errors)
	}
	return out.String()
}

// A bash in which somebody types completes: what is behind a tab here is what bash adds.
func TestCompletionInBash(t *testing.T) {
	s, ok := shellWith(t, "bash")
	if !ok {
		t.Skip("there is no bash")
	}
	s.do(t, "", "bash", "-n", s.script)
	for _, c := range []struct{ typed, want string }{
		{"ben\tec\t--pip\t4", "<bench><echo><--pipeline><4>"},
		{"redis --log-format j\t--addr :0 --prot\t", "<redis><--log-format><json><--addr><:0><--protected-mode>"},
		{"redis --log-format=j\t--backend=none,st\t--pid\t", "<redis><--log-format=json><--backend=none,std><--pidfile>"},
		{"redis --addr=tcp://127.0.0.1:0 --log-f\t", "<redis><--addr=tcp://127.0.0.1:0><--log-format>"},
		{"redis --tls-cert fi\t", "<redis><--tls-cert><file.pem>"},
		{"redis --tls-cert=fi\t", "<redis><--tls-cert=file.pem>"},
		{"http --dir f\t", "<http><--dir><folder/>"},
		{"redis --loops fo\t", "<redis><--loops><fo>"},
	} {
		typed := "source ./completions\nrondo " + c.typed + "\nexit\n"
		if got := s.do(t, typed, "bash", "--norc", "--noprofile", "-i"); !strings.Contains(got, c.want+"\n") {
			t.Errorf("%q: no %s in\n%s", c.typed, c.want, got)
		}
	}
}

// zsh (Debian's package zsh) shows what the program answers.
func TestCompletionInZsh(t *testing.T) {
	s, ok := shellWith(t, "zsh")
	if !ok {
		t.Skip("there is no zsh")
	}
	s.do(t, "", "zsh", "-n", s.script)
	// In place of the functions of zsh's own completion, which want a terminal.
	const stubs = `
compdef() { }
compset() { print "compset $*" }
_files() { print "_files $*" }
_describe() { print -r -- "${(@P)2}" }
source ./completions
CURRENT=$#words
PREFIX=$words[CURRENT]
_rondo
`
	for _, c := range []struct{ words, want string }{
		{"rondo ben", "bench:Measure a server with a load generator\n"},
		{"rondo redis --log-format ''", "text: json:\n"},
		{"rondo redis --log-format=j", "--log-format=json:\n"},
		{"rondo redis --tls-cert fi", "_files \n"},
		{"rondo redis --tls-cert=fi", "compset -P *=\n_files \n"},
		{"rondo http --dir ''", "_files -/\n"},
	} {
		if got := s.do(t, "", "zsh", "-f", "-c", "words=("+c.words+")"+stubs); got != c.want {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
}

// fish (Debian's package fish) completes as when somebody types.
func TestCompletionInFish(t *testing.T) {
	s, ok := shellWith(t, "fish")
	if !ok {
		t.Skip("there is no fish")
	}
	s.do(t, "", "fish", "-n", s.script)
	for _, c := range []struct{ line, want string }{
		{"rondo ben", "bench\tMeasure a server with a load generator\n"},
		{"rondo redis --log-format ", "json\ntext\n"},
		{"rondo redis --log-format=j", "--log-format=json\n"},
		{"rondo redis --tls-cert fi", "file.pem\n"},
		{"rondo redis --tls-cert=fi", "--tls-cert=file.pem\n"},
		{"rondo http --dir f", "folder/\n"},
		{"rondo redis --loops ", ""},
	} {
		got := s.do(t, "", "fish", "-N", "-c", "source ./completions; complete -C '"+c.line+"'")
		var words []string
		for line := range strings.Lines(got) {
			words = append(words, strings.TrimRight(line, "\t\n")+"\n")
		}
		if slices.Sort(words); strings.Join(words, "") != c.want {
			t.Errorf("%q: %q, want %q", c.line, words, c.want)
		}
	}
}

// behindStd returns the completions of a list of backends that begins with std.
func behindStd() string {
	var words []string
	for _, name := range pick.Names() {
		if name != "std" {
			words = append(words, "std,"+name)
		}
	}
	return strings.Join(words, " ")
}
