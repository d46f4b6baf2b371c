//go:build linux

package uring

import (
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/share"
)

// ring is a submission queue and a completion queue, shared with the kernel. It starts
// disabled. Only the thread that enables it may use it.
type ring struct {
	fd       int
	features uint32

	sqes            []sqe
	sqHead, sqFlags *uint32
	sqTail          *uint32
	tail            uint32 // index of the next submission
	spilled         []sqe  // submissions that did not fit, in order

	cqes           []cqe
	cqHead, cqTail *uint32
	head           uint32 // index of the next completion to take
	now            []cqe  // completions of this turn
	i              int    // number of them that were handled
	later          []cqe  // completions of the next turn

	arg waitArg
	ts  timespec

	rings, entries []byte // the mappings
	_              share.Pad
}

// newRing makes a ring with so many submissions and completions. Both are powers of
// two.
func newRing(submissions, completions uint32) (*ring, error) {
	p := params{
		flags: setupCQSize | setupDisabled | setupSubmitAll | setupTaskrunFlag |
			setupSingleIssuer | setupDeferTaskrun,
		cqEntries: completions,
	}
	fd, _, e := syscall.Syscall(unix.SYS_IO_URING_SETUP, uintptr(submissions), uintptr(unsafe.Pointer(&p)), 0)
	if e != 0 {
		return nil, refused("io_uring_setup", e)
	}
	r := &ring{fd: int(fd), features: p.features}
	err := r.mmap(&p)
	if err == nil {
		err = r.usable()
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *ring) mmap(p *params) (err error) {
	size := max(p.sqOff.array+4*p.sqEntries, p.cqOff.cqes+p.cqEntries*uint32(unsafe.Sizeof(cqe{})))
	if r.rings, err = unix.Mmap(r.fd, offRings, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return refused("mmap of the rings", err)
	}
	size = p.sqEntries * uint32(unsafe.Sizeof(sqe{}))
	if r.entries, err = unix.Mmap(r.fd, offSQEs, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return refused("mmap of the submissions", err)
	}
	at := func(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.rings[offset])) }
	r.sqHead, r.sqTail, r.sqFlags = at(p.sqOff.head), at(p.sqOff.tail), at(p.sqOff.flags)
	r.cqHead, r.cqTail = at(p.cqOff.head), at(p.cqOff.tail)
	r.sqes = unsafe.Slice((*sqe)(unsafe.Pointer(&r.entries[0])), p.sqEntries)
	r.cqes = unsafe.Slice((*cqe)(unsafe.Pointer(&r.rings[p.cqOff.cqes])), p.cqEntries)
	// Allocate the full capacity now: growing would leave garbage, and unused memory is
	// not resident.
	r.now, r.later = make([]cqe, 0, len(r.cqes)), make([]cqe, 0, len(r.cqes))
	// The array could reorder submissions; it never does here.
	for i := range unsafe.Slice(at(p.sqOff.array), p.sqEntries) {
		*at(p.sqOff.array + uint32(4*i)) = uint32(i)
	}
	return nil
}

// close frees the ring. The kernel must have ended all requests.
func (r *ring) close() error {
	if r.entries != nil {
		unix.Munmap(r.entries)
	}
	if r.rings != nil {
		unix.Munmap(r.rings)
	}
	return os.NewSyscallError("close", unix.Close(r.fd))
}

// register calls io_uring_register(2).
func (r *ring) register(op uintptr, arg unsafe.Pointer, n uintptr) error {
	_, _, e := syscall.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), op, uintptr(arg), n, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// next returns the next submission, zeroed. The caller fills it in before any other use
// of the ring.
func (r *ring) next() *sqe {
	if len(r.spilled) == 0 && r.full() {
		r.enter(0) // the next look gets the same error
	}
	if len(r.spilled) > 0 || r.full() {
		r.spilled = append(r.spilled, sqe{})
		return &r.spilled[len(r.spilled)-1]
	}
	return r.push(sqe{})
}

func (r *ring) push(s sqe) *sqe {
	at := &r.sqes[r.tail&uint32(len(r.sqes)-1)]
	*at = s
	r.tail++
	return at
}

func (r *ring) full() bool { return r.tail-atomic.LoadUint32(r.sqHead) == uint32(len(r.sqes)) }

// queued reports whether the queue has submissions that the kernel has not taken.
func (r *ring) queued() bool { return r.tail != atomic.LoadUint32(r.sqHead) }

// unsubmitted reports whether there are submissions that the kernel has not taken, in
// the queue or spilled.
func (r *ring) unsubmitted() bool { return r.queued() || len(r.spilled) > 0 }

