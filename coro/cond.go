package coro

// A Cond lets coroutines of one loop wait for each other, or for a callback of that loop.
// The zero Cond is ready for use; it belongs to the loop. A Cond needs no mutex, since
// nothing else on the loop runs between two waits:
//
//	for len(queue) == 0 {
//		if err := more.Wait(co); err != nil {
//			return err
//		}
//	}
type Cond struct{ waiting waitList }

// Wait waits for Signal or Broadcast. It returns an error when co's connection has
// closed.
func (k *Cond) Wait(co *Co) error {
	if !co.Calling() {
		return co.stranger("Wait")
	}
	if first := k.waiting.first; first != nil && first.sched != co.sched {
		panic("coro: Cond.Wait: coroutines of another loop wait: each loop needs its own Cond, see rondo.LoopLocal")
	}
	k.waiting.push(co)
	for co.list != nil {
		if err := co.wait(nil); err != nil {
			k.waiting.remove(co)
			return co.failed(err)
		}
	}
	return nil
}

// Signal wakes the coroutine that has waited longest, if there is one. That coroutine
// goes on in this turn of the loop or the next.
func (k *Cond) Signal() {
	if co := k.waiting.first; co != nil {
		co.sched.wire.Check()
		k.waiting.remove(co)
		co.wake()
	}
}

// Broadcast wakes every waiting coroutine.
func (k *Cond) Broadcast() {
	for k.waiting.first != nil {
		k.Signal()
	}
}
