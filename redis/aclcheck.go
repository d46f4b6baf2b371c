package redis

import "github.com/rondo-go/rondo/redis/acl"

// program is the user of clients within the program, which no rule concerns.
var program = acl.Unlimited(acl.DefaultName)

// permissions is the memory of the request that is checked.
type permissions struct{ request acl.Request }

// mayRun decides whether a user may run a request. It changes nothing, and does not expect
// the number of arguments to be right.
func (s *Server) mayRun(u *acl.User, cmd *command, args [][]byte) (why acl.Denial, at int) {
	if u.Unlimited() {
		return acl.Allowed, 0
	}
	r := s.permissions.fill(cmd, args)
	why, at = u.Check(r)
	s.permissions.empty()
	return why, at
}

// readsAll reports whether the client's user may run a request, and read every key.
func (c *client) readsAll(cmd *command, args [][]byte) bool {
	if c.user.Unlimited() {
		return true
	}
	defer c.server.permissions.empty()
	return c.user.ReadsAll(c.server.permissions.fill(cmd, args))
}

// fill describes a request. The result is valid until empty.
func (p *permissions) fill(cmd *command, args [][]byte) *acl.Request {
	r := &p.request
	r.Command, r.Free, r.Args, r.First = cmd.id, cmd.flags&flagNoAuth != 0, args, nil
	if len(args) > 1 {
		r.First = args[1]
	}
	r.Keys = cmd.keyRefs(r.Keys[:0], args)
	r.Channels = r.Channels[:0]
	if cmd.flags&flagPubsub != 0 {
		r.Channels = channelRefs(r.Channels, cmd, len(args))
	}
	return r
}

// empty forgets the request, and the memory of one with very many keys.
func (p *permissions) empty() {
	r := &p.request
	r.Args, r.First = nil, nil
	if cap(r.Keys) > maxArgs || cap(r.Channels) > maxArgs {
		r.Keys, r.Channels = nil, nil
	}
}

// keyRefs appends the keys of a request. If their number is wrong it has none: the command will find
// the error. Another specification that does not fit is of keys that were left out.
func (cmd *command) keyRefs(refs []acl.Ref, args [][]byte) []acl.Ref {
	for i := range cmd.keys {
		k := &cmd.keys[i]
		if k.flags&keyNot != 0 {
			continue
		}
		first, last, ok := k.find(args)
		switch {
		case !ok && k.counted:
			return refs[:0]
		case !ok:
			continue
		}
		access := k.flags.access()
		if cmd.arityOK(len(args)) {
			access = k.flagsOf(args).access()
		}
		for at := first; at <= last; at += k.step {
			refs = append(refs, acl.Ref{At: at, Access: access})
		}
	}
	return refs
}

// access returns what permission for a key the flags need.
func (f keyFlags) access() (a acl.Access) {
	if f&keyAccess != 0 {
		a |= acl.Read
	}
	if f&(keyInsert|keyDelete|keyUpdate) != 0 {
		a |= acl.Write
	}
	return a
}

// channelRefs appends the channels of a request of n arguments. Subscriptions may be ended
// without permission.
func channelRefs(refs []acl.Ref, cmd *command, n int) []acl.Ref {
	switch cmd.name {
	case "publish", "spublish":
		n = min(n, 2)
	case "subscribe", "ssubscribe", "psubscribe":
	default:
		return refs
	}
	for at := 1; at < n; at++ {
		refs = append(refs, acl.Ref{At: at, Pattern: cmd.name[0] == 'p' && cmd.name[1] == 's'})
	}
	return refs
}

// denied refuses a request that the client's user may not run, and notes that.
func (c *client) denied(cmd *command, args [][]byte) bool {
	why, at := c.server.mayRun(c.user, cmd, args)
	switch why {
	case acl.Allowed:
		return false
	case acl.DeniedCommand:
		c.noteDenial(why, "", cmd, args, at)
		c.reject(cmd, "NOPERM this user has no permissions to run the '"+cmd.name+"' command")
	case acl.DeniedKey:
		c.noteDenial(why, "", cmd, args, at)
		c.reject(cmd, "NOPERM this user has no permissions to access one of the keys used as arguments")
	default:
		c.noteDenial(why, "", cmd, args, at)
		c.reject(cmd, "NOPERM this user has no permissions to access one of the channels used as arguments")
	}
	return true
}

// deniedInExec is denied for a queued command: the rules may have changed since.
func (c *client) deniedInExec(cmd *command, args [][]byte) bool {
	why, at := c.server.mayRun(c.user, cmd, args)
	if why == acl.Allowed {
		return false
	}
	c.noteDenial(why, "", cmd, args, at)
	reason := "no permission to execute the command or subcommand"
	switch why {
	case acl.DeniedKey:
		reason = "no permission to touch the specified keys"
	case acl.DeniedChannel:
		reason = "no permission to access one of the channels used as arguments"
	}
	c.fail("NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: " + reason)
	return true
}

// aclCheck is for scripts: it decides whether the client's user may run a command, and if
// not, notes that and returns the error of redis.call. redis.acl_check_cmd asks mayRun,
// which notes nothing.
func (c *client) aclCheck(cmd *command, args [][]byte) (failure string) {
	why, at := c.server.mayRun(c.user, cmd, args)
	reason := ""
	switch why {
	case acl.Allowed:
		return ""
	case acl.DeniedCommand:
		reason = "can't run this command or subcommand"
	case acl.DeniedKey:
		reason = "can't access at least one of the keys mentioned in the command arguments"
	default:
		reason = "can't publish to the channel mentioned in the command"
	}
	c.noteDenial(why, "lua", cmd, args, at)
	return "ERR The user executing the script " + reason
}

// noteDenial adds to ACL LOG and counts. An empty context is the client's.
func (c *client) noteDenial(why acl.Denial, context string, cmd *command, args [][]byte, at int) {
	object := cmd.name
	if why != acl.DeniedCommand {
		object = logged(args[at])
	}
	c.addDenial(why, context, object, c.user.Name())
}

func (c *client) addDenial(why acl.Denial, context, object, user string) {
	s := c.server
	if context == "" {
		context = "toplevel"
		if c.tx != nil {
			context = "multi"
		}
	}
	s.stats.denied[why]++
	s.denials.Add(acl.Entry{Why: why, Context: context, Object: object, User: user, At: s.space.now, Client: c.describe()})
}

// logged returns what the log keeps of an argument, which may be huge.
func logged(arg []byte) string { return string(arg[:min(len(arg), acl.MaxObject)]) }
