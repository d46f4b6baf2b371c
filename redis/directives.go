package redis

import (
	_ "embed"
	"fmt"
	"strings"
)

// An effect is what a parameter does here.
type effect struct {
	kind string // acts, limited (to some of Redis's values) or ignored
	note string
}

//go:embed directives.txt
var effectText string

// effects are those of all parameters, by their own names. The page docs/redis-conf.md shows them.
var effects = readEffects(effectText)

// readEffects reads lines with a kind and a note, each with lines of names behind it.
func readEffects(text string) map[string]effect {
	all := make(map[string]effect)
	var e effect
	for line := range strings.Lines(text) {
		if names, ok := strings.CutPrefix(line, "\t"); ok {
			for _, name := range strings.Fields(names) {
				if _, twice := all[name]; twice {
					panic("directives.txt has " + name + " twice")
				}
				all[name] = e
			}
			continue
		}
		e.kind, e.note, _ = strings.Cut(strings.TrimSpace(line), ": ")
	}
	return all
}

// limits are the parameters of which the server supports some values, and which the tables of
// parameters cannot tell.
var limits = map[string]func(*config) string{
	"daemonize": func(c *config) string {
		if valueOf(c, "daemonize") == "no" || valueOf(c, "supervised") != "no" {
			return ""
		}
		return "this server supports only 'no': " + effects["daemonize"].note
	},
	"supervised": func(c *config) string {
		if valueOf(c, "supervised") != "upstart" {
			return ""
		}
		return "this server does not support 'upstart'"
	},
	"tls-protocols": func(c *config) string {
		for _, p := range strings.Fields(valueOf(c, "tls-protocols")) {
			if !strings.EqualFold(p, "TLSv1.2") && !strings.EqualFold(p, "TLSv1.3") {
				return fmt.Sprintf("this server does not support '%s': want TLSv1.2 and TLSv1.3, or one of them", p)
			}
		}
		return ""
	},
}

// valueOf returns a parameter's value as CONFIG GET shows it.
func valueOf(c *config, name string) string {
	if p := findParam(name); p != nil {
		return p.get(c)
	}
	return ""
}
