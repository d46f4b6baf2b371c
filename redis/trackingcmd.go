package redis

import (
	"fmt"
	"slices"
	"strings"
)

// trackingOptions are the arguments of CLIENT TRACKING.
type trackingOptions struct {
	bcast, optin, optout, noloop bool
	redirect                     int64
	prefixes                     [][]byte
}

func (o *trackingOptions) parse(c *client, args [][]byte) bool {
	for ; len(args) > 0; args = args[1:] {
		switch opt := args[0]; {
		case isWord(opt, "REDIRECT") && len(args) > 1:
			if !o.parseRedirect(c, args[1]) {
				return false
			}
			args = args[1:]
		case isWord(opt, "PREFIX") && len(args) > 1:
			o.prefixes = append(o.prefixes, args[1])
			args = args[1:]
		case isWord(opt, "BCAST"):
			o.bcast = true
		case isWord(opt, "OPTIN"):
			o.optin = true
		case isWord(opt, "OPTOUT"):
			o.optout = true
		case isWord(opt, "NOLOOP"):
			o.noloop = true
		default:
			c.fail(errSyntax)
			return false
		}
	}
	return true
}

// parseRedirect wants a client that exists, though it may go later.
func (o *trackingOptions) parseRedirect(c *client, arg []byte) (ok bool) {
	if o.redirect != 0 {
		c.fail("ERR A client can only redirect to a single other client")
		return false
	}
	if o.redirect, ok = c.int64Arg(arg); !ok {
		return false
	}
	if to := c.server.clients.byID[o.redirect]; to == nil || to.local { // no messages go within the program
		c.fail("ERR The client ID you want redirect to does not exist")
		return false
	}
	return true
}

// check replies with an error if the options contradict each other, or what is on already. The
// order decides which error the client gets.
func (o *trackingOptions) check(c *client) bool {
	var x clientTracking
	if c.tracks != nil {
		x = *c.tracks
	}
	const anew = "before disabling tracking for this client, and then re-enabling it with a different mode."
	switch {
	case !o.bcast && len(o.prefixes) > 0:
		c.fail("ERR PREFIX option requires BCAST mode to be enabled")
	case x.on && x.bcast != o.bcast:
		c.fail("ERR You can't switch BCAST mode on/off " + anew)
	case o.bcast && (o.optin || o.optout):
		c.fail("ERR OPTIN and OPTOUT are not compatible with BCAST")
	case o.optin && o.optout:
		c.fail("ERR You can't specify both OPTIN mode and OPTOUT mode")
	case o.optin && x.optout || o.optout && x.optin:
		c.fail("ERR You can't switch OPTIN/OPTOUT mode " + anew)
	default:
		return o.checkPrefixes(c, &x.prefixes)
	}
	return false
}

// A changed key is followed through the tree of prefixes for as many bytes as the longest may have,
// and each prefix takes about prefixSize bytes: so both are bounded, which Redis does not do.
const (
	maxPrefixes = 1 << 16 // of a client
	maxPrefix   = 1 << 10 // bytes
	prefixSize  = 320     // bytes, beside the text's
)

// checkPrefixes replies with an error if a key could have two prefixes of the client, or if the
// prefixes are too many or too long.
func (o *trackingOptions) checkPrefixes(c *client, existing *prefixTree) bool {
	if existing.count+len(o.prefixes) > maxPrefixes {
		c.fail(fmt.Sprintf("ERR A client can't have more than %d prefixes", maxPrefixes))
		return false
	}
	for _, p := range o.prefixes {
		if len(p) > maxPrefix {
			c.fail(fmt.Sprintf("ERR A prefix can't have more than %d bytes", maxPrefix))
			return false
		}
	}
	first := firstOverlap(o.prefixes, existing)
	if first < 0 {
		return true
	}
	p, kind, other := o.prefixes[first], "an existing", []byte(nil)
	if x := existing.overlapping(string(p)); x != nil {
		other = []byte(x.text)
	} else {
		rest := o.prefixes[first+1:]
		i := slices.IndexFunc(rest, func(q []byte) bool { return overlap(string(p), string(q)) })
		kind, other = "another provided", rest[i]
	}
	c.fail(fmt.Sprintf("ERR Prefix '%s' overlaps with %s prefix '%s'. Prefixes for a single client must not overlap.",
		cString(p, len(p)), kind, cString(other, len(other))))
	return false
}

