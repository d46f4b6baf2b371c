package redis

import (
	"math"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/redis/stream"
)

func streamCommands() []*command {
	const group = "stream"
	const perID = "O(1) for each ID"
	vague := []string{"nondeterministic_output"}
	rangeOf := "O(N), N the number of entries returned"
	return []*command{
		{name: "xadd", arity: -5, flags: flagWrite | flagDenyOOM | flagFast, cats: catStream,
			keys: []keySpec{{flags: keyRW | keyUpdate, first: 1, step: 1, notes: "UPDATE instead of INSERT because of the optional trimming feature"}},
			tips: vague, run: xaddCommand,
			doc: doc{"Adds an entry to a stream.", "5.0.0", group, "O(1); O(N) to trim N entries", "", ""}},
		{name: "xdel", arity: -3, flags: flagWrite | flagFast, cats: catStream, keys: oneKey(keyRW | keyDelete), run: xdelCommand,
			doc: doc{"Deletes entries by their IDs.", "5.0.0", group, perID, "", ""}},
		{name: "xlen", arity: 2, flags: flagReadonly | flagFast, cats: catStream, keys: oneKey(keyRO), run: xlenCommand,
			doc: doc{"Counts the entries of a stream.", "5.0.0", group, "O(1)", "", ""}},
		{name: "xrange", arity: -4, flags: flagReadonly, cats: catStream, keys: oneKey(keyRO | keyAccess), run: xrangeCommand,
			doc: doc{"Returns the entries in a range of IDs.", "5.0.0", group, rangeOf, "", ""}},
		{name: "xrevrange", arity: -4, flags: flagReadonly, cats: catStream, keys: oneKey(keyRO | keyAccess), run: xrevrangeCommand,
			doc: doc{"Returns the entries in a range of IDs, the last one first.", "5.0.0", group, rangeOf, "", ""}},
		{name: "xsetid", arity: -3, flags: flagWrite | flagDenyOOM | flagFast, cats: catStream, keys: oneKey(keyRW | keyUpdate), run: xsetidCommand,
			doc: doc{"Sets the last ID of a stream. It is for copies of streams.", "5.0.0", group, "O(1)", "", ""}},
		{name: "xtrim", arity: -4, flags: flagWrite, cats: catStream, keys: oneKey(keyRW | keyDelete), tips: vague, run: xtrimCommand,
			doc: doc{"Deletes entries from the beginning of a stream.", "5.0.0", group, "O(N), N the number of deleted entries", "", ""}},
	}
}

const (
	errStreamID   = "ERR Invalid stream ID specified as stream command argument"
	errStartRange = "ERR invalid start ID for the interval"
	errEndRange   = "ERR invalid end ID for the interval"
	errStreamSize = "ERR Elements are too large to be stored"
)

func streamEncoding(store.Item) string { return "stream" }

// streamLimits returns the present limits of blocks.
func (c *client) streamLimits() stream.Limits {
	config := &c.server.config
	return stream.Limits{Bytes: int(min(config.streamBytes, math.MaxInt)), Entries: int(min(config.streamEntries, math.MaxInt))}
}

// stream returns the stream of an Item, to read. It must be one.
func (db *database) stream(it store.Item) stream.Stream {
	return stream.Open(db.keys.Cells(), it.Root())
}

// editStream returns the stream of an Item, to change. It must be one.
func (db *database) editStream(it store.Item) stream.Stream {
	db.keys.Changing(it)
	return db.stream(it)
}

// createStream gives a key that does not exist an empty stream.
func (db *database) createStream(key []byte) stream.Stream {
	s := stream.New(db.keys.Cells())
	db.keys.Put(key, store.NodeValue(store.Stream, s.Root(), false), store.NoDeadline)
	return s
}

// idArg parses an ID, without - and +. It replies with an error if it is none. missing
// stands for a second number that is not there.
func (c *client) idArg(arg []byte, missing uint64) (id stream.ID, ok bool) {
	if id, ok = stream.Parse(arg, missing); !ok {
		c.fail(errStreamID)
	}
	return id, ok
}

// boundArg is idArg for a bound, which may be - or +.
func (c *client) boundArg(arg []byte, missing uint64) (id stream.ID, ok bool) {
	switch string(cString(arg, len(arg))) {
	case "-":
		return stream.ID{}, true
	case "+":
		return stream.MaxID, true
	}
	return c.idArg(arg, missing)
}

// startArg parses the first ID of a range, which is not in it if a bracket precedes it.
func (c *client) startArg(arg []byte) (id stream.ID, ok bool) {
	if len(arg) < 2 || arg[0] != '(' {
		return c.boundArg(arg, 0)
	}
	if id, ok = c.idArg(arg[1:], 0); !ok {
		return id, false
	}
	if id, ok = id.Next(); !ok {
		c.fail(errStartRange)
	}
	return id, ok
}

