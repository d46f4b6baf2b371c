package redis

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync/atomic"

	"github.com/rondo-go/rondo/resp"
)

// memorySubcommands returns the subcommands of MEMORY that concern the whole server.
func memorySubcommands() []*command {
	report := []string{"nondeterministic_output", "request_policy:all_shards", "response_policy:special"}
	return []*command{
		{name: "memory|doctor", arity: 2, tips: report, run: memoryDoctorCommand,
			doc: doc{"Returns a report about memory.", "4.0.0", "server", "O(1)", "", ""}},
		{name: "memory|malloc-stats", arity: 2, tips: report, run: memoryMallocStatsCommand,
			doc: doc{"Returns the allocator's own statistics.", "4.0.0", "server", "O(1)", "", ""}},
		{name: "memory|purge", arity: 2, run: memoryPurgeCommand,
			tips: []string{"request_policy:all_shards", "response_policy:all_succeeded"},
			doc:  doc{"Gives free memory back to the system.", "4.0.0", "server", "O(1)", "", ""}},
		{name: "memory|stats", arity: 2, tips: report, run: memoryStatsCommand,
			doc: doc{"Returns what memory is used for.", "4.0.0", "server", "O(N), N the number of clients", "", ""}},
	}
}

func memoryStatsCommand(c *client, _ [][]byte) {
	s := c.server
	f := s.memoryFigures()
	keys := int64(0)
	for i := range s.space.dbs {
		keys += int64(s.space.dbs[i].len())
	}
	c.counted(func() (n int) {
		number := func(name string, v int64) {
			c.BulkString(name)
			c.Int(v)
			n++
		}
		quotient := func(name string, a, b int64) {
			c.BulkString(name)
			c.Double(float64(a) / float64(max(b, 1)))
			n++
		}
		number("peak.allocated", f.peak)
		number("total.allocated", f.used)
		number("startup.allocated", f.startup)
		number("replication.backlog", 0)
		number("clients.slaves", 0)
		number("clients.normal", f.clients)
		for _, name := range []string{"cluster.links", "aof.buffer", "lua.caches", "functions.caches"} {
			number(name, 0)
		}
		for i := range s.space.dbs {
			if db := &s.space.dbs[i]; db.len() > 0 {
				table, deadlines := db.keys.Overhead()
				c.BulkString(fmt.Sprintf("db.%d", i))
				c.Map(3)
				c.intPair("overhead.hashtable.main", int(table))
				c.intPair("overhead.hashtable.expires", int(deadlines))
				c.intPair("overhead.hashtable.slot-to-keys", 0)
				n++
			}
		}
		number("overhead.total", f.used-f.data)
		number("keys.count", keys)
		number("keys.bytes-per-key", f.data/max(keys, 1)*min(keys, 1))
		number("dataset.bytes", f.data)
		quotient("dataset.percentage", 100*f.data, f.used-f.startup)
		quotient("peak.percentage", 100*f.used, f.peak)
		number("allocator.allocated", f.used)
		number("allocator.active", f.held)
		number("allocator.resident", f.resident)
		quotient("allocator-fragmentation.ratio", f.held, f.used)
		number("allocator-fragmentation.bytes", f.held-f.used)
		quotient("allocator-rss.ratio", f.resident, f.held)
		number("allocator-rss.bytes", f.resident-f.held)
		quotient("rss-overhead.ratio", 1, 1)
		number("rss-overhead.bytes", 0)
		quotient("fragmentation", f.resident, f.used)
		number("fragmentation.bytes", f.resident-f.used)
		return n
	}, (*resp.Reply).Map)
}

// memoryDoctorCommand knows what can be wrong here, which is less than with C's
// allocator.
func memoryDoctorCommand(c *client, _ [][]byte) {
	s := c.server
	f := s.memoryFigures()
	const little = 5 << 20
	var advice []string
	switch {
	case f.used < little:
		advice = append(advice, "The server holds so little that ratios say nothing.")
	default:
		if f.peak > f.used*3/2 {
			advice = append(advice, fmt.Sprintf("The peak was %s, more than one and a half times of what is used now. What was freed goes back to the system by itself.", human(f.peak)))
		}
		if f.resident > f.used*3/2 {
			advice = append(advice, fmt.Sprintf("The system holds %s for the program, which uses %s. MEMORY PURGE gives free memory back; GOGC and GOMEMLIMIT bound what the garbage collector leaves.", human(f.resident), human(f.used)))
		}
		if n := int64(len(s.clients.list)); n > 0 && f.clients/n > 200<<10 {
			advice = append(advice, fmt.Sprintf("Clients hold %s on average. CLIENT LIST shows which; client-output-buffer-limit and maxmemory-clients bound it.", human(f.clients/n)))
		}
	}
	c.Verbatim("txt", cmp.Or(strings.Join(advice, "\n"), "Nothing is wrong with the server's memory.")+"\n")
}

// memoryMallocStatsCommand lists the classes of memory that Go's runtime knows.
func memoryMallocStatsCommand(c *client, _ [][]byte) {
	var samples []metrics.Sample
	for _, d := range metrics.All() {
		if strings.HasPrefix(d.Name, "/memory/classes/") && d.Kind == metrics.KindUint64 {
			samples = append(samples, metrics.Sample{Name: d.Name})
		}
	}
	metrics.Read(samples)
	var text strings.Builder
	for _, x := range samples {
		name := strings.TrimSuffix(strings.TrimPrefix(x.Name, "/memory/classes/"), ":bytes")
		fmt.Fprintf(&text, "%s: %d\n", name, x.Value.Uint64())
	}
	m := c.server.space.store.Memory()
	fmt.Fprintf(&text, "store/used: %d\nstore/held: %d\nstore/waiting: %d\n", m.Used, m.Held, m.Waiting)
	c.Verbatim("txt", text.String())
}

// purging is set while a goroutine gives memory back.
var purging atomic.Bool

// memoryPurgeCommand starts what takes too long for a command: a garbage collection,
// and giving memory back to the system.
func memoryPurgeCommand(c *client, _ [][]byte) {
	c.server.tidying.start()
	if purging.CompareAndSwap(false, true) {
		go func() {
			defer purging.Store(false)
			debug.FreeOSMemory()
		}()
	}
	c.ok()
}
