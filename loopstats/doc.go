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
// A busy loop has many short turns. Of those with fewer than eight callbacks that begin within a
// millisecond, the first one is measured, and the others count as the next one that is. So Count is
// the number of turns, without the last ones that are not measured yet; Sum is an estimate that is
// never more than the time there was; and a rare time may be missing, or count some times. A loop
// with little work has each turn measured.
//
// # What it costs
//
// Counting costs some three instructions a message. Measuring a turn costs about 270 instructions,
// half of them for a reading of the clock at its end; one that is passed over costs some 50. That is 0.4%
// of the instructions of a busy loop's messages (35 a turn), and 2% if each message has a turn of
// its own. The clock is read, too, after each 64 callbacks, and when a timer or a first post is due.
// Nothing allocates memory but Of, and the first Measure (13 KiB for each loop).
package loopstats
