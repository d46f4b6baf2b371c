// Package randomuser is a conformance test of the engine: a user who does anything.
//
// A world has engines, whose loops serve connections by code of the random user: each
// of its callbacks calls random public methods with random arguments, panics, ends its
// goroutine, or does nothing. Oracles watch what the engine promises whatever its user
// does: see oracles_test.go.
//
// Everything random is decided step by step, and each step has a name that says whose
// callback it is, as "ln0#1.Handler.Data#2". Its decisions are drawn from the seed and
// that name, and from nothing else. So a step decides the same when the order of steps
// changes, a script that has only some of the steps can be played, and a failure can be
// made shorter by leaving steps out.
//
// Worlds are played in processes of their own (runner_test.go): a failure may leave a
// loop that spins or that waits for ever.
//
// The package has no code but tests.
package randomuser