// endIDArg parses the last ID of a range.
func (c *client) endIDArg(arg []byte) (id stream.ID, ok bool) {
	if len(arg) < 2 || arg[0] != '(' {
		return c.boundArg(arg, math.MaxUint64)
	}
	if id, ok = c.idArg(arg[1:], math.MaxUint64); !ok {
		return id, false
	}
	if id, ok = id.Prev(); !ok {
		c.fail(errEndRange)
	}
	return id, ok
}

// idArgs parses IDs.
func (c *client) idArgs(args [][]byte) (ids []stream.ID, ok bool) {
	ids = make([]stream.ID, len(args))
	for i, arg := range args {
		if ids[i], ok = c.idArg(arg, 0); !ok {
			return nil, false
		}
	}
	return ids, true
}

// xaddOptions are the options of XADD and XTRIM.
type xaddOptions struct {
	trim     stream.Trim
	trims    bool
	limited  bool // LIMIT was given
	existing bool // NOMKSTREAM
	id       stream.ID
	given    bool // the ID was: it is not *
	auto     bool // but for its second number
}

// parse reads options, and for XADD the ID. It returns the index behind them.
func (o *xaddOptions) parse(c *client, args [][]byte, xadd bool) (i int, ok bool) {
	for i = 2; i < len(args); i++ {
		arg, more := args[i], len(args)-1-i
		switch {
		case xadd && string(cString(arg, 2)) == "*" && len(cString(arg, len(arg))) == 1:
			return i, o.complete(c, xadd)
		case (isWord(arg, "MAXLEN") || isWord(arg, "MINID")) && more > 0:
			n, ok := o.parseTrim(c, args[i:])
			if !ok {
				return 0, false
			}
			i += n
		case isWord(arg, "LIMIT") && more > 0:
			limit, ok := c.int64Arg(args[i+1])
			if !ok {
				return 0, false
			}
			if limit < 0 {
				c.fail("ERR The LIMIT argument must be >= 0.")
				return 0, false
			}
			o.trim.Limit, o.limited = int(min(limit, math.MaxInt)), true
			i++
		case xadd && isWord(arg, "NOMKSTREAM"):
			o.existing = true
		case xadd:
			if o.id, o.auto, ok = stream.ParseAuto(arg); !ok {
				c.fail(errStreamID)
				return 0, false
			}
			o.given = true
			return i, o.complete(c, xadd)
		default:
			c.fail(errSyntax)
			return 0, false
		}
	}
	return i, o.complete(c, xadd)
}

// parseTrim reads MAXLEN or MINID, and returns the number of arguments behind the word.
func (o *xaddOptions) parseTrim(c *client, args [][]byte) (n int, ok bool) {
	if o.trims {
		c.fail("ERR syntax error, MAXLEN and MINID options at the same time are not compatible")
		return 0, false
	}
	o.trims, o.trim.Approx, n = true, false, 1
	if len(args) >= 3 {
		switch string(args[1]) {
		case "~":
			o.trim.Approx = true
			n = 2
		case "=":
			n = 2
		}
	}
	if o.trim.ByID = isWord(args[0], "MINID"); o.trim.ByID {
		o.trim.Min, ok = c.idArg(args[n], 0)
		return n, ok
	}
	length, ok := c.int64Arg(args[n])
	if !ok {
		return 0, false
	}
	if length < 0 {
		c.fail("ERR The MAXLEN argument must be >= 0.")
		return 0, false
	}
	o.trim.Len = int(min(length, math.MaxInt))
	return n, true
}

// complete checks the options together, and sets the limit of an approximate trim.
func (o *xaddOptions) complete(c *client, xadd bool) bool {
	switch {
	case o.trim.Limit != 0 && !o.trims:
		c.fail("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")
		return false
	case !xadd && !o.trims:
		c.fail("ERR syntax error, XTRIM must be called with a trimming strategy")
		return false
	case o.limited && !o.trim.Approx:
		c.fail("ERR syntax error, LIMIT cannot be used without the special ~ option")
		return false
	case o.trim.Approx && !o.limited:
		const fewest, most = 10_000, 1_000_000
		if entries := c.server.config.streamEntries; entries <= 0 {
			o.trim.Limit = fewest
		} else {
			o.trim.Limit = int(min(entries, most/100) * 100)
		}
	}
	return true
}

