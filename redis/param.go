package redis

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A param is a parameter of CONFIG, and a directive of a redis.conf.
type param struct {
	name  string
	alias string // the parameter's own name, if this is another one
	get   func(*config) string
	// set parses a value into the config. If that fails it returns the reason
	// in Redis's words, else "".
	set func(*config, string) (failure string)
	// setAll is set of a parameter that takes several words.
	setAll func(*config, []string) (failure string)
	// only returns why the server cannot have the value that was set, or "".
	only func(*config) (failure string)
	// apply is called after a successful CONFIG SET.
	apply func(*Server)
	// frozen says why CONFIG SET cannot change the value, unless it can.
	frozen string
	// immutable says that Redis's CONFIG SET refuses the parameter, too.
	immutable bool
	// protected says that enable-protected-configs decides who may change it.
	protected bool
	// secret says that logs and MONITOR must not show the value.
	secret bool
	// hidden says that a pattern of CONFIG GET does not match the name.
	hidden bool
	form   form // for CONFIG REWRITE
}

// change sets a value of CONFIG SET. If that fails the config may have the value all the same.
func (p *param) change(c *config, value string) (failure string) {
	before := ""
	if p.frozen != "" {
		before = p.get(c)
	}
	if p.setAll == nil {
		failure = p.set(c, value)
	} else {
		var words []string
		if value != "" {
			words = strings.Split(value, " ")
		}
		failure = p.setAll(c, words)
	}
	switch {
	case failure != "":
		return failure
	case p.frozen != "" && p.get(c) != before:
		return p.frozen
	case p.only != nil:
		return p.only(c)
	}
	return ""
}

// fixed is a parameter that clients cannot change.
func fixed(p *param) *param {
	p.immutable = true
	return p
}

// alias is a further name of a parameter.
func alias(of string, p *param) *param {
	p.alias = of
	return p
}

// accessParam is a parameter that says who may do something.
func accessParam(name string, field func(*config) *DebugAccess) *param {
	names := [...]string{DebugNo: "no", DebugLocal: "local", DebugYes: "yes"}
	return &param{name: name, immutable: true,
		get: func(c *config) string { return names[*field(c)] },
		set: func(c *config, v string) string {
			for access, n := range names {
				if strings.EqualFold(n, v) {
					*field(c) = DebugAccess(access)
					return ""
				}
			}
			return "argument(s) must be one of the following: no, yes, local"
		}}
}

// dirParam is the directory that the names of files are relative to. The program changes to it.
func dirParam(name string) *param {
	get := func(c *config) string {
		if c.dir != "" {
			return c.dir
		}
		dir, _ := os.Getwd()
		return dir
	}
	return &param{name: name, form: formAlways, protected: true, get: get,
		frozen: "the directory cannot change while the server runs",
		set: func(c *config, v string) string {
			if !filepath.IsAbs(v) {
				v = filepath.Join(get(c), v)
			}
			info, err := os.Stat(v)
			switch {
			case err != nil:
				return reason(err)
			case !info.IsDir():
				return "Not a directory"
			}
			c.dir = filepath.Clean(v)
			return ""
		}}
}

// replicaofParam is the address of a master. The server cannot have one.
func replicaofParam(name string) *param {
	return &param{name: name, immutable: true, form: formOptional,
		get: func(c *config) string { return c.master },
		setAll: func(c *config, words []string) string {
			if len(words) != 2 {
				return errWords
			}
			switch port, err := strconv.Atoi(words[1]); {
			case strings.EqualFold(words[0], "no") && strings.EqualFold(words[1], "one"):
				c.master = ""
				return ""
			case err != nil || port < 0 || port > 65535:
				return "Invalid master port"
			}
			c.master = strings.Join(words, " ")
			return ""
		},
		only: func(c *config) string {
			if c.master == "" {
				return ""
			}
			return "this server cannot be a replica: " + effects["replicaof"].note
		}}
}

const errWords = "wrong number of arguments"

// maxBind is how many addresses Redis listens on.
const maxBind = 16

func setBind(c *config, words []string) string {
	if len(words) > maxBind {
		return "Too many bind addresses specified."
	}
	if len(words) == 1 && words[0] == "" {
		words = nil
	}
	c.bind = strings.Join(words, " ")
	return ""
}

// setSave takes pairs of seconds and changes. Those of a file's lines add up.
func setSave(c *config, words []string) string {
	if len(words) == 1 && words[0] == "" {
		c.save = ""
		return ""
	}
	if len(words)%2 != 0 {
		return errSave
	}
	for i, w := range words {
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil || n < int64(1-i%2) {
			return errSave
		}
	}
	points := strings.Join(words, " ")
	if c.reading {
		points = strings.TrimSpace(c.save + " " + points)
	}
	c.save = points
	return ""
}

const errSave = "Invalid save parameters"

// oomScoreParam is three numbers.
func oomScoreParam(name string) *param {
	return &param{name: name, get: func(c *config) string { return c.oomScores },
		setAll: func(c *config, words []string) string {
			if len(words) != 3 {
				return errWords
			}
			for i, w := range words {
				n, err := strconv.Atoi(w)
				if err != nil || n < -2000 || n > 2000 {
					return "Invalid oom-score-adj-values, elements must be between -2000 and 2000."
				}
				words[i] = strconv.Itoa(n)
			}
			c.oomScores = strings.Join(words, " ")
			return ""
		}}
}

func outputLimitParam(name string) *param {
	return &param{
		name: name,
		form: formClasses,
		get: func(c *config) string {
			var parts []string
			for class, l := range c.outputLimits {
				parts = append(parts, fmt.Sprintf("%s %d %d %d", classNames[class], l.hard, l.soft, l.seconds))
			}
			return strings.Join(parts, " ")
		},
		setAll: setOutputLimits,
	}
}

func setOutputLimits(c *config, words []string) string {
	if len(words)%4 != 0 {
		return "Wrong number of arguments in buffer limit configuration."
	}
	for ; len(words) > 0; words = words[4:] {
		class, ok := classByName([]byte(words[0]))
		if !ok || class == classMaster {
			return "Invalid client class specified in buffer limit configuration."
		}
		hard, ok1 := parseMemory(words[1])
		soft, ok2 := parseMemory(words[2])
		seconds, err := strconv.ParseInt(words[3], 10, 32)
		if !ok1 || !ok2 || err != nil || seconds < 0 {
			return "Error in hard, soft or soft_seconds setting in buffer limit configuration."
		}
		c.outputLimits[class] = outputLimit{hard, soft, seconds}
	}
	return ""
}
