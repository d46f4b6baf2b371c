package acl

import (
	"container/list"
	"strings"
)

// A Log has what was refused, the newest first. Requests that are alike, and not far apart
// in time, are one entry.
type Log struct {
	Max     int // entries to keep
	entries list.List
}

// An Entry is requests that were refused.
type Entry struct {
	Count   int64
	Why     Denial
	Context string // "toplevel", "multi" or "lua"
	Object  string // the command, the key or the channel
	User    string
	At      int64  // milliseconds since 1970: the latest
	Client  string // the latest, as CLIENT LIST describes it
}

// MaxObject is how many bytes of an entry's names are kept: a key may be very long.
const MaxObject = 4096

const (
	alikeWithin = 60000 // milliseconds
	alikeAmong  = 10    // newest entries
)

// Add adds an entry, or counts it with one that is alike.
func (l *Log) Add(e Entry) {
	e.Count = 1
	e.Object, e.User = bounded(e.Object), bounded(e.User)
	n := 0
	for x := l.entries.Front(); x != nil && n < alikeAmong; x, n = x.Next(), n+1 {
		if old := x.Value.(*Entry); old.alike(&e) {
			old.Client, old.At = e.Client, e.At
			old.Count++
			l.entries.MoveToFront(x)
			return
		}
	}
	l.entries.PushFront(&e)
	for l.entries.Len() > l.Max {
		l.entries.Remove(l.entries.Back())
	}
}

// bounded returns the start of a long text, without keeping the rest in memory.
func bounded(s string) string {
	if len(s) <= MaxObject {
		return s
	}
	return strings.Clone(s[:MaxObject])
}

func (e *Entry) alike(x *Entry) bool {
	apart := max(e.At-x.At, x.At-e.At)
	return e.Why == x.Why && e.Context == x.Context && apart <= alikeWithin && e.Object == x.Object && e.User == x.User
}

// Newest returns the newest entries, at most n.
func (l *Log) Newest(n int) []*Entry {
	all := make([]*Entry, 0, min(n, l.entries.Len()))
	for x := l.entries.Front(); x != nil && len(all) < n; x = x.Next() {
		all = append(all, x.Value.(*Entry))
	}
	return all
}

// Reset deletes all entries.
func (l *Log) Reset() { l.entries.Init() }
