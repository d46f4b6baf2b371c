package coro

// Hasty has a coroutine's loop give up coroutines that seem to wait for each other after
// two looks, whatever the mutex is of.
func Hasty(co *Co) { co.sched.hasty.Store(true) }
