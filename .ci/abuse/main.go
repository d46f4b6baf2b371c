// Abuse does to a server what no program should: endless scripts, scripts that take all memory,
// 10,000 clients that track 100,000 keys, streams with a million pending entries, 10,000 users,
// clients that read nothing. Beside each case another process sends a PING each millisecond.
//
//	abuse -rondo PATH
//	abuse -redis /usr/bin/redis-server
//
// Each case has a server of its own. Abuse prints how long the PINGs took, and the server's memory
// before, at its peak and afterwards. It fails if the server ends, a PING takes too long, or the
// memory exceeds the case's bound, or does not come back. With -redis it only prints, to compare.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

var (
	program = flag.String("rondo", "rondo", "the program rondo")
	redis   = flag.String("redis", "", "a redis-server that takes rondo's place; nothing is judged")
	only    = flag.String("case", "", "a regular expression: only cases whose names it matches")
	scale   = flag.Int("scale", 100, "percent of the numbers of clients, keys, entries and users")
	hang    = flag.Duration("hang", 10*time.Second, "how long a PING may take")
	pause   = flag.String("pause", "", "no case begins while this file exists")
	options = flag.String("options", "", "further directives for the server, as in '--io-threads 2'")
	verbose = flag.Bool("v", false, "print the steps of all cases")
)

// A testCase is one kind of abuse.
type testCase struct {
	name    string
	peak    int // MiB that the server may take beside what it has before
	options string
	run     func(*attack) error
	ends    bool // the case ends the server
	rondo   bool // redis-server does not survive it, or waits for ever
}

var cases = slicesOf(scriptCases, trackingCases, streamCases, userCases)

func slicesOf(lists ...[]testCase) (all []testCase) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func main() {
	ping := flag.String("bystander", "", "send PINGs to this address: abuse starts itself so")
	flag.Parse()
	run := abuse
	if *ping != "" {
		run = func() error { return bystand(*ping) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "abuse:", err)
		os.Exit(1)
	}
}

func abuse() error {
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	fmt.Printf("%-44s %9s %9s %9s %7s %6s   %s\n", "case", "p50", "p99", "max", "PINGs", "BUSY", "MiB before, peak, after; seconds of processor")
	var problems []error
	for _, c := range cases {
		if !pattern.MatchString(c.name) || c.rondo && *redis != "" {
			continue
		}
		waiting()
		if err := play(&c); err != nil {
			fmt.Printf("    FAILED: %v\n", err)
			problems = append(problems, fmt.Errorf("%s: %w", c.name, err))
		}
	}
	if *redis != "" {
		return nil
	}
	return errors.Join(problems...)
}

// waiting returns when the file of -pause does not exist.
func waiting() {
	for *pause != "" {
		if _, err := os.Stat(*pause); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// scaled is a number of -scale percent, at least 1.
func scaled(n int) int { return max(1, n**scale/100) }

// An attack is a case that runs.
type attack struct {
	server    *server
	bystander *bystander
	before    int // MiB
	lines     []string
}

// play runs a case against a new server.
func play(c *testCase) (err error) {
	s, err := startServer(strings.Fields(c.options + " " + *options)...)
	if err != nil {
		return err
	}
	defer s.kill()
	a := &attack{server: s}
	time.Sleep(300 * time.Millisecond)
	a.before, _ = s.memory()
	s.forgetPeak()
	if a.bystander, err = startBystander(s.address); err != nil {
		return err
	}
	defer a.bystander.end()
	err = c.run(a)
	if c.ends && err == nil {
		err = s.ended(20 * time.Second)
	}
	all := a.bystander.all()
	a.bystander.end()
	after, problem := a.comesBack(c)
	if err == nil {
		err = problem
	}
	peak := s.peak()
	fmt.Printf("%-44s %s   %d, %d, %d; %.1f\n", c.name, all, a.before, peak, after, s.cpu())
	if *verbose || err != nil {
		for _, line := range a.lines {
			fmt.Println("    " + line)
		}
	}
	switch {
	case err != nil:
	case all.Max > *hang:
		err = fmt.Errorf("a PING took %v", all.Max)
	case all.Failed != "" && !c.ends:
		err = fmt.Errorf("the PINGs ended: %s", all.Failed)
	case peak > a.before+c.peak:
		err = fmt.Errorf("the server took %d MiB, and had %d: want at most %d more", peak, a.before, c.peak)
	}
	if err != nil && *redis == "" {
		fmt.Println(s.log())
	}
	return err
}

// kept is how much more memory a server may have afterwards: Go's free memory, and what a
// server keeps for the next clients.
const kept = 64

// comesBack waits until the server has about as much memory as before the case. rondo redis collects
// garbage the less often the longer that takes.
func (a *attack) comesBack(c *testCase) (after int, err error) {
	if c.ends {
		return 0, nil
	}
	for range 150 {
		if after, err = a.server.memory(); err != nil || after <= a.before+kept {
			return after, err
		}
		time.Sleep(time.Second)
	}
	return after, fmt.Errorf("150 seconds later the server keeps %d MiB, and had %d before", after, a.before)
}

// step runs a part of a case, and notes how long it and the PINGs beside it took.
func (a *attack) step(name string, f func() error) error {
	a.bystander.mark()
	begin := time.Now()
	err := f()
	took := time.Since(begin).Round(time.Millisecond)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	now, _ := a.server.memory()
	a.lines = append(a.lines, fmt.Sprintf("%-40s %s   %d MiB, took %v", name, a.bystander.mark(), now, took))
	return err
}

// want runs a request and checks how the reply begins.
func (a *attack) want(c *conn, begin string, args ...string) error {
	head, err := c.do(args...)
	if err == nil && !strings.HasPrefix(head, begin) {
		err = fmt.Errorf("%.100s: the reply is %.200q, want %q", strings.Join(args, " "), head, begin)
	}
	return err
}
