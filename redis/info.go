package redis

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"time"
)

// infoSection is a section of INFO's reply.
type infoSection struct {
	name  string
	write func(s *Server, put func(key string, value any))
	extra bool // only on request, by name or with "all"
}

var infoSections = []infoSection{
	{name: "Server", write: infoServer},
	{name: "Clients", write: infoClients},
	{name: "Memory", write: infoMemory},
	{name: "Persistence", write: infoPersistence},
	{name: "Stats", write: infoStats},
	{name: "Replication", write: infoReplication},
	{name: "CPU", write: infoCPU},
	{name: "Modules", write: infoNothing},
	{name: "Commandstats", write: infoCommandstats, extra: true},
	{name: "Errorstats", write: infoErrorstats},
	{name: "Latencystats", write: infoNothing, extra: true},
	{name: "Cluster", write: func(_ *Server, put func(string, any)) { put("cluster_enabled", 0) }},
	{name: "Keyspace", write: infoKeyspace},
}

func infoCommand(c *client, args [][]byte) {
	var text bytes.Buffer
	for _, section := range infoSections {
		if !section.wanted(args[1:]) {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\r\n")
		}
		fmt.Fprintf(&text, "# %s\r\n", section.name)
		section.write(c.server, func(key string, value any) {
			fmt.Fprintf(&text, "%s:%v\r\n", key, value)
		})
	}
	c.Verbatim("txt", text.String())
}

func (i *infoSection) wanted(names [][]byte) bool {
	if len(names) == 0 {
		return !i.extra
	}
	for _, name := range names {
		switch name := strings.ToLower(string(name)); name {
		case "all", "everything", strings.ToLower(i.name):
			return true
		case "default":
			if !i.extra {
				return true
			}
		}
	}
	return false
}

// infoNothing is for sections that Redis has and this server does not: modules,
// and percentiles of commands' durations.
func infoNothing(*Server, func(string, any)) {}

func infoServer(s *Server, put func(string, any)) {
	now := s.clock()
	up := int64(now.Sub(s.since) / time.Second)
	executable, _ := os.Executable()
	put("redis_version", Version)
	put("redis_git_sha1", "00000000")
	put("redis_git_dirty", 0)
	put("redis_build_id", 0)
	put("redis_mode", "standalone")
	put("os", runtime.GOOS+" "+runtime.GOARCH)
	put("arch_bits", strconv.IntSize)
	put("monotonic_clock", "Go "+runtime.Version())
	put("multiplexing_api", s.Engine.BackendName())
	put("process_id", os.Getpid())
	put("process_supervised", "no")
	put("run_id", s.runID)
	put("tcp_port", s.config.port)
	put("server_time_usec", now.UnixMicro())
	put("uptime_in_seconds", up)
	put("uptime_in_days", up/86400)
	put("hz", s.config.hz)
	put("configured_hz", s.config.hz)
	put("executable", executable)
	put("config_file", "")
	put("io_threads_active", 0)
}

func infoClients(s *Server, put func(string, any)) {
	connected := 0
	for range s.clients.listed() {
		connected++
	}
	put("connected_clients", connected)
	put("cluster_connections", 0)
	put("maxclients", s.config.maxClients)
	put("blocked_clients", s.blocking.count)
	put("tracking_clients", 0)
	put("clients_in_timeout_table", s.blocking.timed)
}

// heapMemory returns the size of the program's heap objects in bytes.
func heapMemory() int64 { return memoryMetric("/memory/classes/heap/objects:bytes") }

// usedMemory returns the bytes that the program uses: heap objects, and what the
// store holds elsewhere.
func (s *Server) usedMemory() int64 {
	return heapMemory() + s.space.memory() - s.space.store.Memory().Heap
}

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

