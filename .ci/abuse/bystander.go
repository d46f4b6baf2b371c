package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// every is when a PING is due. One that takes longer delays those that were due meanwhile,
// and each counts with its delay.
const every = time.Millisecond

// delays are what a bystander reports.
type delays struct {
	P50, P99, Max time.Duration
	N, Busy       int
	Failed        string
}

func (d delays) String() string {
	short := func(d time.Duration) string { return fmt.Sprintf("%.2fms", float64(d.Microseconds())/1000) }
	return fmt.Sprintf("%9s %9s %9s %7d %6d", short(d.P50), short(d.P99), short(d.Max), d.N, d.Busy)
}

// bystand sends PINGs. For each line of standard input it writes the delays since the last one,
// or with "all" those of all.
func bystand(address string) error {
	c, err := dial(address)
	if err != nil {
		return err
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
	}()
	var p pings
	for due := time.Now(); ; {
		select {
		case line, ok := <-lines:
			if !ok {
				return nil
			}
			if err := json.NewEncoder(os.Stdout).Encode(p.report(line == "all")); err != nil {
				return err
			}
			continue
		default:
		}
		if p.failed != "" {
			time.Sleep(every)
			continue
		}
		due = p.ping(c, due)
		time.Sleep(time.Until(due))
	}
}

type pings struct {
	all    []time.Duration
	busies []int // indexes in all
	marked int
	failed string
}

// ping sends one PING, and returns when the next one is due.
func (p *pings) ping(c *conn, due time.Time) time.Time {
	begin := time.Now()
	head, err := c.do("PING")
	took := time.Since(begin)
	switch {
	case err != nil:
		p.failed = err.Error()
		return due.Add(every)
	case strings.HasPrefix(head, "-BUSY"):
		p.busies = append(p.busies, len(p.all))
	case head != "+PONG":
		p.failed = head
	}
	for d := took; d > 0; d -= every {
		p.all = append(p.all, d)
	}
	if next := due.Add(every); next.After(time.Now()) {
		return next
	}
	return time.Now().Add(every)
}

func (p *pings) report(all bool) (d delays) {
	from := p.marked
	if all {
		from = 0
	} else {
		p.marked = len(p.all)
	}
	sorted := slices.Sorted(slices.Values(p.all[from:]))
	d.N, d.Failed = len(sorted), p.failed
	for _, at := range p.busies {
		if at >= from {
			d.Busy++
		}
	}
	if d.N > 0 {
		d.P50, d.P99, d.Max = sorted[d.N/2], sorted[d.N*99/100], sorted[d.N-1]
	}
	return d
}

// A bystander is the process that sends PINGs.
type bystander struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

func startBystander(address string) (*bystander, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &bystander{cmd: exec.Command(self, "-bystander", address)}
	b.cmd.Stderr = os.Stderr
	if b.in, err = b.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	b.out = json.NewDecoder(out)
	return b, b.cmd.Start()
}

func (b *bystander) ask(line string) (d delays) {
	_, err := fmt.Fprintln(b.in, line)
	if err == nil {
		err = b.out.Decode(&d)
	}
	if err != nil && !errors.Is(err, os.ErrClosed) {
		d.Failed = err.Error()
	}
	return d
}

// mark returns the delays since the last mark.
func (b *bystander) mark() delays { return b.ask("mark") }

func (b *bystander) all() delays { return b.ask("all") }

func (b *bystander) end() {
	if b.in != nil {
		b.in.Close()
		b.cmd.Wait()
		b.in = nil
	}
}
