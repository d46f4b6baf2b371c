package redis

import (
	"fmt"
	"strings"

	"github.com/rondo-go/rondo/resp"
)

// A Command is a command that a program adds to those of a Server; see
// Server.Commands. COMMAND reports it, MULTI queues it, and a change that it
// makes ends the transactions of clients that WATCH the key.
type Command struct {
	// Name is in lower case, and no other command has it.
	Name string
	// Arity is the number of arguments including the name. If it is negative,
	// -Arity is the minimum.
	Arity int
	// Flags are blank-separated names of flags, as COMMAND INFO shows them:
	// "write denyoom fast". A command that may change keys has the flag write. One
	// that may add data has denyoom: the server refuses it when memory is full.
	Flags string
	// FirstKey is the index of the first argument that is a key, LastKey that of
	// the last one (-1: the last argument), and KeyStep the distance between two
	// of them (0 means 1). If FirstKey is 0 the command has no keys.
	FirstKey, LastKey, KeyStep int
	// Summary is what COMMAND DOCS says about the command.
	Summary string
	// Run runs the command on the loop to which the keys belong, so it must not
	// wait. It writes exactly one reply to c. args[0] is the name; args are valid
	// until Run returns. A panic ends the client.
	Run func(c *Call, args [][]byte)
}

// A Call is one run of an added Command. The methods of Reply write the command's
// reply, in the version of the protocol that the client has chosen. A Call is
// valid until Run returns.
type Call struct {
	*resp.Reply
	client *client
	name   string
	args   [][]byte
}

// maxDepth is how many added commands may run within each other.
const maxDepth = 16

// Do runs another command in the database of the client that called the added
// one, and returns its reply, which belongs to the caller. An error reply is a
// Value of the kind resp.Error. All that Run does is one atomic step. Commands
// that concern a connection, such as MULTI and SUBSCRIBE, are refused; blocking
// commands reply as after their timeout.
func (c *Call) Do(args ...string) resp.Value {
	if len(args) == 0 {
		return resp.Value{Kind: resp.Error, Str: []byte("ERR Call.Do has no arguments: want the name of a command")}
	}
	s, outer := c.client.server, c.client
	l := &local{server: s, inner: true}
	l.client = &client{
		Reply: resp.Reply{Proto: 3}, server: s, transport: l, db: outer.db, gone: true, user: program, authed: true, local: true, limited: true,
		executing: true, depth: outer.depth + 1, created: outer.created, active: outer.active,
	}
	l.client.tracks = outer.tracksWithin(s.commands.byName[c.name], c.args)
	if l.client.depth > maxDepth {
		return resp.Value{Kind: resp.Error, Str: []byte("ERR too many commands run within each other")}
	}
	l.run(byteArgs(args))
	return l.take()
}

// run is what the command table calls.
func (x *Command) run(c *client, args [][]byte) {
	start, outermost := len(c.B), !c.executing
	c.executing = true // holds messages back until the reply is complete
	x.Run(&Call{&c.Reply, c, x.Name, args}, args)
	switch {
	case len(c.B) == start:
		c.fail("ERR the command '" + x.Name + "' has not replied")
	case c.B[start] == byte(resp.Error):
		text, _, _ := strings.Cut(string(c.B[start+1:]), "\r\n")
		c.countError(text)
	}
	if outermost {
		c.executing = false
	}
}

// row checks a Command and returns its row of the command table.
func (x Command) row() (*command, error) {
	fail := func(format string, args ...any) (*command, error) {
		return nil, fmt.Errorf("redis: Server.Commands: "+format, args...)
	}
	switch {
	case x.Name == "" || len(x.Name) > maxName || x.Name != strings.ToLower(x.Name) || !isPlain([]byte(x.Name)) || strings.Contains(x.Name, "|"):
		return fail("Name is %q: want a short name in lower case, without blanks and |", x.Name)
	case x.Run == nil:
		return fail("Run of %q is nil: want a function", x.Name)
	case x.Arity == 0:
		return fail("Arity of %q is 0: want at least 1, for the name, or a negative number", x.Name)
	case x.FirstKey < 0 || x.KeyStep < 0 || x.LastKey < -1 || x.LastKey >= 0 && x.LastKey < x.FirstKey:
		return fail("keys of %q are at %d to %d by %d: want indexes of arguments", x.Name, x.FirstKey, x.LastKey, x.KeyStep)
	}
	cmd := &command{name: x.Name, arity: x.Arity, run: x.run, doc: doc{summary: x.Summary, group: "module"}}
	for _, name := range strings.Fields(x.Flags) {
		f, ok := flagByName(name)
		if !ok {
			return fail("Flags of %q has %q: want %s", x.Name, name, strings.Join(flagNames, ", "))
		}
		cmd.flags |= f
	}
	if x.FirstKey > 0 {
		k := keySpec{flags: keyRO | keyAccess, first: x.FirstKey, last: x.LastKey, step: max(x.KeyStep, 1)}
		if cmd.flags&flagWrite != 0 {
			k.flags = keyRW | keyAccess | keyUpdate
		}
		if k.last > 0 {
			k.last -= k.first
		}
		cmd.keys = []keySpec{k}
	}
	return cmd, nil
}

func flagByName(name string) (cmdFlags, bool) {
	for i, known := range flagNames {
		if name == known {
			return 1 << i, true
		}
	}
	return 0, false
}

// addCommands adds the program's commands to the table.
func (s *Server) addCommands() error {
	for _, x := range s.Commands {
		cmd, err := x.row()
		if err != nil {
			return err
		}
		if s.commands.byName[cmd.name] != nil {
			return fmt.Errorf("redis: Server.Commands: %q is the name of another command: want a new name", cmd.name)
		}
		s.commands.add(cmd)
	}
	return nil
}
