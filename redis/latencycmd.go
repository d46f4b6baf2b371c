package redis

import (
	"fmt"
	"strings"

	"github.com/rondo-go/rondo/resp"
)

func latencyCommands() []*command {
	const group = "server"
	const flags = flagAdmin | flagNoscript | flagLoading | flagStale
	nodes := []string{"request_policy:all_nodes", "response_policy:special"}
	vague := append([]string{"nondeterministic_output"}, nodes...)
	sub := func(name string, arity int, run func(*client, [][]byte), since, complexity, summary string, tips ...string) *command {
		return &command{name: "latency|" + name, arity: arity, flags: flags, run: run, tips: tips,
			doc: doc{summary, since, group, complexity, "", ""}}
	}
	help := sub("help", 2, latencyHelpCommand, "2.8.13", "O(1)", "Returns help about the subcommands.")
	help.flags = flagLoading | flagStale
	return []*command{
		{name: "latency", arity: -2,
			doc: doc{"A container for commands about what kept the server busy.", "2.8.13", group, "depends on the subcommand", "", ""},
			subs: []*command{
				sub("doctor", 2, latencyDoctorCommand, "2.8.13", "O(1)", "Returns a report about latency.", vague...),
				sub("graph", 3, latencyGraphCommand, "2.8.13", "O(1)", "Draws the samples of an event.", vague...),
				help,
				sub("histogram", -2, latencyHistogramCommand, "7.0.0", "O(N), N the number of commands with a histogram",
					"Returns how often commands took how long.", vague...),
				sub("history", 3, latencyHistoryCommand, "2.8.13", "O(1)", "Returns the samples of an event.", vague...),
				sub("latest", 2, latencyLatestCommand, "2.8.13", "O(1)", "Returns the latest sample of every event.", vague...),
				sub("reset", -2, latencyResetCommand, "2.8.13", "O(1)", "Deletes the samples of events.",
					"request_policy:all_nodes", "response_policy:all_succeeded"),
			}},
	}
}

func latencyLatestCommand(c *client, _ [][]byte) {
	l := &c.server.latency
	c.Array(len(l.events))
	for _, name := range l.names() {
		e := l.events[name]
		last := e.samples[len(e.samples)-1]
		c.Array(4)
		c.BulkString(name)
		c.Int(last.at)
		c.Int(last.took)
		c.Int(e.most)
	}
}

func latencyHistoryCommand(c *client, args [][]byte) {
	e := c.server.latency.events[string(args[2])]
	if e == nil {
		c.Array(0)
		return
	}
	c.Array(len(e.samples))
	for _, x := range e.samples {
		c.Array(2)
		c.Int(x.at)
		c.Int(x.took)
	}
}

func latencyGraphCommand(c *client, args [][]byte) {
	name := string(args[2])
	e := c.server.latency.events[name]
	if e == nil {
		c.fail(fmt.Sprintf("ERR No samples available for event '%s'", cString(args[2], len(args[2]))))
		return
	}
	c.Verbatim("txt", e.graph(name, c.server.space.now/1000))
}

func latencyResetCommand(c *client, args [][]byte) {
	l := &c.server.latency
	if len(args) == 2 {
		c.Int(int64(len(l.events)))
		clear(l.events)
		return
	}
	n := 0
	for _, name := range args[2:] {
		if l.reset(string(name)) {
			n++
		}
	}
	c.Int(int64(n))
}

// advice says what an event means, and what helps.
var advice = map[string]string{
	eventCommand:     "Commands that are not O(1) or O(log N) took long: see SLOWLOG GET. Use SCAN, HSCAN, SSCAN and ZSCAN in place of KEYS, HGETALL, SMEMBERS and large ranges.",
	eventFastCommand: "Commands that take little work took long: the system gave the server no processor time, or memory was paged out. Look for other programs, and for swapping.",
	eventUnblocking:  "The replies to clients that were blocked took long: see the commands they had sent.",
	eventExpiry:      "Many keys expired at the same time. Spread their times to live.",
	eventEviction:    "Keys had to be evicted faster than the server can do besides commands. Raise maxmemory, or write less.",
}

func latencyDoctorCommand(c *client, _ [][]byte) {
	s := c.server
	var text strings.Builder
	switch {
	case s.config.latencyLimit == 0:
		text.WriteString("The latency monitor is off. CONFIG SET latency-monitor-threshold <milliseconds> turns it on.\n")
	case len(s.latency.events) == 0:
		fmt.Fprintf(&text, "Nothing took %d ms or longer since the latency monitor was turned on, or since LATENCY RESET.\n", s.config.latencyLimit)
	default:
		fmt.Fprintf(&text, "Events that took %d ms or longer:\n", s.config.latencyLimit)
		for _, name := range s.latency.names() {
			e := s.latency.events[name]
			sum := int64(0)
			for _, x := range e.samples {
				sum += x.took
			}
			fmt.Fprintf(&text, "\n%s: %d samples, mean %d ms, longest %d ms, the latest %s ago.\n%s\n", name, len(e.samples),
				sum/int64(len(e.samples)), e.most, age(s.space.now/1000-e.samples[len(e.samples)-1].at), advice[name])
		}
	}
	c.Verbatim("txt", text.String())
}

func latencyHistogramCommand(c *client, args [][]byte) {
	write := func(cmd *command) (n int) {
		if cmd.calls == 0 || cmd.histogram == nil {
			return 0
		}
		c.BulkString(cmd.name)
		c.Map(2)
		c.BulkString("calls")
		c.Int(cmd.calls)
		c.BulkString("histogram_usec")
		c.counted(func() (n int) {
			for upTo, count := range cmd.cumulative() {
				c.Int(upTo)
				c.Int(count)
				n++
			}
			return n
		}, (*resp.Reply).Map)
		return 1
	}
	c.counted(func() (n int) {
		if len(args) == 2 {
			c.server.commands.all(func(cmd *command) { n += write(cmd) })
			return n
		}
		for _, name := range args[2:] {
			if cmd := c.server.commands.named(name); cmd != nil {
				n += write(cmd)
				for _, sub := range cmd.subs {
					n += write(sub)
				}
			}
		}
		return n
	}, (*resp.Reply).Map)
}

func latencyHelpCommand(c *client, _ [][]byte) {
	c.help("LATENCY",
		"DOCTOR",
		"    A report about what took long.",
		"GRAPH <event>",
		"    The samples of an event as a drawing.",
		"HISTORY <event>",
		"    The samples of an event: time and milliseconds.",
		"LATEST",
		"    Of every event: time and milliseconds of the latest sample, the longest ever.",
		"RESET [<event> ...]",
		"    Delete the samples of events (default: all).",
		"HISTOGRAM [<command> ...]",
		"    How many calls of commands took how many microseconds or less.")
}
