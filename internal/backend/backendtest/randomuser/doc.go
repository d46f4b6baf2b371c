// Package randomuser is a conformance test of the engine: a user who does anything.
//
// A world has engines. Their loops serve connections with the random user's code: each
// callback calls random public methods with random arguments, panics, ends its
// goroutine, or does nothing. Oracles check what the engine promises whatever its user
// does:
//
//   - Closed is called once, and last; every promised call happens (conn_test.go,
//     world_test.go).
//   - A peer gets what Writes accepted, in order, or a prefix of it before an abort
//     (stream_test.go).
//   - At the end of every turn, waiting input and output are within MaxInput and
//     MaxOutput. At the end of the world no buffer, timer or queue is left, and no
//     buffer was put back twice (memory_test.go). No connection, goroutine or
//     descriptor is left (runner_test.go).
//   - A bystander is a connection that the user does not touch. It is served in the
//     turn that finds its request (peer_test.go). A function that calls itself again
//     gets a turn for each call.
//   - Nothing hangs: not Close, not Shutdown, nor other calls that wait for loops.
//
// Random decisions are made in steps. A step's name says whose callback it is, such as
// "ln0#1.Handler.Data#2". The seed and the name determine the step's decisions. The
// only exception is the next action of the seed's focus (focus_test.go), which depends
// on the actions done before. So a step decides the same when the order of steps
// changes, a script with only some of the steps can be played, and a failure can be
// shortened by leaving steps out.
//
// Worlds run in separate processes (runner_test.go), because a failure may leave a loop
// that spins or waits for ever.
//
// The package contains only tests.
package randomuser
