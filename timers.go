package rondo

import (
	"log/slog"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/timer"
)

// A Timer calls a function on its loop. Its methods may be called there only.
type Timer struct {
	loop  *Loop
	f     func()
	every time.Duration // 0: once
	due   backend.Time  // of Every
	timer timer.Timer
}

// AfterFunc calls f on the loop when d has passed, in a later turn.
func (l *Loop) AfterFunc(d time.Duration, f func()) *Timer {
	t := &Timer{loop: l, f: f}
	t.timer.Owner = (*firing)(t)
	t.Reset(d)
	return t
}

// Every calls f on the loop each time d has passed, until Stop. A call that comes late
// does not move those after it. If the loop is late by more than d it drops calls.
func (l *Loop) Every(d time.Duration, f func()) *Timer {
	if d <= 0 {
		panic("rondo: Every: the interval must be positive")
	}
	t := l.AfterFunc(d, f)
	t.every = d
	return t
}

// Reset has the timer fire when d has passed, whether it was pending or not; one
// of Every takes d for its interval.
func (t *Timer) Reset(d time.Duration) {
	t.loop.check()
	if t.every > 0 {
		t.every = max(1, d)
	}
	t.due = t.loop.in(d)
	t.loop.timers.Start(&t.timer, t.due)
}

// Stop unsets the timer, and reports whether it was pending.
func (t *Timer) Stop() bool {
	t.loop.check()
	return t.loop.timers.Stop(&t.timer)
}

// firing is a Timer as the owner of its place among the loop's.
type firing Timer

func (t *firing) Fire(_ *timer.Timer, now backend.Time) {
	if t.every > 0 {
		d := backend.Time(t.every)
		t.due = t.due.Add(time.Duration((1 + (now-t.due)/d) * d)) // the first that is not over
		t.loop.timers.Start(&t.timer, t.due)
	}
	t.loop.call((*Timer)(t), t.f)
}

// brokenBy stops a timer whose function panicked.
func (t *Timer) brokenBy(error) { t.Stop() }

func (t *Timer) logAttr() slog.Attr { return slog.Duration("timer", t.every) }

// in is the time when d will have passed. The turn's own time does not do where a timer
// begins: it may be long ago, and the timer would fire too early.
func (l *Loop) in(d time.Duration) backend.Time { return l.backend.Now().Add(d) }

// at is the time at which it will be t, as things are now: Forever, if that is too far
// away.
func (l *Loop) at(t time.Time) backend.Time { return max(1, l.now.Add(t.Sub(l.Now()))) }