// overlap reports whether one prefix begins with the other.
func overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// firstOverlap returns the index of the first new prefix that overlaps another new one, or an existing one;
// -1 if none does. Sorted, a new prefix stands before all that begin with it, so each is compared
// only with the one before it that it may begin with.
func firstOverlap(added [][]byte, existing *prefixTree) int {
	type place struct {
		text string
		at   int // in added
	}
	all := make([]place, len(added))
	for i, p := range added {
		all[i] = place{string(p), i}
	}
	slices.SortFunc(all, func(a, b place) int { return strings.Compare(a.text, b.text) })
	first := len(added)
	open := make([]place, 0, min(len(added), maxPrefix+1)) // those that the present one begins with, the longest last
	for _, p := range all {
		for len(open) > 0 && !strings.HasPrefix(p.text, open[len(open)-1].text) {
			open = open[:len(open)-1]
		}
		if n := len(open); n > 0 {
			first = min(first, p.at, open[n-1].at) // those below were noted with this one
		}
		if existing.overlapping(p.text) != nil {
			first = min(first, p.at)
		}
		open = append(open, p)
	}
	if first == len(added) {
		return -1
	}
	return first
}

func clientTrackingCommand(c *client, args [][]byte) {
	var o trackingOptions
	switch {
	case !o.parse(c, args[3:]):
		return
	case isWord(args[2], "ON"):
		if !o.check(c) {
			return
		}
		c.server.tracking.start(c, &o)
	case isWord(args[2], "OFF"):
		c.server.tracking.stop(c)
	default:
		c.fail(errSyntax)
		return
	}
	c.ok()
}

func clientCachingCommand(c *client, args [][]byte) {
	x := c.tracks
	switch {
	case x == nil || !x.on:
		c.fail("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
		return
	case isWord(args[2], "YES"):
		if !x.optin {
			c.fail("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
			return
		}
	case isWord(args[2], "NO"):
		if !x.optout {
			c.fail("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
			return
		}
	default:
		c.fail(errSyntax)
		return
	}
	x.caching = true
	c.ok()
}

// redirection returns the client that gets the messages about keys: 0 is this one, and -1
// says that keys are not tracked.
func (c *client) redirection() int64 {
	if c.tracks == nil || !c.tracks.on {
		return -1
	}
	return c.tracks.redirect
}

func clientGetredirCommand(c *client, _ [][]byte) { c.Int(c.redirection()) }

func clientTrackinginfoCommand(c *client, _ [][]byte) {
	x := c.tracks
	if x == nil {
		x = new(clientTracking)
	}
	var flags []string
	for _, f := range []struct {
		on   bool
		name string
	}{
		{x.on, "on"}, {!x.on, "off"}, {x.bcast, "bcast"},
		{x.optin, "optin"}, {x.optin && x.caching, "caching-yes"},
		{x.optout, "optout"}, {x.optout && x.caching, "caching-no"},
		{x.noloop, "noloop"}, {x.broken, "broken_redirect"},
	} {
		if f.on {
			flags = append(flags, f.name)
		}
	}
	c.Map(3)
	c.BulkString("flags")
	c.Set(len(flags))
	for _, f := range flags {
		c.BulkString(f)
	}
	c.BulkString("redirect")
	c.Int(c.redirection())
	c.BulkString("prefixes")
	c.Array(x.prefixes.count)
	for p := range x.prefixes.all() {
		c.BulkString(p.text)
		c.spill()
	}
}

// clientNoTouchCommand comes from Redis 7.2: the client's commands count as no use of their keys,
// so that a program that looks at all keys does not keep them from being evicted.
func clientNoTouchCommand(c *client, args [][]byte) {
	switch mode := args[2]; {
	case isWord(mode, "ON"):
		c.noTouch = true
	case isWord(mode, "OFF"):
		c.noTouch = false
	default:
		c.fail(errSyntax)
		return
	}
	c.server.space.store.CountNoUse(c.noTouch)
	c.ok()
}
