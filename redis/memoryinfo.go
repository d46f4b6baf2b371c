package redis

import (
	"fmt"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
)

// maxBase bounds what a server counts as its own memory before it has keys: a program's
// other data is not the server's.
const maxBase = 4 << 20

// heapMemory returns the size of the program's heap objects in bytes.
func heapMemory() int64 { return memoryMetric("/memory/classes/heap/objects:bytes") }

// usedMemory returns the bytes that the server uses, besides its clients': keys and
// values, which clients have read them, and what it used when it started. Go's heap would count garbage too, and
// the rest of the program.
func (s *Server) usedMemory() int64 { return s.baseMemory + s.space.memory() + s.tracking.table.held() }

func memoryMetric(name string) int64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(sample[0].Value.Uint64())
}

// residentMemory returns the number of bytes that the system holds for the
// program: from the system on Linux, from the Go runtime elsewhere.
func residentMemory() int64 {
	var pages, resident int64
	text, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(text), &pages, &resident)
	}
	if err == nil {
		return resident * int64(os.Getpagesize())
	}
	return memoryMetric("/memory/classes/total:bytes") - memoryMetric("/memory/classes/heap/released:bytes")
}

// memoryFigures are the amounts of memory that INFO and MEMORY STATS report.
type memoryFigures struct {
	used, resident, peak int64
	data                 int64 // keys and values
	startup              int64
	clients              int64
	held                 int64 // used, with what is free in between
}

func (s *Server) memoryFigures() memoryFigures {
	m := s.space.store.Memory()
	f := memoryFigures{used: s.usedMemory(), resident: residentMemory(), data: s.space.memory(), startup: s.baseMemory}
	for _, c := range s.clients.list {
		n, _ := c.memory()
		f.clients += n
	}
	f.used += f.clients
	f.held = f.used + max(0, m.Held-f.data)
	s.stats.peakMemory = max(s.stats.peakMemory, f.used)
	f.peak = s.stats.peakMemory
	return f
}

func ratio(a, b int64) string { return fmt.Sprintf("%.2f", float64(a)/float64(max(b, 1))) }

func percent(a, b int64) string { return fmt.Sprintf("%.2f%%", 100*float64(a)/float64(max(b, 1))) }

// putFields puts constant fields, for what a server without scripts, persistence and
// replication has none of. Exporters read them.
func putFields(put func(string, any), fields string) {
	for _, field := range strings.Fields(fields) {
		name, value, _ := strings.Cut(field, ":")
		put(name, value)
	}
}

func infoMemory(s *Server, put func(string, any)) {
	f := s.memoryFigures()
	both := func(name string, bytes int64) {
		put(name, bytes)
		put(name+"_human", human(bytes))
	}
	both("used_memory", f.used)
	both("used_memory_rss", f.resident)
	both("used_memory_peak", f.peak)
	put("used_memory_peak_perc", percent(f.used, f.peak))
	put("used_memory_overhead", f.used-f.data)
	put("used_memory_startup", f.startup)
	put("used_memory_dataset", f.data)
	put("used_memory_dataset_perc", percent(f.data, f.used-f.startup))
	put("allocator_allocated", f.used)
	put("allocator_active", f.held)
	put("allocator_resident", f.resident)
	if total := systemMemory(); total > 0 {
		both("total_system_memory", total)
	}
	s.scripts.info(put)
	both("maxmemory", s.config.maxMemory)
	put("maxmemory_policy", policyNames[s.config.eviction.policy])
	put("allocator_frag_ratio", ratio(f.held, f.used))
	put("allocator_frag_bytes", f.held-f.used)
	put("allocator_rss_ratio", ratio(f.resident, f.held))
	put("allocator_rss_bytes", f.resident-f.held)
	putFields(put, "rss_overhead_ratio:1.00 rss_overhead_bytes:0")
	put("mem_fragmentation_ratio", ratio(f.resident, f.used))
	put("mem_fragmentation_bytes", f.resident-f.used)
	putFields(put, "mem_not_counted_for_evict:0 mem_replication_backlog:0 mem_total_replication_buffers:0 mem_clients_slaves:0")
	put("mem_clients_normal", f.clients)
	putFields(put, "mem_cluster_links:0 mem_aof_buffer:0 mem_allocator:go active_defrag_running:0")
	w := s.space.store.Work()
	put("lazyfree_pending_objects", w.Pending)
	put("lazyfreed_objects", w.Freed-s.stats.freedBefore)
}

// systemMemory returns the machine's memory in bytes, or 0 where that is not known.
func systemMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	var kib int64
	fmt.Sscanf(string(text), "MemTotal: %d kB", &kib)
	return kib << 10
}

// human writes an amount of memory for people, such as 1.50M.
func human(n int64) string {
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + "B"
	}
	f, unit := float64(n), 0
	for f >= 1<<10 && unit < len(" KMGTP")-1 {
		f /= 1 << 10
		unit++
	}
	return fmt.Sprintf("%.2f%c", f, " KMGTP"[unit])
}

func infoPersistence(s *Server, put func(string, any)) {
	putFields(put, "loading:0 async_loading:0 current_cow_peak:0 current_cow_size:0 current_cow_size_age:0 "+
		"current_fork_perc:0.00 current_save_keys_processed:0 current_save_keys_total:0")
	put("rdb_changes_since_last_save", s.space.dirty)
	put("rdb_bgsave_in_progress", 0)
	put("rdb_last_save_time", s.since.Unix())
	putFields(put, "rdb_last_bgsave_status:ok rdb_last_bgsave_time_sec:-1 rdb_current_bgsave_time_sec:-1 rdb_saves:0 "+
		"rdb_last_cow_size:0 rdb_last_load_keys_expired:0 rdb_last_load_keys_loaded:0 aof_enabled:0 "+
		"aof_rewrite_in_progress:0 aof_rewrite_scheduled:0 aof_last_rewrite_time_sec:-1 aof_current_rewrite_time_sec:-1 "+
		"aof_last_bgrewrite_status:ok aof_rewrites:0 aof_rewrites_consecutive_failures:0 aof_last_write_status:ok "+
		"aof_last_cow_size:0 module_fork_in_progress:0 module_fork_last_cow_size:0")
}
