package redis

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/redis/conf"
	"github.com/rondo-go/rondo/resp"
)

// form is how CONFIG REWRITE writes a value. Unless it says otherwise, a value that is the
// default one gets a line only where there was one.
type form uint8

const (
	formPlain    form = iota // as CONFIG GET shows it
	formMemory               // with a unit
	formText                 // quoted
	formOptional             // quoted; never a line if it is empty, else always
	formAlways               // quoted; always a line
	formWords                // "" for none; always a line
	formBind                 // "" for none; never a line for the default
	formClasses              // a line for each class of clients
)

// option returns the lines of a parameter.
func (p *param) option(c, initial *config) conf.Option {
	o := conf.Option{Name: p.name}
	add := func(text string, force bool) {
		o.Lines = append(o.Lines, conf.Line{Text: p.name + " " + text, Force: force})
	}
	v := p.get(c)
	changed := v != p.get(initial)
	switch p.form {
	case formMemory:
		if n, ok := resp.ParseInt([]byte(v)); ok {
			v = conf.Memory(n)
		}
		add(v, changed)
	case formText:
		add(conf.Quote(v), changed)
	case formOptional:
		if v != "" {
			add(conf.Quote(v), true)
		}
	case formAlways:
		add(conf.Quote(v), true)
	case formWords:
		add(orEmpty(v), true)
	case formBind:
		if changed {
			words := strings.Split(v, " ")
			for i, w := range words {
				if w == "" || strings.ContainsAny(w, `"'`) || !isPlain([]byte(w)) {
					words[i] = conf.Quote(w)
				}
			}
			add(strings.Join(words, " "), true)
		}
	case formClasses:
		for i, l := range c.outputLimits {
			name := classNames[i]
			if class(i) == classReplica {
				name = "replica"
			}
			add(fmt.Sprintf("%s %s %s %d", name, conf.Memory(l.hard), conf.Memory(l.soft), l.seconds), l != initial.outputLimits[i])
		}
	default:
		add(orEmpty(v), changed)
	}
	return o
}

// orEmpty returns words as a line has them.
func orEmpty(v string) string {
	if v == "" {
		return `""`
	}
	return v
}

// rewritten returns the file's text with the present values. With all it has a line for every
// parameter.
func (c *config) rewritten(text string, all bool, more ...conf.Option) string {
	initial := fileDefaults()
	var options []conf.Option
	for _, p := range params {
		if p.alias != "" {
			continue
		}
		o := p.option(c, &initial)
		for i := range o.Lines {
			o.Lines[i].Force = o.Lines[i].Force || all
		}
		options = append(options, o)
	}
	return conf.Rewrite(text, fileName, append(options, more...))
}

// fileName returns the option that a line with a name belongs to.
func fileName(name string) (option string, ok bool) {
	if p := findParam(name); p != nil {
		if p.alias != "" {
			return p.alias, true
		}
		return p.name, true
	}
	switch name {
	case "include", "rename-command", "user", "loadmodule", "sentinel":
		return name, true
	}
	return "", false
}

// rewriteConfig writes the present values into the file that the server was started with.
func (c *client) rewriteConfig(all bool) {
	s := c.server
	file := s.configFile()
	if file == "" {
		c.fail("ERR The server is running without a config file")
		return
	}
	users, err := s.userOption()
	var text []byte
	if err == nil {
		text, err = os.ReadFile(file)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = replaceFile(file, s.config.rewritten(string(text), all, users), 0o644)
	}
	if err != nil {
		s.log().Warn("CONFIG REWRITE failed", "file", file, "error", err)
		c.fail("ERR Rewriting config file: " + reason(err))
		return
	}
	s.log().Info("CONFIG REWRITE executed with success", "file", file)
	c.ok()
}

// replaceFile puts a new file in the place of one, or makes one, so that whatever happens there
// is either. The new one has the mode of the old one, if there is any, since a file may have
// passwords, and its owner and group, if the system allows that; see inAnotherGroup. A symbolic link
// stays: the file that it leads to is replaced.
func replaceFile(name, text string, mode fs.FileMode) error {
	if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
	}
	old, err := os.Stat(name)
	if err == nil {
		mode = old.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		if old != nil && !sys.KeepOwner(f, old) { // before Chmod, which it may undo
			mode = inAnotherGroup(mode)
		}
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	return syncDir(filepath.Dir(name))
}

// inAnotherGroup returns the mode of a file whose group could not be kept. The new group's members
// were among all others before, and the old one's members are now: both may do what both could.
func inAnotherGroup(mode fs.FileMode) fs.FileMode {
	both := mode >> 3 & mode & 0o7
	return mode&^0o77 | both<<3 | both
}

// syncDir makes a new name in a directory last. Windows cannot do that.
func syncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