// refill moves spilled submissions into the queue.
func (r *ring) refill() {
	n := 0
	for ; n < len(r.spilled) && !r.full(); n++ {
		r.push(r.spilled[n])
	}
	if n > 0 {
		r.spilled = append(r.spilled[:0], r.spilled[n:]...)
	}
}

// enter submits. With enterGetEvents it also makes the kernel complete operations that
// are ready. It does not block.
func (r *ring) enter(flags uintptr) error {
	n := r.tail - atomic.LoadUint32(r.sqHead)
	atomic.StoreUint32(r.sqTail, r.tail)
	_, _, e := syscall.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(n), 0, flags, 0, 0)
	return entered(e)
}

// take appends the kernel's completions to to.
func (r *ring) take(to *[]cqe) {
	tail := atomic.LoadUint32(r.cqTail)
	if r.head == tail {
		return
	}
	for ; r.head != tail; r.head++ {
		*to = append(*to, r.cqes[r.head&uint32(len(r.cqes)-1)])
	}
	atomic.StoreUint32(r.cqHead, r.head)
}

// clear submits and collects everything, so that both queues are empty. It reports
// whether that succeeded.
func (r *ring) clear() bool {
	if r.refill(); r.queued() {
		r.enter(0)
	}
	r.take(&r.later)
	for r.overflown() && r.enter(enterGetEvents) == nil {
		r.take(&r.later)
	}
	return !r.unsubmitted() && !r.overflown()
}

// takeBack removes the submissions that the kernel has not taken, and calls f with
// each.
func (r *ring) takeBack(f func(*sqe)) {
	head := atomic.LoadUint32(r.sqHead)
	for at := head; at != r.tail; at++ {
		f(&r.sqes[at&uint32(len(r.sqes)-1)])
	}
	r.tail = head
	atomic.StoreUint32(r.sqTail, head)
}

// takeTries is take into later, except that it calls f with completions of tagTry.
func (r *ring) takeTries(f func(*cqe)) {
	from := len(r.later)
	r.take(&r.later)
	keep := r.later[:from]
	for i := range r.later[from:] {
		if e := &r.later[from+i]; tag(e.userData&(1<<tagBits-1)) == tagTry {
			f(e)
		} else {
			keep = append(keep, *e)
		}
	}
	r.later = keep
}

// overflown reports whether the kernel holds completions that did not fit.
func (r *ring) overflown() bool { return atomic.LoadUint32(r.sqFlags)&sqCQOverflow != 0 }

// holdsBack reports whether the kernel has completions that the next enter brings.
func (r *ring) holdsBack() bool {
	return atomic.LoadUint32(r.sqFlags)&(sqTaskrun|sqCQOverflow) != 0
}

// look begins a turn. It submits and collects completions without blocking. If there is
// nothing to do, it makes no system call.
func (r *ring) look() (err error) {
	r.now, r.later, r.i = r.later, r.now[:0], 0
	r.refill()
	for r.queued() || r.holdsBack() {
		if err = r.enter(enterGetEvents); err != nil || len(r.spilled) == 0 || r.full() {
			break
		}
		r.refill()
	}
	r.take(&r.now)
	return err
}

// forever means no timeout.
const forever time.Duration = math.MaxInt64

// wait blocks until something completes, at most for timeout.
func (r *ring) wait(timeout time.Duration) error {
	flags := uintptr(enterGetEvents)
	if r.features&featNoIowait != 0 {
		flags |= enterNoIowait
	}
	var arg unsafe.Pointer
	var size uintptr
	if timeout != forever {
		flags |= enterExtArg
		r.ts = timespec{int64(timeout / time.Second), int64(timeout % time.Second)}
		r.arg.ts = uint64(uintptr(unsafe.Pointer(&r.ts)))
		arg, size = unsafe.Pointer(&r.arg), unsafe.Sizeof(r.arg)
	}
	_, _, e := syscall.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), 0, 1, flags, uintptr(arg), size)
	r.take(&r.now)
	if e == unix.ETIME {
		return nil
	}
	return entered(e)
}

// entered returns the error for a result of io_uring_enter.
func entered(e syscall.Errno) error {
	switch e {
	case 0, unix.EINTR:
		return nil
	case unix.EBUSY:
		// The completion queue is full. Completions are taken first; the submissions go
		// with the next turn.
		return nil
	}
	return os.NewSyscallError("io_uring_enter", e)
}

// completed reports whether this turn has another completion.
func (r *ring) completed() bool { return r.i < len(r.now) }

// completion returns the next completion. It is valid until look.
func (r *ring) completion() *cqe {
	r.i++
	return &r.now[r.i-1]
}
