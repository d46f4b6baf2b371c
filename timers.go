package rondo

import (
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/timer"
)

// A Timer calls a function on its loop. Its methods may be called there only.
type Timer struct {
	loop  *Loop
	f     func()
	every time.Duration // 0: once
	timer timer.Timer
}

// AfterFunc calls f on the loop when d has passed.
func (l *Loop) AfterFunc(d time.Duration, f func()) *Timer {
	t := &Timer{loop: l, f: f}
	t.timer.Owner = (*firing)(t)
	t.Reset(d)
	return t
}

// Every calls f on the loop each time d has passed, until Stop. It drops calls
// for which the loop was late by more than d.
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
	t.loop.timers.Start(&t.timer, t.loop.now.Add(d))
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
		t.loop.timers.Start(&t.timer, now.Add(t.every))
	}
	t.f()
}
