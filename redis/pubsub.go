package redis

func pubsubCommands() []*command {
	const group = "pubsub"
	const flags = flagPubsub | flagLoading | flagStale
	return []*command{
		{name: "psubscribe", arity: -2, flags: flags | flagNoscript | flagInSubscribed, run: psubscribeCommand,
			doc: doc{"Subscribes to the channels that match patterns.", "2.0.0", group, "O(1) a pattern", "", ""}},
		{name: "publish", arity: 3, flags: flags | flagFast, run: publishCommand,
			doc: doc{"Sends a message to a channel.", "2.0.0", group, "O(N+M), N the number of receivers, M of all patterns", "", ""}},
		{name: "pubsub", arity: -2, subs: pubsubSubcommands(),
			doc: doc{"A container for commands that inspect subscriptions.", "2.8.0", group, "depends on the subcommand", "", ""}},
		{name: "punsubscribe", arity: -1, flags: flags | flagNoscript | flagInSubscribed, run: punsubscribeCommand,
			doc: doc{"Ends subscriptions to patterns, by default to all.", "2.0.0", group, "O(1) a pattern", "", ""}},
		{name: "subscribe", arity: -2, flags: flags | flagNoscript | flagInSubscribed, run: subscribeCommand,
			doc: doc{"Subscribes to channels.", "2.0.0", group, "O(1) a channel", "", ""}},
		{name: "unsubscribe", arity: -1, flags: flags | flagNoscript | flagInSubscribed, run: unsubscribeCommand,
			doc: doc{"Ends subscriptions to channels, by default to all.", "2.0.0", group, "O(1) a channel", "", ""}},
	}
}

func pubsubSubcommands() []*command {
	const group = "pubsub"
	const flags = flagPubsub | flagLoading | flagStale
	return []*command{
		{name: "pubsub|channels", arity: -2, flags: flags, run: pubsubChannelsCommand,
			doc: doc{"Returns the channels that have subscribers.", "2.8.0", group, "O(N), N the number of channels", "", ""}},
		{name: "pubsub|help", arity: 2, flags: flagLoading | flagStale, run: pubsubHelpCommand,
			doc: doc{"Returns help about the subcommands.", "6.2.0", group, "O(1)", "", ""}},
		{name: "pubsub|numpat", arity: 2, flags: flags, run: pubsubNumpatCommand,
			doc: doc{"Counts the patterns that have subscribers.", "2.8.0", group, "O(1)", "", ""}},
		{name: "pubsub|numsub", arity: -2, flags: flags, run: pubsubNumsubCommand,
			doc: doc{"Counts the subscribers of channels.", "2.8.0", group, "O(1) a channel", "", ""}},
	}
}

// subscribeTo adds subscriptions and confirms each.
func (c *client) subscribeTo(names [][]byte, patterns bool) {
	if c.pubsub == nil {
		c.pubsub = new(subscriptions)
		c.idleChanged() // subscribers have no idle timeout
	}
	set, ts, verb := &c.pubsub.channels, &c.server.broker.channels, "subscribe"
	if patterns {
		set, ts, verb = &c.pubsub.patterns, &c.server.broker.patterns, "psubscribe"
	}
	for _, name := range names {
		set.subscribe(c, ts, name)
		c.confirm(verb, name)
	}
}

// confirm tells the client that a subscription has begun or ended. A nil name
// stands for none.
func (c *client) confirm(verb string, name []byte) {
	c.unsilenced(func() {
		c.Push(3)
		c.BulkString(verb)
		if name != nil {
			c.Bulk(name)
		} else {
			c.Null()
		}
		c.Int(int64(c.pubsub.count()))
	})
}

// unsubscribeFrom ends the named subscriptions, or all if there are no names,
// and confirms each.
func (c *client) unsubscribeFrom(names [][]byte, patterns bool) {
	ts, verb := &c.server.broker.channels, "unsubscribe"
	if patterns {
		ts, verb = &c.server.broker.patterns, "punsubscribe"
	}
	var set *subscriptionSet
	if c.pubsub != nil {
		set = &c.pubsub.channels
		if patterns {
			set = &c.pubsub.patterns
		}
	}
	if len(names) == 0 && set != nil {
		for _, sub := range set.list {
			names = append(names, []byte(sub.topic.name))
		}
	}
	if len(names) == 0 {
		c.confirm(verb, nil)
		return
	}
	for _, name := range names {
		if set != nil {
			if sub := set.byName[string(name)]; sub != nil {
				set.end(ts, sub)
			}
		}
		c.confirm(verb, name)
	}
	if c.pubsub != nil && c.pubsub.count() == 0 {
		c.pubsub = nil
		c.idleChanged()
	}
}

// endSubscriptions ends all subscriptions without confirming.
func (c *client) endSubscriptions() {
	if c.pubsub == nil {
		return
	}
	b := &c.server.broker
	for set := &c.pubsub.channels; len(set.list) > 0; {
		set.end(&b.channels, set.list[len(set.list)-1])
	}
	for set := &c.pubsub.patterns; len(set.list) > 0; {
		set.end(&b.patterns, set.list[len(set.list)-1])
	}
	c.pubsub = nil
}

func subscribeCommand(c *client, args [][]byte) { c.subscribeTo(args[1:], false) }

func psubscribeCommand(c *client, args [][]byte) { c.subscribeTo(args[1:], true) }

func unsubscribeCommand(c *client, args [][]byte) { c.unsubscribeFrom(args[1:], false) }

func punsubscribeCommand(c *client, args [][]byte) { c.unsubscribeFrom(args[1:], true) }

func publishCommand(c *client, args [][]byte) {
	c.Int(int64(c.server.broker.publish(args[1], args[2])))
}

func pubsubChannelsCommand(c *client, args [][]byte) {
	if len(args) > 3 {
		c.subcommandSyntax(args)
		return
	}
	c.array(func() (n int) {
		for _, t := range c.server.broker.channels.list {
			if len(args) == 2 || glob(args[2], t.name, false) {
				c.BulkString(t.name)
				n++
			}
		}
		return n
	})
}

func pubsubNumsubCommand(c *client, args [][]byte) {
	c.Array(2 * (len(args) - 2))
	for _, name := range args[2:] {
		c.Bulk(name)
		n := 0
		if t := c.server.broker.channels.byName[string(name)]; t != nil {
			n = len(t.subs)
		}
		c.Int(int64(n))
	}
}

func pubsubNumpatCommand(c *client, _ [][]byte) {
	c.Int(int64(len(c.server.broker.patterns.list)))
}

func pubsubHelpCommand(c *client, _ [][]byte) {
	c.help("PUBSUB",
		"CHANNELS [<pattern>]",
		"    The channels with subscribers that match the pattern (default: all).",
		"NUMPAT",
		"    The number of patterns with subscribers.",
		"NUMSUB [<channel> ...]",
		"    The number of subscribers of each channel, without patterns.")
}
