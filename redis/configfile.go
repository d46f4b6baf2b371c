package redis

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rondo-go/rondo/redis/acl"
	"github.com/rondo-go/rondo/redis/conf"
)

// A Config is what a redis.conf and redis-server's command line say: see docs/redis-conf.md.
type Config struct {
	config   config
	file     string
	commands *commandTable // with the names that rename-command has given so far
	renames  [][2]string
	users    []User
	trial    *acl.Users            // of users
	outside  map[string]bool       // of users: those that are defined elsewhere than in the file itself
	lines    int                   // of the file itself
	given    map[string]conf.Error // where a parameter was set last, as an error without a reason
}

// LoadConfig reads the arguments of redis-server: the name of a file, or none, and behind it
// directives, as in "--port 7000". "-" stands for more lines from stdin. The error has
// redis-server's form: the line's number, the line and the reason. A directive that the server
// cannot obey is an error, if obeying it would matter: see docs/redis-conf.md.
func LoadConfig(args []string, stdin io.Reader) (*Config, error) {
	c := &Config{config: fileDefaults(), commands: allCommands()}
	c.trial = acl.NewUsers(c.commands.rules)
	file, options, more := conf.Options(args)
	text := ""
	if file != "" {
		var err error
		if c.file, err = filepath.Abs(file); err != nil {
			return nil, err
		}
		if text, err = readText(c.file); err != nil {
			return nil, err
		}
	}
	if c.lines = strings.Count(text, "\n"); text != "" && !strings.HasSuffix(text, "\n") {
		c.lines++
	}
	if more {
		b, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("can't read the configuration from standard input: %w", err)
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n" // else the first line of b would be a part of the file's last
		}
		text += string(b)
	}
	err := c.readAll(text + "\n" + options)
	if errors.As(err, new(*conf.Error)) {
		return nil, fmt.Errorf("*** FATAL CONFIG FILE ERROR (Redis %s) ***\n%w", Version, err)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// readAll reads the lines of the file, of the standard input and of the command line.
func (c *Config) readAll(text string) error {
	c.given = make(map[string]conf.Error)
	c.config.reading = true
	defer func() { c.config.reading = false }()
	if err := c.read(text, "", 0); err != nil {
		return err
	}
	return c.check()
}

// fileDefaults is the config of an empty file.
func fileDefaults() (c config) {
	c.init(&Server{})
	c.fromFile, c.port, c.bind = true, 6379, "* -::*"
	return c
}

// Get returns a parameter's value as CONFIG GET shows it, empty for an unknown name.
func (c *Config) Get(name string) string { return valueOf(&c.config, name) }

// File returns the absolute name of the file, or "" if there is none.
func (c *Config) File() string { return c.file }

// Ignored returns the directives that were given, have another value than the default, and
// nevertheless no effect.
func (c *Config) Ignored() (names []string) {
	initial := fileDefaults()
	for _, p := range params {
		if _, ok := c.given[p.name]; ok && effects[p.name].kind == "ignored" && p.get(&c.config) != p.get(&initial) {
			names = append(names, p.name)
		}
	}
	return names
}

// Given reports whether a directive was given, by its own name.
func (c *Config) Given(name string) bool {
	_, ok := c.given[name]
	return ok
}

func readText(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("fatal error, can't open config file '%s': %s", file, reason(err))
	}
	return string(b), nil
}

