//go:build linux

package uring

import "unsafe"

// This file declares the kernel's interface, as documented in io_uring_setup(2),
// io_uring_enter(2) and io_uring_register(2).

// Operations of a submission.
const (
	opPollAdd     = 6
	opSendMsg     = 9
	opRecvMsg     = 10
	opTimeout     = 11
	opAccept      = 13
	opAsyncCancel = 14
	opSend        = 26
	opRecv        = 27
)

// sqe.flags.
const (
	sqeBufferSelect   = 1 << 5
	sqeCQESkipSuccess = 1 << 6
)

// sqe.ioprio of a Recv and of an Accept.
const (
	recvPollFirst   = 1 << 0
	recvMultishot   = 1 << 1
	acceptMultishot = 1 << 0
)

// sqe.len of a PollAdd, and sqe.opFlags of an AsyncCancel.
const (
	pollMulti = 1 << 0
	cancelAll = 1 << 0
	cancelAny = 1 << 2
)

// cqe.flags.
const (
	cqeBuffer       = 1 << 0 // the buffer's number is above cqeBufferShift
	cqeMore         = 1 << 1
	cqeSockNonempty = 1 << 2
	cqeBufferShift  = 16
)

// params.flags and params.features.
const (
	setupCQSize       = 1 << 3
	setupDisabled     = 1 << 6
	setupSubmitAll    = 1 << 7
	setupTaskrunFlag  = 1 << 9
	setupSingleIssuer = 1 << 12
	setupDeferTaskrun = 1 << 13

	featSingleMmap   = 1 << 0
	featNoDrop       = 1 << 1
	featSubmitStable = 1 << 2
	featExtArg       = 1 << 8
	featCQESkip      = 1 << 11
	featNoIowait     = 1 << 17
)

// Flags of io_uring_enter, and flags in the submission queue.
const (
	enterGetEvents = 1 << 0
	enterExtArg    = 1 << 3
	enterNoIowait  = 1 << 7

	sqCQOverflow = 1 << 1
	sqTaskrun    = 1 << 2
)

// Operations of io_uring_register.
const (
	registerEnableRings = 12
	registerPbufRing    = 22
)

// Offsets for mmap of the rings and of the submissions.
const (
	offRings = 0
	offSQEs  = 0x10000000
)

type params struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFD uint32
	_                                                                      [3]uint32
	sqOff                                                                  sqOffsets
	cqOff                                                                  cqOffsets
}

type sqOffsets struct {
	head, tail, ringMask, ringEntries, flags, dropped, array, _ uint32
	_                                                           uint64
}

type cqOffsets struct {
	head, tail, ringMask, ringEntries, overflow, cqes, flags, _ uint32
	_                                                           uint64
}

// sqe is a submission.
type sqe struct {
	opcode   uint8
	flags    uint8
	ioprio   uint16
	fd       int32
	off      uint64
	addr     uint64
	len      uint32
	opFlags  uint32
	userData uint64
	bufGroup uint16
	_        uint16
	optLen   uint32 // of a multishot Recv: end it after a receive of so many bytes (Linux 6.17)
	_        [2]uint64
}

// setEvents sets the events of a PollAdd. The field has 32 bits; poll(2)'s 16 bits come
// first in memory on any byte order.
func (s *sqe) setEvents(events int16) { *(*int16)(unsafe.Pointer(&s.opFlags)) = events }

// cqe is a completion.
type cqe struct {
	userData uint64
	res      int32 // negative: the negated error number
	flags    uint32
}

// bufEntry is a buffer in a provided buffer ring. The last two bytes of the first entry
// hold the ring's tail.
type bufEntry struct {
	addr uint64
	len  uint32
	bid  uint16
	tail uint16
}

type bufReg struct {
	ringAddr    uint64
	ringEntries uint32
	bgid, flags uint16
	_           [3]uint64
}

// waitArg is the argument of io_uring_enter with enterExtArg.
type waitArg struct {
	sigmask   uint64
	sigmaskSz uint32
	minWait   uint32
	ts        uint64 // *timespec
}

type timespec struct{ sec, nsec int64 }
