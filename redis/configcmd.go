package redis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rondo-go/rondo/resp"
)

func configCommands() []*command {
	const group = "server"
	const flags = flagAdmin | flagNoscript | flagLoading | flagStale
	return []*command{
		{name: "config", arity: -2,
			doc: doc{"A container for commands that read and change parameters.", "2.0.0", group, "depends on the subcommand", "", ""},
			subs: []*command{
				{name: "config|get", arity: -3, flags: flags, run: configGetCommand,
					doc: doc{"Returns the parameters that match patterns.", "2.0.0", group, "O(N), N the number of parameters", "", ""}},
				{name: "config|help", arity: 2, flags: flagLoading | flagStale, run: configHelpCommand,
					doc: doc{"Returns help about the subcommands.", "5.0.0", group, "O(1)", "", ""}},
				{name: "config|resetstat", arity: 2, flags: flags, run: configResetstatCommand,
					doc: doc{"Resets the counts that INFO reports.", "2.0.0", group, "O(1)", "", ""}},
				{name: "config|rewrite", arity: 2, flags: flags, run: configRewriteCommand,
					doc: doc{"Writes the parameters into the file that the server was started with.", "2.8.0", group, "O(1)", "", ""}},
				{name: "config|set", arity: -4, flags: flags, run: configSetCommand,
					tips: []string{"request_policy:all_nodes", "response_policy:all_succeeded"},
					doc:  doc{"Sets parameters, all of them or none.", "2.0.0", group, "O(N), N the number of parameters", "", ""}},
			}},
	}
}

func configGetCommand(c *client, args [][]byte) {
	c.counted(func() (n int) {
		for _, p := range params {
			if name, ok := p.asked(args[2:]); ok {
				c.pair(name, p.get(&c.server.config))
				n++
			}
		}
		return n
	}, (*resp.Reply).Map)
}

// asked reports whether a name or pattern of the request selects the parameter.
// It returns a name as the request spells it.
func (p *param) asked(patterns [][]byte) (name string, ok bool) {
	for _, pattern := range patterns {
		if strings.EqualFold(p.name, string(pattern)) {
			return string(pattern), true
		}
		if !p.hidden && glob(pattern, p.name, true) {
			name, ok = p.name, true
		}
	}
	return name, ok
}

func configSetCommand(c *client, args [][]byte) {
	if len(args)%2 != 0 {
		c.fail(errSyntax)
		return
	}
	args = args[2:]
	refuse := func(name, reason string) {
		c.fail(fmt.Sprintf("ERR CONFIG SET failed (possibly related to argument '%s') - %s", name, reason))
	}
	var chosen []*param
	for i := 0; i < len(args); i += 2 {
		name := string(args[i])
		p := findParam(name)
		switch {
		case p == nil:
			c.fail("ERR Unknown option or number of arguments for CONFIG SET - '" + name + "'")
			return
		case p.immutable:
			refuse(name, "can't set immutable config")
			return
		case p.protected && !c.mayProtected(c.server.config.protecting):
			refuse(name, "can't set protected config")
			return
		case slices.Contains(chosen, p):
			refuse(name, "duplicate parameter")
			return
		}
		chosen = append(chosen, p)
	}
	old := c.server.config
	for i, p := range chosen {
		if failure := p.change(&c.server.config, string(args[2*i+1])); failure != "" {
			c.server.config = old
			refuse(p.name, failure)
			return
		}
	}
	for _, p := range chosen {
		if p.apply != nil {
			p.apply(c.server)
		}
	}
	c.ok()
}

func configResetstatCommand(c *client, _ [][]byte) {
	s := c.server
	s.stats.reset()
	s.stats.freedBefore = s.space.store.Work().Freed
	s.space.hits, s.space.misses = 0, 0
	s.space.store.ResetExpired()
	s.commands.all(func(cmd *command) { cmd.count = count{} })
	c.ok()
}

func configRewriteCommand(c *client, _ [][]byte) {
	c.rewriteConfig(false)
}

func configHelpCommand(c *client, _ [][]byte) {
	c.help("CONFIG",
		"GET <pattern> [<pattern> ...]",
		"    The matching parameters and their values.",
		"SET <parameter> <value> [<parameter> <value> ...]",
		"    Set all of the parameters, or none if there is an error.",
		"RESETSTAT",
		"    Reset the counts that INFO reports.",
		"REWRITE",
		"    Write the parameters into the file that the server was started with.")
}