func xaddCommand(c *client, args [][]byte) {
	var o xaddOptions
	i, ok := o.parse(c, args, true)
	if !ok {
		return
	}
	key := args[1]
	if i++; len(args)-i < 2 || (len(args)-i)%2 != 0 {
		c.fail(wrongArity(c.server.commands.own("xadd")))
		return
	}
	pairs := args[i:]
	if o.given && !o.auto && o.id.IsZero() {
		c.fail("ERR The ID specified in XADD must be greater than 0-0")
		return
	}
	it := c.db.find(key)
	if !c.typed(it, store.Stream) {
		return
	}
	if !it.Exists() && o.existing {
		c.Null()
		return
	}
	var last stream.ID
	if it.Exists() {
		last = c.db.stream(it).Last()
	}
	id, failure := o.newID(c, last, pairs)
	if failure != "" {
		c.fail(failure)
		return
	}
	var s stream.Stream
	if it.Exists() {
		s = c.db.editStream(it)
	} else {
		s = c.db.createStream(key)
	}
	s.Add(id, pairs, c.streamLimits())
	c.streamID(id)
	c.changed(key)
	c.notify(eventStream, "xadd", key)
	if o.trims && s.Trim(&o.trim) > 0 {
		c.notify(eventStream, "xtrim", key)
	}
	c.db.ready(key)
}

// newID returns the ID of a new entry, or the reason why there is none.
func (o *xaddOptions) newID(c *client, last stream.ID, pairs [][]byte) (id stream.ID, failure string) {
	const small = "ERR The ID specified in XADD is equal or smaller than the target stream top item"
	if last == stream.MaxID {
		return id, "ERR The stream has exhausted the last possible ID, unable to add more items"
	}
	switch {
	case !o.given:
		if id = (stream.ID{MS: uint64(c.db.space.now)}); id.MS <= last.MS {
			id, _ = last.Next()
		}
	case o.auto && o.id.MS == last.MS:
		if last.Seq == math.MaxUint64 {
			return id, small
		}
		id, _ = last.Next()
	default:
		id = o.id
	}
	if !last.Less(id) {
		return id, small
	}
	size := 0
	for _, v := range pairs {
		size += len(v)
	}
	if size > stream.MaxEntry {
		return id, errStreamSize
	}
	return id, ""
}

func xtrimCommand(c *client, args [][]byte) {
	var o xaddOptions
	if _, ok := o.parse(c, args, false); !ok {
		return
	}
	it := c.db.find(args[1])
	switch {
	case !it.Exists():
		c.Int(0)
	case c.typed(it, store.Stream):
		n := c.db.editStream(it).Trim(&o.trim)
		if n > 0 {
			c.changedBy(args[1], n)
			c.notify(eventStream, "xtrim", args[1])
		}
		c.Int(int64(n))
	}
}

func xdelCommand(c *client, args [][]byte) {
	it := c.db.find(args[1])
	if !it.Exists() {
		c.Int(0)
		return
	}
	if !c.typed(it, store.Stream) {
		return
	}
	ids, ok := c.idArgs(args[2:])
	if !ok {
		return
	}
	n := c.db.editStream(it).Erase(ids)
	if n > 0 {
		c.changedBy(args[1], n)
		c.notify(eventStream, "xdel", args[1])
	}
	c.Int(int64(n))
}

func xlenCommand(c *client, args [][]byte) {
	it := c.db.read(args[1])
	switch {
	case !it.Exists():
		c.Int(0)
	case c.typed(it, store.Stream):
		c.Int(int64(c.db.stream(it).Len()))
	}
}

// xsetidOptions are the options of XSETID.
type xsetidOptions struct {
	added  int64 // -1: none
	erased stream.ID
}

func (o *xsetidOptions) parse(c *client, id stream.ID, args [][]byte) (ok bool) {
	o.added = -1
	for ; len(args) > 0; args = args[2:] {
		switch {
		case isWord(args[0], "ENTRIESADDED") && len(args) > 1:
			if o.added, ok = c.int64Arg(args[1]); !ok {
				return false
			}
			if o.added < 0 {
				c.fail("ERR entries_added must be positive")
				return false
			}
		case isWord(args[0], "MAXDELETEDID") && len(args) > 1:
			if o.erased, ok = c.idArg(args[1], 0); !ok {
				return false
			}
			if id.Less(o.erased) {
				c.fail("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")
				return false
			}
		default:
			c.fail(errSyntax)
			return false
		}
	}
	return true
}

func xsetidCommand(c *client, args [][]byte) {
	id, ok := c.idArg(args[2], 0)
	if !ok {
		return
	}
	var o xsetidOptions
	if !o.parse(c, id, args[3:]) {
		return
	}
	it := c.db.find(args[1])
	if !it.Exists() {
		c.fail(errNoSuchKey)
		return
	}
	if !c.typed(it, store.Stream) {
		return
	}
	s := c.db.editStream(it)
	if s.Len() > 0 {
		switch {
		case id.Less(s.Top()):
			c.fail("ERR The ID specified in XSETID is smaller than the target stream top item")
			return
		case o.added != -1 && int64(s.Len()) > o.added:
			c.fail("ERR The entries_added specified in XSETID is smaller than the target stream length")
			return
		}
	}
	s.Rewind(id)
	if o.added != -1 {
		s.SetAdded(o.added)
	}
	if !o.erased.IsZero() {
		s.SetErased(o.erased)
	}
	c.db.space.dirty++
	c.notify(eventStream, "xsetid", args[1])
	c.ok()
}
