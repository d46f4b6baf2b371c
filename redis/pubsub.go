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
		{name: "spublish", arity: 3, flags: flags | flagFast, keys: oneKey(keyNot), run: spublishCommand,
			doc: doc{"Sends a message to a shard channel.", "7.0.0", group, "O(N), N the number of receivers", "", ""}},
		{name: "ssubscribe", arity: -2, flags: flags | flagNoscript | flagInSubscribed, keys: allKeys(keyNot, 1), run: ssubscribeCommand,
			doc: doc{"Subscribes to shard channels.", "7.0.0", group, "O(1) a channel", "", ""}},
		{name: "subscribe", arity: -2, flags: flags | flagNoscript | flagInSubscribed, run: subscribeCommand,
			doc: doc{"Subscribes to channels.", "2.0.0", group, "O(1) a channel", "", ""}},
		{name: "sunsubscribe", arity: -1, flags: flags | flagNoscript | flagInSubscribed, keys: allKeys(keyNot, 1), run: sunsubscribeCommand,
			doc: doc{"Ends subscriptions to shard channels, by default to all.", "7.0.0", group, "O(1) a channel", "", ""}},
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
		{name: "pubsub|shardchannels", arity: -2, flags: flags, run: pubsubShardchannelsCommand,
			doc: doc{"Returns the shard channels that have subscribers.", "7.0.0", group, "O(N), N the number of shard channels", "", ""}},
		{name: "pubsub|shardnumsub", arity: -2, flags: flags, run: pubsubShardnumsubCommand,
			doc: doc{"Counts the subscribers of shard channels.", "7.0.0", group, "O(1) a channel", "", ""}},
	}
}

// subscribeTo adds subscriptions and confirms each.
func (c *client) subscribeTo(names [][]byte, k topicKind) {
	if c.pubsub == nil {
		c.pubsub = new(subscriptions)
		c.idleChanged() // subscribers have no idle timeout
	}
	for _, name := range names {
		c.pubsub.set(k).subscribe(c, c.server.broker.topics(k), name)
		c.confirm(k, "subscribe", name)
	}
}

// confirm tells the client that a subscription has begun or ended. A nil name
// stands for none.
func (c *client) confirm(k topicKind, word string, name []byte) {
	c.unsilenced(func() {
		c.Push(3)
		c.BulkString(k.verb(word))
		if name != nil {
			c.Bulk(name)
		} else {
			c.Null()
		}
		c.Int(int64(c.pubsub.count(k)))
	})
}

// unsubscribeFrom ends the named subscriptions, or all if there are no names,
// and confirms each.
func (c *client) unsubscribeFrom(names [][]byte, k topicKind) {
	const word = "unsubscribe"
	var set *subscriptionSet
	if c.pubsub != nil {
		set = c.pubsub.set(k)
	}
	if len(names) == 0 && set != nil {
		for _, sub := range set.list {
			names = append(names, []byte(sub.topic.name))
		}
	}
	if len(names) == 0 {
		c.confirm(k, word, nil)
		return
	}
	for _, name := range names {
		if set != nil {
			if sub := set.byName[string(name)]; sub != nil {
				set.end(c.server.broker.topics(k), sub)
			}
		}
		c.confirm(k, word, name)
	}
	if c.pubsub != nil && c.pubsub.total() == 0 {
		c.pubsub = nil
		c.idleChanged()
	}
}

// endSubscriptions ends all subscriptions without confirming.
func (c *client) endSubscriptions() {
	if c.pubsub == nil {
		return
	}
	for _, k := range []topicKind{ofChannels, ofPatterns, ofShards} {
		for set := c.pubsub.set(k); len(set.list) > 0; {
			set.end(c.server.broker.topics(k), set.list[len(set.list)-1])
		}
	}
	c.pubsub = nil
}

func subscribeCommand(c *client, args [][]byte) { c.subscribeTo(args[1:], ofChannels) }

func psubscribeCommand(c *client, args [][]byte) { c.subscribeTo(args[1:], ofPatterns) }

// ssubscribeCommand refuses to run within a transaction, as Redis does; SUBSCRIBE may.
func ssubscribeCommand(c *client, args [][]byte) {
	if c.executing {
		c.fail("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
		return
	}
	c.subscribeTo(args[1:], ofShards)
}

func unsubscribeCommand(c *client, args [][]byte) { c.unsubscribeFrom(args[1:], ofChannels) }

func punsubscribeCommand(c *client, args [][]byte) { c.unsubscribeFrom(args[1:], ofPatterns) }

func sunsubscribeCommand(c *client, args [][]byte) { c.unsubscribeFrom(args[1:], ofShards) }

func spublishCommand(c *client, args [][]byte) {
	c.Int(int64(c.server.broker.publishShard(args[1], args[2])))
}

func publishCommand(c *client, args [][]byte) {
	c.Int(int64(c.server.broker.publish(args[1], args[2])))
}

func pubsubChannelsCommand(c *client, args [][]byte) { c.listChannels(args, ofChannels) }

func pubsubShardchannelsCommand(c *client, args [][]byte) { c.listChannels(args, ofShards) }

// listChannels replies with the channels that have subscribers.
func (c *client) listChannels(args [][]byte, k topicKind) {
	if len(args) > 3 {
		c.subcommandSyntax(args)
		return
	}
	c.array(func() (n int) {
		for _, t := range c.server.broker.topics(k).list {
			if len(args) == 2 || glob(args[2], t.name, false) {
				c.BulkString(t.name)
				n++
			}
		}
		return n
	})
}

func pubsubNumsubCommand(c *client, args [][]byte) { c.countSubscribers(args[2:], ofChannels) }

func pubsubShardnumsubCommand(c *client, args [][]byte) { c.countSubscribers(args[2:], ofShards) }

// countSubscribers replies with each channel and the number of its subscribers.
func (c *client) countSubscribers(names [][]byte, k topicKind) {
	c.Array(2 * len(names))
	for _, name := range names {
		c.Bulk(name)
		n := 0
		if t := c.server.broker.topics(k).byName[string(name)]; t != nil {
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
		"    The number of subscribers of each channel, without patterns.",
		"SHARDCHANNELS [<pattern>]",
		"    The shard channels with subscribers that match the pattern (default: all).",
		"SHARDNUMSUB [<channel> ...]",
		"    The number of subscribers of each shard channel.")
}