// reason is an error's reason in the words of C's library.
func reason(err error) string {
	text := err.Error()
	var number syscall.Errno
	if errors.As(err, &number) {
		text = number.Error()
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// maxIncludes is how many files may include each other.
const maxIncludes = 16

// read obeys the directives of a text. file is empty for the main one.
func (c *Config) read(text, file string, depth int) error {
	for d, wrong := range conf.Lines(text) {
		if wrong != nil {
			wrong.File = file
			return wrong
		}
		at := conf.Error{File: file, Line: d.Line, Text: d.Text}
		if d.Name == "include" && len(d.Args) == 1 {
			if err := c.include(d.Args[0], at, depth); err != nil {
				return err
			}
			continue
		}
		if at.Reason = c.obey(&d, at); at.Reason != "" {
			return &at
		}
	}
	return nil
}

// include reads files by a name or a pattern. A pattern may match none.
func (c *Config) include(name string, at conf.Error, depth int) error {
	if depth == maxIncludes {
		at.Reason = "Files include each other"
		return &at
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(c.Get("dir"), name)
	}
	files := []string{name}
	if strings.ContainsAny(name, "*?[") {
		files, _ = filepath.Glob(name)
	}
	for _, file := range files {
		text, err := readText(file)
		if err == nil {
			err = c.read(text, file, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// obsolete are names that Redis ignores, too, with one value.
var obsolete = []string{"list-max-ziplist-entries", "list-max-ziplist-value", "lua-replicate-commands"}

// obey sets what a directive says. It returns the reason why that fails.
func (c *Config) obey(d *conf.Directive, at conf.Error) (failure string) {
	if p := findParam(d.Name); p != nil {
		c.given[c.own(p)] = at
		return p.read(&c.config, d.Args)
	}
	n := len(d.Args)
	switch {
	case n == 1 && slices.Contains(obsolete, d.Name):
	case d.Name == "rename-command" && n == 2:
		if failure := c.commands.rename(d.Args[0], d.Args[1]); failure != "" {
			return failure
		}
		c.renames = append(c.renames, [2]string(d.Args))
	case d.Name == "user" && n >= 1:
		return c.user(d.Args, at)
	case d.Name == "loadmodule" && n >= 1, strings.Contains(d.Name, "."):
		return "this server has no modules"
	case d.Name == "sentinel":
		return "sentinel directive while not in sentinel mode"
	default:
		return "Bad directive or wrong number of arguments"
	}
	return ""
}

// own returns the parameter's own name.
func (c *Config) own(p *param) string {
	if p.alias != "" {
		return p.alias
	}
	return p.name
}

// user is the directive of a user.
func (c *Config) user(words []string, at conf.Error) string {
	if err := c.trial.Define(words[0], words[1:]); err != nil {
		return "Error in user declaration: " + err.Error()
	}
	c.users = append(c.users, User{words[0], words[1:]})
	if at.File != "" || at.Line > c.lines {
		if c.outside == nil {
			c.outside = make(map[string]bool)
		}
		c.outside[words[0]] = true
	}
	return ""
}

// read sets a parameter to the words of a line.
func (p *param) read(c *config, words []string) (failure string) {
	if p.setAll == nil {
		if len(words) != 1 {
			return errWords
		}
		return p.set(c, words[0])
	}
	if len(words) == 1 && words[0] != "" {
		var ok bool
		if words, ok = conf.Split(words[0]); !ok {
			return conf.Unbalanced
		}
	}
	return p.setAll(c, words)
}

// configFile is the file that CONFIG REWRITE changes.
func (s *Server) configFile() string {
	if s.Config == nil {
		return ""
	}
	return s.Config.file
}

// tcpPort is the port for INFO: that of TLS if there is no other.
func (c *config) tcpPort() string {
	if c.fromFile && c.port == 0 {
		return valueOf(c, "tls-port")
	}
	return strconv.Itoa(c.port)
}

// obeyConfig applies the parameters that the server begins with.
func (s *Server) obeyConfig() {
	applyListSize(s)
	applyLimits(s)
	if s.Config == nil {
		return
	}
	applyEviction(s)
	applyDefrag(s)
	applyEvents(s)
	applyLogLevel(s)
	for _, r := range s.Config.renames {
		s.commands.rename(r[0], r[1]) // LoadConfig has tried it
	}
}

// check looks for values that the server does not support, when all lines have been read: a later
// one may have replaced them.
func (c *Config) check() error {
	for _, p := range params {
		if p.only == nil || p.alias != "" {
			continue
		}
		if why := p.only(&c.config); why != "" {
			at := c.given[p.name]
			at.Reason = why
			return &at
		}
	}
	if c.config.aclFile != "" && len(c.users) > 0 {
		at := c.given["aclfile"]
		at.Reason = "users are in the file and in redis.conf: want them in one place"
		return &at
	}
	return nil
}
