package redis

import (
	"github.com/rondo-go/rondo/redis/hll"
	"github.com/rondo-go/rondo/redis/store"
)

func hyperloglogCommands() []*command {
	const group = "hyperloglog"
	return []*command{
		{name: "pfadd", arity: -2, flags: flagWrite | flagDenyOOM | flagFast, cats: catHyperLogLog,
			keys: oneKey(keyRW | keyInsert), run: pfaddCommand,
			doc: doc{"Adds elements to a HyperLogLog.", "2.8.9", group, "O(N), N the number of elements", "", ""}},
		{name: "pfcount", arity: -2, flags: flagReadonly, cats: catHyperLogLog,
			keys: []keySpec{{flags: keyRW | keyAccess, first: 1, last: -1, step: 1,
				notes: "RW because it may change the internal representation of the key, and propagate to replicas"}},
			run: pfcountCommand,
			doc: doc{"Estimates how many different elements HyperLogLogs have in all.", "2.8.9", group, "O(1) for one key; O(N), N the number of keys", "", ""}},
		{name: "pfdebug", arity: 3, flags: flagWrite | flagDenyOOM | flagAdmin, cats: catHyperLogLog,
			keys: []keySpec{{flags: keyRW | keyAccess, first: 2, step: 1}}, run: pfdebugCommand,
			doc: doc{"Shows the inside of a HyperLogLog.", "2.8.9", group, "N/A", "", ""}},
		{name: "pfmerge", arity: -2, flags: flagWrite | flagDenyOOM, cats: catHyperLogLog,
			keys: []keySpec{{flags: keyRW | keyAccess | keyInsert, first: 1, step: 1}, {flags: keyRO | keyAccess, first: 2, last: -1, step: 1}},
			run:  pfmergeCommand,
			doc:  doc{"Adds the elements of HyperLogLogs to another one.", "2.8.9", group, "O(N), N the number of HyperLogLogs", "", ""}},
		{name: "pfselftest", arity: 1, flags: flagAdmin, cats: catHyperLogLog, run: pfselftestCommand,
			doc: doc{"Tests the server's HyperLogLogs.", "2.8.9", group, "N/A", "", ""}},
	}
}

const errCorruptHLL = "INVALIDOBJ Corrupted HLL object detected"

// hll returns the bytes of an Item that is a HyperLogLog. If it is none, hll replies with
// an error.
func (c *client) hll(it store.Item) ([]byte, bool) {
	if !c.isString(it) {
		return nil, false
	}
	if it.Form() != store.Integer {
		if b := it.Bytes(); hll.Valid(b) {
			return b, true
		}
	}
	c.fail("WRONGTYPE Key is not a valid HyperLogLog string value.")
	return nil, false
}

// hllEdit changes a HyperLogLog: a dense one in place, a new or sparse one in a copy. finish
// must follow.
type hllEdit struct {
	c   *client
	key []byte
	it  store.Item // zero: the HyperLogLog is new
	b   []byte
	// copied says that b is a copy; otherwise open says that b may be written.
	copied, open bool
	changed      bool
}

// editHLL begins to change a HyperLogLog. The Item may be zero; it must not change before
// finish. ok is false if the reply is an error.
func (c *client) editHLL(key []byte, it store.Item) (e hllEdit, ok bool) {
	e = hllEdit{c: c, key: key, it: it}
	if !it.Exists() {
		e.b, e.copied, e.changed = hll.Init(c.db.space.takeScratch()), true, true
		return e, true
	}
	if e.b, ok = c.hll(it); !ok {
		return e, false
	}
	if len(e.b) > hll.MaxSize {
		c.fail(errCorruptHLL) // Redis would go on, but not copy it
		return e, false
	}
	if !it.Alt() {
		c.db.keys.SetAlt(it, true) // as in Redis, from here on it is raw
	}
	if !hll.Dense(e.b) {
		e.b, e.copied = append(c.db.space.takeScratch(), e.b...), true
	}
	return e, true
}

// write makes b writable.
func (e *hllEdit) write() {
	if !e.copied && !e.open {
		e.it, e.b = e.c.db.keys.Resize(e.it, len(e.b))
		e.open = true
	}
	e.changed = true
}

// set raises the rank of a register. ok is false if the HyperLogLog is corrupt.
func (e *hllEdit) set(register int, rank byte) (changed, ok bool) {
	if !e.copied {
		if hll.Rank(e.b, register) >= rank {
			return false, true
		}
		e.write()
	}
	e.b, changed, ok = hll.Set(e.b, register, rank, e.c.server.config.hllSparse)
	e.changed = e.changed || changed
	return changed, ok
}

// toDense makes the encoding dense. It replies with an error if that fails.
func (e *hllEdit) toDense() (ok bool) {
	if hll.Dense(e.b) {
		return true
	}
	b, ok := hll.ToDense(e.b)
	if !ok {
		e.c.fail(errCorruptHLL)
		return false
	}
	e.b, e.changed = b, true
	return true
}

