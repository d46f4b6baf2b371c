package redis

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// reportAfter is how long clients have to take what they are owed before it
	// is logged that they are waited for.
	reportAfter = 200 * time.Millisecond
	// maxNamed is how many clients are named.
	maxNamed = 5
)

// reportLeaving has the clients logged that make a shutdown wait, soon.
func (l *clients) reportLeaving() {
	if len(l.leaving) == 0 {
		return
	}
	l.server.loop.AfterFunc(reportAfter, func() {
		if text := l.owed(); text != "" {
			l.server.log().Info("redis: shutting down, but waiting: " + text)
		}
	})
}

// owed names the clients that have not taken their output, those with the most
// first; "" if there are none.
func (l *clients) owed() string {
	type debt struct {
		c     *client
		bytes int
	}
	var debts []debt
	for _, c := range l.everybody() {
		if n := c.transport.pending(); n > 0 {
			debts = append(debts, debt{c, n})
		}
	}
	if len(debts) == 0 {
		return ""
	}
	slices.SortStableFunc(debts, func(a, b debt) int { return b.bytes - a.bytes })
	var text strings.Builder
	text.WriteString("clients have not taken their replies: ")
	for i, d := range debts {
		switch {
		case i == maxNamed:
			fmt.Fprintf(&text, " and %d more", len(debts)-maxNamed)
			return text.String()
		case i > 0:
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "%s (%d bytes)", d.c.addr(), d.bytes)
	}
	return text.String()
}
