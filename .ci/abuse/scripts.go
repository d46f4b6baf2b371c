package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

var scriptCases = []testCase{
	{name: "endless script, SCRIPT KILL", peak: 64, run: func(a *attack) error { return a.endless("while true do end", time.Second/2, 4) }},
	{name: "endless script that catches errors", peak: 64, run: func(a *attack) error {
		return a.endless("while true do pcall(function() while true do end end) end", time.Second/2, 4)
	}},
	{name: "endless script that calls commands", peak: 64, run: func(a *attack) error {
		return a.endless("while true do redis.call('GET', 'k') end", time.Second/2, 4)
	}},
	{name: "endless script, left alone for 10 s", peak: 64, run: func(a *attack) error { return a.endless("while true do end", 10*time.Second, 1) }},
	{name: "endless script that has written", peak: 64, ends: true, run: (*attack).endlessWriter},
	{name: "endless pattern", peak: 64, rondo: true, run: func(a *attack) error {
		return a.endless("return string.find(string.rep('a', 300000), string.rep('a?', 3000) .. 'b')", time.Second/2, 4)
	}},
	{name: "endless slow instructions", peak: 700, run: func(a *attack) error {
		return a.endless("local s, t = string.rep('x', 4e7), string.rep('x', 4e7) while true do local b = s < t end", time.Second/2, 4)
	}},
	{name: "endless errors behind tail calls", peak: 700, run: func(a *attack) error {
		return a.endless("local function f(n) if n > 0 then return f(n - 1) end while true do pcall(error) end end return f(1e6)", time.Second/2, 4)
	}},
	{name: "endless errors deep in recursion", peak: 700, run: func(a *attack) error {
		return a.endless("local function f(n) if n > 0 then return 1 + f(n - 1) end while true do pcall(error) end end return f(9900)", time.Second/2, 4)
	}},
	{name: "scripts that build a string of 1 GiB", peak: 1100, run: func(a *attack) error {
		return a.scripts(
			"return #string.rep('x', 2^30)",
			"local s = 'x' for i = 1, 30 do s = s .. s end return #s",
			"local t = {} for i = 1, 1024 do t[i] = string.rep('x', 2^20) end return #table.concat(t)",
			"local s = string.rep('x', 2^20) return #string.gsub(s, 'x', string.rep('y', 1024))",
			"local s = 'x' for i = 1, 30 do s = string.format('%s%s', s, s) end return #s",
			"return #cjson.encode({string.rep('x', 2^29), string.rep('x', 2^29)})",
			"return #cmsgpack.pack(string.rep('x', 2^29), string.rep('x', 2^29))")
	}},
	{name: "scripts that build a table of 1 GiB", peak: 1100, run: func(a *attack) error {
		return a.scripts(
			"local t = {} for i = 1, 2^26 do t[i] = i end return #t",
			"local t = {} for i = 1, 2^24 do t['k' .. i] = i end return 1",
			"local t = {} for i = 1, 2^24 do t[i] = {i} end return #t",
			"local t = {} for i = 1, 2^24 do t[i] = function() return i end end return #t",
			"local t = {} for i = 1, 2^20 do t[i] = string.rep('x', 1000) .. i end return #t",
			"local t = {} for i = 1, 2^20 do t[i] = coroutine.create(function() end) end return #t")
	}},
	{name: "deep recursion", peak: 1100, run: func(a *attack) error {
		return a.scripts(
			"local function f(n) return 1 + f(n + 1) end return f(1)",
			"local function f(n) local ok, x = pcall(f, n + 1) return n end return f(1)",
			"local function f() return coroutine.wrap(f)() end return f()",
			"local t = {} for i = 1, 1e5 do t = {t} end return cjson.encode(t)",
			"return cjson.decode(string.rep('[', 1e6))",
			"return cmsgpack.unpack(string.rep('\\145', 1e6))",
			"local t = {} for i = 1, 1e5 do t = {t} end return t",
			"local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) return t[1]",
			"return "+strings.Repeat("(", 1e6)+"1"+strings.Repeat(")", 1e6),
			"return "+strings.Repeat("not ", 1e6)+"1",
			"return "+strings.Repeat("{", 1e6)+strings.Repeat("}", 1e6),
			strings.Repeat("do ", 1e6)+strings.Repeat("end ", 1e6))
	}},
	{name: "100,000 scripts to cache", peak: 1100, run: (*attack).manyScripts},
}

// endless runs a script again and again, and ends each with SCRIPT KILL.
func (a *attack) endless(script string, after time.Duration, times int) error {
	admin, err := dial(a.server.address)
	if err != nil {
		return err
	}
	defer admin.Close()
	if err := a.want(admin, "+OK", "CONFIG", "SET", "busy-reply-threshold", "100"); err != nil {
		return err
	}
	for range times {
		c, err := dial(a.server.address)
		if err != nil {
			return err
		}
		if err := c.send("EVAL", script, "0"); err != nil {
			return err
		}
		c.w.Flush()
		time.Sleep(after)
		if err := a.want(admin, "-BUSY", "GET", "k"); err != nil {
			return err
		}
		if err := a.want(admin, "+OK", "SCRIPT", "KILL"); err != nil {
			return err
		}
		c.SetDeadline(time.Now().Add(10 * time.Second))
		head, err := c.reply()
		c.Close()
		if err != nil || !strings.Contains(head, "killed by user") {
			return fmt.Errorf("the script's reply is %q: %w", head, err)
		}
		if err := a.want(admin, "$-1", "GET", "k"); err != nil {
			return err
		}
	}
	return nil
}

// endlessWriter has a script that SCRIPT KILL does not end. The end of the server does.
func (a *attack) endlessWriter() error {
	c, err := dial(a.server.address)
	if err != nil {
		return err
	}
	defer c.Close()
	admin, err := dial(a.server.address)
	if err != nil {
		return err
	}
	defer admin.Close()
	if err := a.want(admin, "+OK", "CONFIG", "SET", "busy-reply-threshold", "100"); err != nil {
		return err
	}
	c.send("EVAL", "redis.call('SET', 'k', 'v') while true do end", "0")
	c.w.Flush()
	time.Sleep(time.Second)
	if err := a.want(admin, "-UNKILLABLE", "SCRIPT", "KILL"); err != nil {
		return err
	}
	admin.send("SHUTDOWN", "NOSAVE") // while a script runs redis-server takes no signals
	return admin.w.Flush()
}

// scripts runs each script twice, by different clients. Whatever the reply is, the server goes on.
func (a *attack) scripts(scripts ...string) error {
	for _, s := range scripts {
		err := a.step(fmt.Sprintf("%.60s", s), func() error {
			for range 2 {
				c, err := dial(a.server.address)
				if err != nil {
					return err
				}
				defer c.Close()
				head, err := c.do("EVAL", s, "0")
				if err != nil {
					return err
				}
				a.lines = append(a.lines, fmt.Sprintf("%.100q", head))
				if err := a.want(c, "+PONG", "PING"); err != nil {
					return errors.Join(errors.New("behind the script"), err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *attack) manyScripts() error {
	c, err := dial(a.server.address)
	if err != nil {
		return err
	}
	defer c.Close()
	n := scaled(100000)
	err = a.step("EVAL", func() error {
		return c.pipeline(n, func(i int) []string {
			return []string{"EVAL", fmt.Sprintf("local x = '%0100d' return 1", i), "0"}
		})
	})
	if err != nil {
		return err
	}
	return a.step("SCRIPT FLUSH", func() error { return a.want(c, "+OK", "SCRIPT", "FLUSH") })
}
