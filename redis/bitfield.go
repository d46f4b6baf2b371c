package redis

import "github.com/rondo-go/rondo/resp"

// A bitfieldOp is a subcommand of BITFIELD.
type bitfieldOp struct {
	kind     bitfieldKind
	overflow overflowMode
	signed   bool
	width    uint // in bits
	at       uint64
	value    int64 // to set or to add
}

type bitfieldKind uint8

const (
	bitfieldGet bitfieldKind = iota
	bitfieldSet
	bitfieldIncr
)

type overflowMode uint8

const (
	overflowWrap overflowMode = iota
	overflowSaturate
	overflowFail
)

// bitfieldKeyFlags tells what a request does to the key, as far as Redis looks.
func bitfieldKeyFlags(args [][]byte) keyFlags {
	for rest := args[2:]; len(rest) > 0; {
		switch more := len(rest) - 1; {
		case isWord(rest[0], "GET") && more >= 2:
			rest = rest[3:]
		case isWord(rest[0], "OVERFLOW") && more >= 1:
			rest = rest[2:]
		default:
			return keyRW | keyAccess | keyUpdate
		}
	}
	return keyRO | keyAccess
}

func bitfieldCommand(c *client, args [][]byte) { c.bitfield(args, false) }

func bitfieldroCommand(c *client, args [][]byte) { c.bitfield(args, true) }

func (c *client) bitfield(args [][]byte, onlyGet bool) {
	var few [8]bitfieldOp
	ops, ok := c.bitfieldOps(few[:0], args[2:])
	if !ok {
		return
	}
	last, writes := uint64(0), false
	for i := range ops {
		if op := &ops[i]; op.kind != bitfieldGet {
			last, writes = max(last, op.at+uint64(op.width)-1), true
		}
	}
	var b []byte
	grown := false
	switch {
	case !writes:
		it := c.db.read(args[1])
		if !c.isString(it) {
			return
		}
		if it.Exists() {
			b = c.text(it, 0)
		}
	case onlyGet:
		c.fail("ERR BITFIELD_RO only supports the GET subcommand")
		return
	default:
		if b, grown, ok = c.bitsToWrite(args[1], last); !ok {
			return
		}
	}
	c.Array(len(ops))
	changes := 0
	for i := range ops {
		if ops[i].run(c, b, grown) {
			changes++
		}
	}
	if changes > 0 {
		c.db.space.dirty += int64(changes - 1)
		c.changed(args[1])
		c.notify(eventString, "setbit", args[1])
	}
}

// bitfieldOps appends the subcommands of a request. It replies with an error if they are
// wrong.
func (c *client) bitfieldOps(ops []bitfieldOp, args [][]byte) ([]bitfieldOp, bool) {
	mode := overflowWrap
	for len(args) > 0 {
		op := bitfieldOp{overflow: mode}
		n := 4
		switch more := len(args) - 1; {
		case isWord(args[0], "GET") && more >= 2:
			n = 3
		case isWord(args[0], "SET") && more >= 3:
			op.kind = bitfieldSet
		case isWord(args[0], "INCRBY") && more >= 3:
			op.kind = bitfieldIncr
		case isWord(args[0], "OVERFLOW") && more >= 1:
			var ok bool
			if mode, ok = overflowModeOf(args[1]); !ok {
				c.fail("ERR Invalid OVERFLOW type specified")
				return nil, false
			}
			args = args[2:]
			continue
		default:
			c.fail(errSyntax)
			return nil, false
		}
		if !op.parse(c, args[1:n]) {
			return nil, false
		}
		ops = append(ops, op)
		args = args[n:]
	}
	return ops, true
}

func overflowModeOf(name []byte) (overflowMode, bool) {
	switch {
	case isWord(name, "WRAP"):
		return overflowWrap, true
	case isWord(name, "SAT"):
		return overflowSaturate, true
	case isWord(name, "FAIL"):
		return overflowFail, true
	}
	return 0, false
}

// parse parses type and position, and the value of a subcommand that has one. It replies
// with an error if that fails.
func (op *bitfieldOp) parse(c *client, args [][]byte) (ok bool) {
	if op.signed, op.width, ok = parseBitfieldType(args[0]); !ok {
		c.fail("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
		return false
	}
	if op.at, ok = c.bitOffset(args[1], int64(op.width)); !ok {
		return false
	}
	if op.kind != bitfieldGet {
		op.value, ok = c.int64Arg(args[2])
	}
	return ok
}

// parseBitfieldType parses i1 to i64 or u1 to u63.
func parseBitfieldType(arg []byte) (signed bool, width uint, ok bool) {
	most := int64(63)
	switch {
	case len(arg) > 0 && arg[0] == 'i':
		signed, most = true, 64
	case len(arg) == 0 || arg[0] != 'u':
		return false, 0, false
	}
	n, ok := resp.ParseInt(cString(arg[1:], len(arg)))
	return signed, uint(n), ok && n >= 1 && n <= most
}

// run runs the subcommand on the bytes of a string and adds its reply. It reports whether
// the string has changed; grown says that it has for the request.
func (op *bitfieldOp) run(c *client, b []byte, grown bool) (changed bool) {
	old := int64(takeBits(b, op.at, op.width))
	if op.signed {
		old = op.extend(old)
	}
	if op.kind == bitfieldGet {
		c.Int(old)
		return false
	}
	base, by := old, op.value
	if op.kind == bitfieldSet {
		base, by = op.value, 0
	}
	v, over := base+by, op.overflows(base, by)
	if over != 0 {
		switch op.overflow {
		case overflowFail:
			c.Null()
			return false
		case overflowSaturate:
			v = op.limit(over)
		case overflowWrap:
			v = op.wrap(v)
		}
	}
	putBits(b, op.at, op.width, uint64(v))
	if op.kind == bitfieldSet {
		c.Int(old)
	} else {
		c.Int(v)
	}
	return grown || v != old
}

// most returns the largest value of the type.
func (op *bitfieldOp) most() int64 {
	if op.signed {
		return int64(1)<<(op.width-1) - 1
	}
	return int64(1)<<op.width - 1
}

// limit returns the largest value of the type, or the least if over is negative.
func (op *bitfieldOp) limit(over int) int64 {
	switch {
	case over > 0:
		return op.most()
	case op.signed:
		return -op.most() - 1
	}
	return 0
}

// wrap keeps the lowest bits of a value.
func (op *bitfieldOp) wrap(v int64) int64 {
	if op.signed {
		return op.extend(v)
	}
	return v & op.most()
}

// extend makes the highest bit of the type the sign.
func (op *bitfieldOp) extend(v int64) int64 { return v << (64 - op.width) >> (64 - op.width) }

// overflows returns 1 if base+by is above the largest value of the type, -1 if it is below
// the least one, and 0 if it is neither. The differences may wrap around. Then an
// overflow may count as one to the other side, as in Redis.
func (op *bitfieldOp) overflows(base, by int64) int {
	most := op.most()
	up := most - base
	if !op.signed {
		switch value := uint64(base); {
		case value > uint64(most) || by > 0 && by > up:
			return 1
		case by < 0 && by < -base:
			return -1
		}
		return 0
	}
	least := -most - 1
	down := least - base
	narrow := op.width < 64
	switch {
	case base > most || narrow && by > up || base >= 0 && by > 0 && by > up:
		return 1
	case base < least || narrow && by < down || base < 0 && by < 0 && by < down:
		return -1
	}
	return 0
}
