package redis

import "testing"

func TestStandalone(t *testing.T) {
	newBench(t, &Server{}).script(`
		ROLE => *3 $6 master :0 *0
		LASTSAVE => :1700000000
		MODULE LIST => *0
		MODULE LOAD x => -ERR unknown subcommand 'LOAD'. Try MODULE HELP.
		WAIT x 0 => -ERR value is not an integer or out of range
		WAIT 0 x => -ERR timeout is not an integer or out of range
		WAIT 0 -1 => -ERR timeout is negative
		WAIT 0 0 => :0
		WAIT 1 100 =>
		+99ms
		a? =>
		+1ms
		a? => :0
		b: WAIT 1 0 =>
		CLIENT UNBLOCK 2 => :1
		b? => :0
		b: WAIT 1 0 =>
		CLIENT UNBLOCK 2 ERROR => :1
		b? => -UNBLOCKED client unblocked via CLIENT UNBLOCK
		MULTI => +OK
		WAIT 1 0 => +QUEUED
		EXEC => *1 :0
	`)
}
