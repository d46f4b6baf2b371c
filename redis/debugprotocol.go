package redis

import "github.com/rondo-go/rondo/resp"

// debugReply replies with a value of a type, so that a client's reader can be
// tested.
func (c *client) debugReply(kind []byte) {
	three := func(element func(i int)) {
		for i := range 3 {
			element(i)
		}
	}
	ints := func(i int) { c.Int(int64(i)) }
	switch {
	case isWord(kind, "STRING"):
		c.BulkString("Hello World")
	case isWord(kind, "INTEGER"):
		c.Int(12345)
	case isWord(kind, "DOUBLE"):
		c.Double(3.141)
	case isWord(kind, "BIGNUM"):
		c.BigNumber("1234567999999999999999999999999999999")
	case isWord(kind, "NULL"):
		c.Null()
	case isWord(kind, "ARRAY"):
		c.Array(3)
		three(ints)
	case isWord(kind, "SET"):
		c.Set(3)
		three(ints)
	case isWord(kind, "MAP"):
		c.Map(3)
		three(func(i int) {
			c.Int(int64(i))
			c.Bool(i == 1)
		})
	case isWord(kind, "ATTRIB"):
		if c.Proto == 3 {
			c.B = resp.AppendAttribute(c.B, 1)
			c.BulkString("key-popularity")
			c.Array(2)
			c.BulkString("key:123")
			c.Int(90)
		}
		c.BulkString("Some real reply following the attribute")
	case isWord(kind, "PUSH"):
		if c.Proto != 3 {
			c.fail("ERR RESP2 is not supported by this command")
			return
		}
		c.Push(2)
		c.BulkString("server-cpu-usage")
		c.Int(42)
		c.BulkString("Some real reply following the push reply")
	case isWord(kind, "VERBATIM"):
		c.Verbatim("txt", "This is a verbatim\nstring")
	case isWord(kind, "TRUE"), isWord(kind, "FALSE"):
		c.Bool(isWord(kind, "TRUE"))
	default:
		c.fail("ERR Wrong protocol type name. Please use one of the following: string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false")
	}
}
