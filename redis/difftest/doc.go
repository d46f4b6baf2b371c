// Package difftest compares package redis with Redis 7.0: the same bytes go to
// both, and the same bytes must come back. It is a test and nothing else.
//
// What is sent is in testdata, in files of scripts, and with it what
// redis-server answered. Where a redis-server 7.0 is installed, the test starts
// one and checks first that it still answers so; elsewhere the recorded answers
// stand for it. To add a case, write it without an answer, and record with
//
//	go test ./redis/difftest -update
//
// A file is read by line:
//
//	# text          is a comment
//	requirepass pw  before the first script: the server has a password
//	== name         begins a script, with an empty keyspace and new connections
//	> GET k         client a sends a request, of words that may be quoted as in
//	                redis-cli, and gets one reply
//	b> GET k        client b does; any name of letters is a client
//	b>- GET k       the same, without waiting for a reply
//	b>> "x" 3*"y"   client b sends these bytes, Go-quoted: xyyy
//	b?              client b gets one more reply
//	b?end           client b gets what there is until the server closes
//	b@127.0.0.2     client b connects from that address
//	sleep 20ms      nothing happens for that long
//	blocked 2       waits until the server has two blocked clients, by INFO on
//	                connections of its own, which the slow log shows
//	~ sorted: why   the next reply differs for that reason, and is compared in
//	                a normal form of normalForms, or in several: a | b x
//	< +OK           is a line of the reply to what stands before it
//
// At a script's end every client sends QUIT and must get no more than its OK.
package difftest
