package main

import (
	"fmt"
	"strconv"
	"sync"
)

var userCases = []testCase{
	{name: "10,000 users", peak: 300, options: "--aclfile DIR/users.acl", run: (*attack).manyUsers},
	{name: "a user with 200,000 rules", peak: 600, run: (*attack).manyRules},
}

func (a *attack) manyUsers() error {
	c, err := dial(a.server.address)
	if err != nil {
		return err
	}
	defer c.Close()
	n := scaled(10000)
	user := func(i int) string { return "user" + strconv.Itoa(i) }
	one := func(begin string, args ...string) func() error {
		return func() error { return a.want(c, begin, args...) }
	}
	count := "*" + strconv.Itoa(n+1)
	all := []string{"ACL", "DELUSER"}
	for i := range n {
		all = append(all, user(i))
	}
	for _, s := range []struct {
		name string
		f    func() error
	}{
		{"ACL SETUSER", func() error {
			return c.pipeline(n, func(i int) []string {
				return []string{"ACL", "SETUSER", user(i), "on", ">secret" + strconv.Itoa(i), "~app" + strconv.Itoa(i) + ":*", "%R~shared:*",
					"&news:*", "+@all", "-@dangerous", "+keys", "(+get ~other:*)"}
			})
		}},
		{"ACL LIST", one(count, "ACL", "LIST")},
		{"ACL USERS", one(count, "ACL", "USERS")},
		{"AUTH of 500 clients", func() error { return a.logins(500, n) }},
		{"ACL SAVE", one("+OK", "ACL", "SAVE")},
		{"ACL LOAD", one("+OK", "ACL", "LOAD")},
		{"ACL LOAD beside 500 clients", func() error {
			conns, err := a.users(500, n)
			defer closeAll(conns)
			if err != nil {
				return err
			}
			return a.want(c, "+OK", "ACL", "LOAD")
		}},
		{"ACL DELUSER of all", one(":"+strconv.Itoa(n), all...)},
		{"ACL SAVE of none", one("+OK", "ACL", "SAVE")},
	} {
		if err := a.step(s.name, s.f); err != nil {
			return err
		}
	}
	return nil
}

func closeAll(conns []*conn) {
	for _, c := range conns {
		c.Close()
	}
}

// users returns clients that are different users.
func (a *attack) users(clients, n int) (conns []*conn, err error) {
	for i := range clients {
		c, err := dial(a.server.address)
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
		x := i * 7919 % n
		if err := a.want(c, "+OK", "AUTH", "user"+strconv.Itoa(x), "secret"+strconv.Itoa(x)); err != nil {
			return conns, err
		}
	}
	return conns, nil
}

// logins has clients that work as users, and try what they may not, and wrong passwords.
func (a *attack) logins(clients, n int) error {
	conns, err := a.users(clients, n)
	defer closeAll(conns)
	if err != nil {
		return err
	}
	var work sync.WaitGroup
	errs := make([]error, len(conns))
	for i, c := range conns {
		work.Add(1)
		go func() {
			defer work.Done()
			x := strconv.Itoa(i * 7919 % n)
			for range 20 {
				for _, r := range [][]string{
					{"+OK", "SET", "app" + x + ":1", "v"}, {"-NOPERM", "SET", "app:1", "v"}, {"$-1", "GET", "other:1"},
					{"-NOPERM", "FLUSHALL"}, {"-WRONGPASS", "AUTH", "user" + x, "wrong"},
				} {
					if errs[i] = a.want(c, r[0], r[1:]...); errs[i] != nil {
						return
					}
				}
			}
		}()
	}
	work.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// manyRules has a user with very many patterns and passwords.
func (a *attack) manyRules() error {
	c, err := dial(a.server.address)
	if err != nil {
		return err
	}
	defer c.Close()
	n := scaled(200000)
	if *redis != "" {
		n /= 10 // which takes time by the square
	}
	rules := func(mark string) []string {
		r := []string{"ACL", "SETUSER", "u", "on", "+get"}
		for i := range n {
			r = append(r, mark+strconv.Itoa(i))
		}
		return r
	}
	one := func(begin string, args ...string) func() error {
		return func() error { return a.want(c, begin, args...) }
	}
	for _, s := range []struct {
		name string
		f    func() error
	}{
		{"patterns of keys", one("+OK", rules("~key:")...)},
		{"patterns of channels", one("+OK", rules("&channel:")...)},
		{"passwords", one("+OK", rules(">password")...)},
		{"one more pattern", one("+OK", "ACL", "SETUSER", "u", "~more")},
		{"ACL GETUSER", one("*", "ACL", "GETUSER", "u")},
		{"ACL LIST", one("*2", "ACL", "LIST")},
		{"AUTH", func() error {
			x, err := dial(a.server.address)
			if err != nil {
				return err
			}
			defer x.Close()
			if err := a.want(x, "+OK", "AUTH", "u", fmt.Sprintf("password%d", n-1)); err != nil {
				return err
			}
			if err := a.want(x, "$-1", "GET", "more"); err != nil { // the last pattern
				return err
			}
			return x.pipeline(100, func(int) []string { return []string{"GET", "more"} })
		}},
		{"other passwords", one("+OK", rules("<password")...)},
		{"ACL DELUSER", one(":1", "ACL", "DELUSER", "u")},
	} {
		if err := a.step(s.name, s.f); err != nil {
			return err
		}
	}
	return nil
}
