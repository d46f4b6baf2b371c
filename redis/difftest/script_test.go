package difftest

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rondo-go/rondo/resp"
)

// A file is a file of scripts, in the form that doc.go tells.
type file struct {
	path     string
	password string
	scripts  []*script
	lines    []string // without replies
}

type script struct {
	name  string
	steps []*step
}

// A step is a line of a script: what a client sends, and what it gets.
type step struct {
	line   int // index in file.lines
	client string
	from   string        // connect from this address
	sleep  time.Duration // do nothing
	waits  int           // do nothing until the server has so many blocked clients
	send   []byte
	expect expectation
	normal string // normal form to compare in; "": the bytes as they are
	reply  []byte // as recorded, in normal form
}

type expectation uint8

const (
	nothing expectation = iota
	oneReply
	untilEnd
)

// stepLine is a client's name, an operator, and the rest.
var stepLine = regexp.MustCompile(`^([a-z]*)(>>|>-|>|\?end|\?|@)(?:$| ?(.*)$)`)

func readFile(path string) (*file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &file{path: path}
	p := parser{file: f}
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
	}
	return f, nil
}

type parser struct {
	file   *file
	script *script
	step   *step
	normal string
}

func (p *parser) line(line string) error {
	if text, ok := strings.CutPrefix(line, "<"); ok {
		if p.step == nil || p.step.expect == nothing {
			return fmt.Errorf("a reply to nothing")
		}
		reply, err := unquoteLine(strings.TrimPrefix(text, " "))
		p.step.reply = append(p.step.reply, reply...)
		return err
	}
	p.file.lines = append(p.file.lines, line)
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case line == "" || word == "#":
		return nil
	case word == "==":
		p.script = &script{name: rest}
		p.file.scripts = append(p.file.scripts, p.script)
		p.step = nil
		return nil
	case p.script == nil && word == "requirepass":
		p.file.password = rest
		return nil
	case p.script == nil:
		return fmt.Errorf("%q before the first script", line)
	case word == "~":
		normal, reason, _ := strings.Cut(rest, ": ")
		if reason == "" {
			return fmt.Errorf("no reason why the reply may differ")
		}
		p.normal = normal
		return nil
	}
	step, err := parseStep(line)
	if err != nil {
		return err
	}
	step.line = len(p.file.lines) - 1
	step.normal, p.normal = p.normal, ""
	p.step = step
	p.script.steps = append(p.script.steps, step)
	return nil
}

func parseStep(line string) (*step, error) {
	if text, ok := strings.CutPrefix(line, "sleep "); ok {
		d, err := time.ParseDuration(text)
		return &step{sleep: d}, err
	}
	if text, ok := strings.CutPrefix(line, "blocked "); ok {
		n, err := strconv.Atoi(text)
		return &step{waits: n}, err
	}
	m := stepLine.FindStringSubmatch(line)
	if m == nil {
		return nil, fmt.Errorf("%q is no step", line)
	}
	s := &step{client: m[1]}
	if s.client == "" {
		s.client = "a"
	}
	var err error
	switch m[2] {
	case ">":
		s.expect = oneReply
		s.send, err = request(m[3])
	case ">-":
		s.send, err = request(m[3])
	case ">>":
		s.send, err = rawBytes(m[3])
	case "?":
		s.expect = oneReply
	case "?end":
		s.expect = untilEnd
	case "@":
		s.from = m[3]
	}
	return s, err
}

// request makes a request of quoted words.
func request(text string) ([]byte, error) {
	args, n, _, err := resp.ReadRequest([]byte(text+"\n"), nil, resp.Limits{})
	if err != nil || n == 0 || len(args) == 0 {
		return nil, fmt.Errorf("%q are no words: %v", text, err)
	}
	b := resp.AppendArray(nil, len(args))
	for _, arg := range args {
		b = resp.AppendBulk(b, arg)
	}
	return b, nil
}

var rawPart = regexp.MustCompile(`^(?:(\d+)\*)?("(?:[^"\\]|\\.)*") *`)

// rawBytes makes bytes of Go-quoted strings with factors.
func rawBytes(text string) (b []byte, err error) {
	for text != "" {
		m := rawPart.FindStringSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("%q is no quoted string", text)
		}
		part, err := strconv.Unquote(m[2])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m[2], err)
		}
		count := 1
		if m[1] != "" {
			if count, err = strconv.Atoi(m[1]); err != nil {
				return nil, err
			}
		}
		b = append(b, strings.Repeat(part, count)...)
		text = text[len(m[0]):]
	}
	return b, nil
}

// quoteReply writes a reply as the lines of a file: without their CR LF, other
// bytes than ASCII's printable ones and blanks at the end escaped. A backslash
// at the end of a line is a line break that is not there.
func quoteReply(reply []byte) (lines []string) {
	for len(reply) > 0 {
		line, rest, complete := bytes.Cut(reply, []byte("\r\n"))
		var text strings.Builder
		text.WriteByte('<')
		for i, c := range line {
			if i == 0 {
				text.WriteByte(' ')
			}
			if c < ' ' || c > '~' || c == '\\' || c == ' ' && i == len(line)-1 {
				fmt.Fprintf(&text, `\x%02x`, c)
			} else {
				text.WriteByte(c)
			}
		}
		if !complete {
			text.WriteByte('\\')
		}
		lines = append(lines, text.String())
		reply = rest
	}
	return lines
}

func unquoteLine(text string) ([]byte, error) {
	text, cut := strings.CutSuffix(text, `\`)
	line, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	if !cut {
		line += "\r\n"
	}
	return []byte(line), err
}

// text is the file with the replies its steps have now.
func (f *file) text() []byte {
	replies := map[int][]byte{}
	for _, script := range f.scripts {
		for _, step := range script.steps {
			replies[step.line] = step.reply
		}
	}
	var out bytes.Buffer
	for i, line := range f.lines {
		out.WriteString(line + "\n")
		for _, line := range quoteReply(replies[i]) {
			out.WriteString(line + "\n")
		}
	}
	return out.Bytes()
}
