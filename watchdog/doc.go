// Package watchdog tells of callbacks that block their loop, while they do it.
//
//	w, err := watchdog.Watch(engine, watchdog.Options{})
//
// A loop serves many connections, one callback at a time. If one callback sleeps, waits for a
// lock, or computes for long, all other connections of its loop wait. A Watchdog looks at each
// loop from outside. When a callback has run for longer than Options.Slow, 100 ms by default, it
// logs what the callback is doing, on which line, for which connection, and what to do
// instead. When the callback is over, it logs how long it took. Coroutines that wait for
// something other than their loop are found in the same way.
//
// # What is reported, and when
//
// A report comes between one and one and a half times Options.Slow after the callback began,
// if the program's goroutines get processors at all. So one that takes less than one and a half
// times as long may be missed, and so is one that runs already when Watch is called. A loop is
// reported at most once a second. A callback that goes on is reported again after a second, then
// after 2, 4, 8 seconds, up to a minute. Report.Unreported counts callbacks that were left out.
//
// A turn of many short callbacks is not reported, however long it takes: each of them lets
// the next one run. Nor is the engine's own work, such as the system calls between two callbacks.
//
// Time that the machine takes away is mostly not counted, so that a busy machine causes few false
// reports: neither time in which the whole process stood still, nor (on Linux) time in which a
// callback that computes had to wait for a CPU, because other threads or other virtual
// machines had it. Such a callback is reported later, but not later than ten times
// Options.Slow, and so is one that Go's collector keeps, which waits for goroutines that have no CPU.
// A callback that waits for another goroutine by itself is reported.
//
// While a Watchdog watches an engine, whatever its Options are, package coro does not log
// coroutines that block their loop for a second.
//
// # What it costs
//
// The loop notes the beginning and the end of each event: some 15 instructions a message and 30 a
// turn, which is about 1% of a busy loop's, and 1.5% if each message has a turn of its own. A
// goroutine looks at the loops every quarter of Options.Slow, and sleeps while nothing happens.
//
// A stack costs more. Go can only take all stacks at once, and stops all goroutines
// meanwhile: 0.2 ms with 20 goroutines, 5 to 10 ms with 1,000, 50 to 100 ms with 10,000. So in a
// program with more than 1,000 the Watchdog takes a goroutine profile instead. That stops the
// program for 1 ms with 1,000 goroutines, and 2 to 4 ms with 10,000, but does not say which
// goroutine is the loop's. If several loops are in callbacks at that moment, Report.Stack has
// the stacks of all of them, and Report.Func is empty. Each loop causes one such stop a second
// at most, and none while its callbacks are short. Loops that are due at the same look share one.
package watchdog