func infoMemory(s *Server, put func(string, any)) {
	used, resident := s.usedMemory(), residentMemory()
	s.stats.peakMemory = max(s.stats.peakMemory, used)
	data := s.space.memory()
	for _, m := range []struct {
		name  string
		bytes int64
	}{
		{"used_memory", used}, {"used_memory_rss", resident}, {"used_memory_peak", s.stats.peakMemory},
	} {
		put(m.name, m.bytes)
		put(m.name+"_human", human(m.bytes))
	}
	put("used_memory_peak_perc", fmt.Sprintf("%.2f%%", 100*float64(used)/float64(s.stats.peakMemory)))
	put("used_memory_dataset", data)
	put("used_memory_dataset_perc", fmt.Sprintf("%.2f%%", 100*float64(data)/float64(used)))
	put("maxmemory", s.config.maxMemory)
	put("maxmemory_human", human(s.config.maxMemory))
	put("maxmemory_policy", policyNames[s.config.eviction.policy])
	put("mem_fragmentation_ratio", fmt.Sprintf("%.2f", float64(resident)/float64(used)))
	put("mem_allocator", "go")
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
	put("loading", 0)
	put("async_loading", 0)
	put("rdb_changes_since_last_save", s.space.dirty)
	put("rdb_bgsave_in_progress", 0)
	put("rdb_last_save_time", s.since.Unix())
	put("aof_enabled", 0)
	put("aof_rewrite_in_progress", 0)
}

func infoStats(s *Server, put func(string, any)) {
	engine := s.Engine.Stats()
	put("total_connections_received", s.stats.connections)
	put("total_commands_processed", s.stats.commands)
	put("instantaneous_ops_per_sec", s.stats.ops.average())
	put("total_net_input_bytes", engine.BytesIn)
	put("total_net_output_bytes", engine.BytesOut)
	put("instantaneous_input_kbps", fmt.Sprintf("%.2f", float64(s.stats.input.average())/1024))
	put("instantaneous_output_kbps", fmt.Sprintf("%.2f", float64(s.stats.output.average())/1024))
	put("rejected_connections", s.stats.rejected)
	put("expired_keys", s.space.store.Expired())
	put("evicted_keys", s.stats.evicted)
	put("evicted_clients", 0)
	put("keyspace_hits", s.space.hits)
	put("keyspace_misses", s.space.misses)
	put("pubsub_channels", len(s.broker.channels.list))
	put("pubsub_patterns", len(s.broker.patterns.list))
	put("total_error_replies", s.stats.totalErrors)
	put("total_reads_processed", engine.Receives)
	put("total_writes_processed", engine.Sends)
}

func infoReplication(s *Server, put func(string, any)) {
	put("role", "master")
	put("connected_slaves", 0)
	put("master_failover_state", "no-failover")
	put("master_replid", s.runID)
	put("master_repl_offset", 0)
}

// cpuTime returns the program's processor time in seconds. On Linux the numbers
// come from the system. Elsewhere they are the Go runtime's estimate, which
// does not know the system's share.
func cpuTime() (sys, user float64) {
	const perSecond = 100 // ticks, on every Linux
	text, err := os.ReadFile("/proc/self/stat")
	if _, fields, ok := strings.Cut(string(text), ") "); ok && err == nil {
		// fields begins with the third field; utime and stime are the 14th and 15th.
		if f := strings.Fields(fields); len(f) > 12 {
			u, err1 := strconv.ParseFloat(f[11], 64)
			s, err2 := strconv.ParseFloat(f[12], 64)
			if err1 == nil && err2 == nil {
				return s / perSecond, u / perSecond
			}
		}
	}
	sample := []metrics.Sample{{Name: "/cpu/classes/user:cpu-seconds"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() == metrics.KindFloat64 {
		user = sample[0].Value.Float64()
	}
	return 0, user
}

func infoCPU(_ *Server, put func(string, any)) {
	sys, user := cpuTime()
	put("used_cpu_sys", fmt.Sprintf("%.6f", sys))
	put("used_cpu_user", fmt.Sprintf("%.6f", user))
}

func infoCommandstats(s *Server, put func(string, any)) {
	s.commands.all(func(cmd *command) {
		if cmd.calls > 0 || cmd.rejected > 0 {
			all, one := cmd.microseconds()
			put("cmdstat_"+cmd.name, fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
				cmd.calls, all, one, cmd.rejected, cmd.failed))
		}
	})
}

func infoErrorstats(s *Server, put func(string, any)) {
	var codes []string
	for code := range s.stats.errors {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	for _, code := range codes {
		put("errorstat_"+code, fmt.Sprintf("count=%d", s.stats.errors[code]))
	}
}

func infoKeyspace(s *Server, put func(string, any)) {
	for i := range s.space.dbs {
		db := &s.space.dbs[i]
		if db.len() > 0 {
			put("db"+strconv.Itoa(i), fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d", db.len(), db.keys.Expiring(), db.meanTTL()))
		}
	}
}
