package redis

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// reportAfter is how long clients have to read their pending output before
	// the server logs that it waits for them.
	reportAfter = 200 * time.Millisecond
	// maxNamed is the maximum number of clients in a message.
	maxNamed = 5
)

// reportLeaving logs, after a moment, the clients that make a shutdown wait.
func (l *clients) reportLeaving() {
	if len(l.leaving) == 0 {
		return
	}
	l.server.loop.AfterFunc(reportAfter, func() {
		if text := l.owed(); text != "" {
			l.server.log().Info("redis: shutdown waits: " + text)
		}
	})
}

// owed names the clients that have not read their output, those with the most
// bytes first. It returns "" if there are none.
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
	text.WriteString("clients have not read their replies: ")
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
