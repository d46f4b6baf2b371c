// Package randomuser is a conformance test of the engine: a user who does anything.
//
// A world has engines, whose loops serve connections by code of the random user: each
// of its callbacks calls random public methods with random arguments, panics, ends its
// goroutine, or does nothing. Oracles watch what the engine promises whatever its user
// does:
//
//   - Closed is called once, and last; what was promised a call is called (conn_test.go,
//     world_test.go).
//   - A peer gets what Writes accepted, in order, or a prefix of it before an abort
//     (stream_test.go).
//   - Input and output that wait stay within MaxInput and MaxOutput, at the end of every
//     turn; no buffer, timer or queue is left at the end, and none is put back twice
//     (memory_test.go). No connection, goroutine or descriptor is left (runner_test.go).
//   - A bystander, whom the user does not touch, is served in the turn that finds its
//     request (peer_test.go), and what calls itself again has a turn for each call.
//   - Nothing hangs: Close, Shutdown, and what waits for loops.
//
// Everything random is decided step by step, and each step has a name that says whose
// callback it is, as "ln0#1.Handler.Data#2". Its decisions are drawn from the seed and
// that name; only which action of the seed's focus comes next (focus_test.go) depends on
// what has been done. So a step decides the same when the order of steps changes, a
// script that has only some of the steps can be played, and a failure can be made shorter
// by leaving steps out.
//
// Worlds are played in processes of their own (runner_test.go): a failure may leave a
// loop that spins or that waits for ever.
//
// The package has no code but tests.
package randomuser
