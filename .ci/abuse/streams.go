package main

import (
	"fmt"
	"strconv"
	"strings"
)

var streamCases = []testCase{
	{name: "a stream with 1,000,000 pending entries", peak: 900, run: (*attack).pendingEntries},
	{name: "10,000 groups and 100,000 consumers", peak: 700, run: (*attack).manyGroups},
}

// pendingEntries makes a stream of which all entries are pending, looks at them in all ways, and
// deletes it.
func (a *attack) pendingEntries() error {
	c, err := dial(a.server.address)
	if err != nil {
		return err
	}
	defer c.Close()
	n := scaled(1000000)
	count := strconv.Itoa(n)
	fill := func() error {
		if err := c.pipeline(n, func(i int) []string { return []string{"XADD", "s", strconv.Itoa(i+1) + "-1", "field", "a value"} }); err != nil {
			return err
		}
		if err := a.want(c, "+OK", "XGROUP", "CREATE", "s", "g", "0"); err != nil {
			return err
		}
		return c.pipeline((n+999)/1000, func(i int) []string {
			return []string{"XREADGROUP", "GROUP", "g", "consumer" + strconv.Itoa(i%10), "COUNT", "1000", "STREAMS", "s", ">"}
		})
	}
	one := func(begin string, args ...string) func() error {
		return func() error { return a.want(c, begin, args...) }
	}
	for _, s := range []struct {
		name string
		f    func() error
	}{
		{"XADD, XREADGROUP", fill},
		{"XPENDING", one("*4", "XPENDING", "s", "g")},
		{"XPENDING of all", one("*"+count, "XPENDING", "s", "g", "-", "+", count)},
		{"XPENDING of a consumer, IDLE", one("*0", "XPENDING", "s", "g", "IDLE", "99999999", "-", "+", count, "consumer7")},
		{"XINFO STREAM FULL", one("*", "XINFO", "STREAM", "s", "FULL")},
		{"XINFO STREAM FULL COUNT 0", one("*", "XINFO", "STREAM", "s", "FULL", "COUNT", "0")},
		{"XRANGE of all", one("*"+count, "XRANGE", "s", "-", "+")},
		{"XAUTOCLAIM of all, JUSTID", one("*3", "XAUTOCLAIM", "s", "g", "thief", "0", "0", "COUNT", count, "JUSTID")},
		{"XAUTOCLAIM of all", one("*3", "XAUTOCLAIM", "s", "g", "thief2", "0", "0", "COUNT", count)},
		{"XGROUP DELCONSUMER", one(":"+count, "XGROUP", "DELCONSUMER", "s", "g", "thief2")},
		{"DEL", one(":1", "DEL", "s")},
		{"XADD, XREADGROUP again", fill},
		{"DUMP", func() error {
			if head, err := c.do("DUMP", "s"); err != nil || head[0] != '$' {
				return fmt.Errorf("%q: %w", head, err)
			}
			return nil
		}},
		{"COPY", one(":1", "COPY", "s", "s2")},
		{"XTRIM MAXLEN 0", one(":"+count, "XTRIM", "s", "MAXLEN", "0")},
		{"XAUTOCLAIM of deleted entries", one("*3", "XAUTOCLAIM", "s", "g", "thief", "0", "0", "COUNT", count)},
		{"XGROUP DESTROY", one(":1", "XGROUP", "DESTROY", "s2", "g")},
		{"SET over it", one("+OK", "SET", "s", "v")},
		{"RENAME over it", one("+OK", "RENAME", "s", "s2")},
		{"FLUSHALL", one("+OK", "FLUSHALL")},
	} {
		if err := a.step(s.name, s.f); err != nil {
			return err
		}
	}
	return nil
}

func (a *attack) manyGroups() error {
	c, err := dial(a.server.address)
	if err != nil {
		return err
	}
	defer c.Close()
	groups, consumers := scaled(10000), scaled(100000)
	one := func(begin string, args ...string) func() error {
		return func() error { return a.want(c, begin, args...) }
	}
	for _, s := range []struct {
		name string
		f    func() error
	}{
		{"the stream", one("$", "XADD", "s", "*", "f", "v")},
		{"groups", func() error {
			return c.pipeline(groups, func(i int) []string { return []string{"XGROUP", "CREATE", "s", "g" + strconv.Itoa(i), "0"} })
		}},
		{"consumers of one", func() error {
			return c.pipeline(consumers, func(i int) []string {
				return []string{"XGROUP", "CREATECONSUMER", "s", "g0", strings.Repeat("c", 20) + strconv.Itoa(i*7919%consumers)}
			})
		}},
		{"XINFO GROUPS", one("*"+strconv.Itoa(groups), "XINFO", "GROUPS", "s")},
		{"XINFO CONSUMERS", one("*"+strconv.Itoa(consumers), "XINFO", "CONSUMERS", "s", "g0")},
		{"XINFO STREAM FULL", one("*", "XINFO", "STREAM", "s", "FULL")},
		{"XGROUP DESTROY", one(":1", "XGROUP", "DESTROY", "s", "g0")},
		{"DEL", one(":1", "DEL", "s")},
	} {
		if err := a.step(s.name, s.f); err != nil {
			return err
		}
	}
	return nil
}
