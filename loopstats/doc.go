// Package loopstats shows what the loops of an engine do: how full they are, how long they let
// their connections wait, and why connections end.
//
//	stop, err := loopstats.Measure(engine) // times too, until stop is called
//	...
//	for _, l := range loopstats.Of(engine) {
//		fmt.Println(l.Open, l.Turn.Count(), time.Duration(l.Turn.Quantile(0.99)))
//	}
//
// Any goroutine may call Of at any time. It waits for no loop, not even for one that is blocked,
// and no loop waits for it.
//
// # What is counted
//
// Besides the counts of Engine.Stats, a loop counts the connections that ended by their Cause, how
// often full output stopped the reading of a connection, the output that waits, and the buffers in
// use. These counts are always there.
//
// # What is measured
//
// Times are measured only between Measure and its stop. Turn shows how full a loop is: what its
// Sum grows by in a second is the part of the second in which the loop worked. Callback shows
// whether single callbacks hold a loop up, PostDelay and TimerDelay how late the loop comes to what
// was asked of it. (Package watchdog tells which line of code blocks a loop.) In a test on
// rondotest's network, time stands still during a turn, and posts are not measured.
//
// # What it costs
//
// Counting costs some three instructions a message. Measuring costs about 270 instructions a turn:
// it reads the clock at the end of each turn, after each 64 callbacks, and when a timer or a first
// post is due. That is 0.4% of the instructions of a busy loop's messages (35 a turn). Nothing
// allocates memory but Of, and the first Measure (13 KiB for each loop).
package loopstats