// finish stores a copy that was changed. The key keeps its deadline.
func (e *hllEdit) finish() {
	if !e.copied {
		return
	}
	if e.changed {
		e.c.db.put(e.key, e.it, store.BytesValue(store.String, e.b, true))
	}
	e.c.db.space.keepScratch(e.b)
}

func pfaddCommand(c *client, args [][]byte) {
	it := c.db.find(args[1])
	e, ok := c.editHLL(args[1], it)
	if !ok {
		return
	}
	updated := 0
	if !it.Exists() {
		updated++
	}
	for _, element := range args[2:] {
		changed, ok := e.set(hll.Hash(element))
		if !ok {
			e.finish() // the elements before stay
			c.fail(errCorruptHLL)
			return
		}
		if changed {
			updated++
		}
	}
	if updated == 0 {
		e.finish()
		c.Int(0)
		return
	}
	hll.Forget(e.b)
	e.finish()
	c.db.space.dirty += int64(updated - 1)
	c.changed(args[1])
	c.notify(eventString, "pfadd", args[1])
	c.Int(1)
}

// ranks returns registers of rank 0.
func (k *keyspace) ranks() *hll.Ranks {
	if k.hllRanks == nil {
		k.hllRanks = new(hll.Ranks)
	}
	clear(k.hllRanks[:])
	return k.hllRanks
}

// mergeHLLs returns the highest ranks of HyperLogLogs, of which some may not exist, and
// whether one is dense. ok is false if the reply is an error.
func (c *client) mergeHLLs(keys [][]byte) (ranks *hll.Ranks, dense, ok bool) {
	ranks = c.db.space.ranks()
	for _, key := range keys {
		it := c.db.read(key)
		if !it.Exists() {
			continue
		}
		b, ok := c.hll(it)
		if !ok {
			return nil, false, false
		}
		if !ranks.Merge(b) {
			c.fail(errCorruptHLL)
			return nil, false, false
		}
		dense = dense || hll.Dense(b)
	}
	return ranks, dense, true
}

func pfcountCommand(c *client, args [][]byte) {
	if len(args) > 2 {
		if ranks, _, ok := c.mergeHLLs(args[1:]); ok {
			c.Int(ranks.Count())
		}
		return
	}
	it := c.db.read(args[1])
	if !it.Exists() {
		c.Int(0)
		return
	}
	b, ok := c.hll(it)
	if !ok {
		return
	}
	if !it.Alt() {
		c.db.keys.SetAlt(it, true)
	}
	n, ok := hll.Estimate(b)
	if ok {
		c.Int(n)
		return
	}
	if n, ok = hll.Count(b); !ok {
		c.fail(errCorruptHLL)
		return
	}
	_, b = c.db.keys.Resize(it, len(b))
	hll.SetEstimate(b, n)
	c.changed(args[1])
	c.Int(n)
}

func pfmergeCommand(c *client, args [][]byte) {
	ranks, dense, ok := c.mergeHLLs(args[1:])
	if !ok {
		return
	}
	e, ok := c.editHLL(args[1], c.db.find(args[1]))
	if !ok {
		return
	}
	if dense && !e.toDense() {
		e.finish()
		return
	}
	e.write()
	for register, rank := range ranks {
		if hll.Dense(e.b) {
			ranks.Write(e.b) // they are at least those that it had
			break
		}
		if rank > 0 {
			e.set(register, rank)
		}
	}
	hll.Forget(e.b)
	e.finish()
	c.changed(args[1])
	c.notify(eventString, "pfadd", args[1])
	c.ok()
}

func pfdebugCommand(c *client, args [][]byte) {
	it := c.db.find(args[2])
	if !it.Exists() {
		c.fail("ERR The specified key does not exist")
		return
	}
	e, ok := c.editHLL(args[2], it)
	if !ok {
		return
	}
	switch what := args[1]; {
	case isWord(what, "GETREG"):
		if e.toDense() {
			c.Array(hll.Registers)
			for i := range hll.Registers {
				c.Int(int64(hll.Rank(e.b, i)))
			}
		}
	case isWord(what, "DECODE") && hll.Dense(e.b):
		c.fail("ERR HLL encoding is not sparse")
	case isWord(what, "DECODE"):
		c.value(hll.AppendRuns(nil, e.b))
	case isWord(what, "ENCODING") && hll.Dense(e.b):
		c.Simple("dense")
	case isWord(what, "ENCODING"):
		c.Simple("sparse")
	case isWord(what, "TODENSE") && hll.Dense(e.b):
		c.Int(0)
	case isWord(what, "TODENSE"):
		if e.toDense() {
			c.Int(1)
		}
	default:
		c.fail("ERR Unknown PFDEBUG subcommand '" + string(cString(what, len(what))) + "'")
	}
	if e.changed {
		c.db.space.dirty++
	}
	e.finish()
}

func pfselftestCommand(c *client, _ [][]byte) {
	if err := hll.SelfTest(c.server.config.hllSparse); err != nil {
		c.fail("ERR TESTFAILED " + err.Error())
		return
	}
	c.ok()
}
