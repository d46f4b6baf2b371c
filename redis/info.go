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

	"github.com/rondo-go/rondo/redis/acl"
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
	{name: "Latencystats", write: infoLatencystats, extra: true},
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

// infoNothing is for a section that Redis has and this server does not: modules.
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
	put("atomicvar_api", "sync/atomic")
	put("gcc_version", "0.0.0")
	put("process_id", os.Getpid())
	put("process_supervised", "no")
	put("run_id", s.runID)
	put("tcp_port", s.config.tcpPort())
	put("server_time_usec", now.UnixMicro())
	put("uptime_in_seconds", up)
	put("uptime_in_days", up/86400)
	put("hz", s.config.hz)
	put("configured_hz", s.config.hz)
	put("lru_clock", now.Unix()&(1<<24-1))
	put("executable", executable)
	put("config_file", s.configFile())
	put("io_threads_active", 0)
}

func infoClients(s *Server, put func(string, any)) {
	connected, input, output := 0, 0, 0
	for c := range s.clients.listed() {
		connected++
		input, output = max(input, c.input), max(output, c.transport.pending())
	}
	put("connected_clients", connected)
	put("cluster_connections", 0)
	put("maxclients", s.config.maxClients)
	put("client_recent_max_input_buffer", input)
	put("client_recent_max_output_buffer", output)
	put("blocked_clients", s.blocking.count)
	put("tracking_clients", s.tracking.clients)
	put("clients_in_timeout_table", s.blocking.timed)
}

func infoStats(s *Server, put func(string, any)) {
	engine := s.Engine.Stats()
	put("total_connections_received", s.stats.connections)
	put("total_commands_processed", s.stats.commands)
	put("instantaneous_ops_per_sec", s.stats.ops.average())
	put("total_net_input_bytes", engine.BytesIn)
	put("total_net_output_bytes", engine.BytesOut)
	putFields(put, "total_net_repl_input_bytes:0 total_net_repl_output_bytes:0")
	put("instantaneous_input_kbps", fmt.Sprintf("%.2f", float64(s.stats.input.average())/1024))
	put("instantaneous_output_kbps", fmt.Sprintf("%.2f", float64(s.stats.output.average())/1024))
	putFields(put, "instantaneous_input_repl_kbps:0.00 instantaneous_output_repl_kbps:0.00")
	put("rejected_connections", s.stats.rejected)
	putFields(put, "sync_full:0 sync_partial_ok:0 sync_partial_err:0")
	put("expired_keys", s.space.store.Expired())
	putFields(put, "expired_stale_perc:0.00 expired_time_cap_reached_count:0 expire_cycle_cpu_milliseconds:0")
	put("evicted_keys", s.stats.evicted)
	put("evicted_clients", s.stats.evictedClients)
	putFields(put, "total_eviction_exceeded_time:0 current_eviction_exceeded_time:0")
	put("keyspace_hits", s.space.hits)
	put("keyspace_misses", s.space.misses)
	put("pubsub_channels", len(s.broker.channels.list))
	put("pubsub_patterns", len(s.broker.patterns.list))
	putFields(put, "latest_fork_usec:0 total_forks:0 migrate_cached_sockets:0 slave_expires_tracked_keys:0")
	put("active_defrag_hits", s.space.store.Work().Moved)
	putFields(put, "active_defrag_misses:0 active_defrag_key_hits:0 active_defrag_key_misses:0 "+
		"total_active_defrag_time:0 current_active_defrag_time:0")
	put("tracking_total_keys", s.tracking.table.len())
	put("tracking_total_items", s.tracking.table.items)
	put("tracking_total_prefixes", s.tracking.prefixes.tree.count)
	putFields(put, "unexpected_error_replies:0")
	put("total_error_replies", s.stats.totalErrors)
	put("dump_payload_sanitizations", 0)
	put("total_reads_processed", engine.Receives)
	put("total_writes_processed", engine.Sends)
	putFields(put, "io_threaded_reads_processed:0 io_threaded_writes_processed:0 reply_buffer_shrinks:0 reply_buffer_expands:0")
	denied := &s.stats.denied
	put("acl_access_denied_auth", denied[acl.DeniedLogin])
	put("acl_access_denied_cmd", denied[acl.DeniedCommand])
	put("acl_access_denied_key", denied[acl.DeniedKey])
	put("acl_access_denied_channel", denied[acl.DeniedChannel])
}

func infoReplication(s *Server, put func(string, any)) {
	put("role", "master")
	put("connected_slaves", 0)
	put("master_failover_state", "no-failover")
	put("master_replid", s.runID)
	put("master_replid2", strings.Repeat("0", len(s.runID)))
	putFields(put, "master_repl_offset:0 second_repl_offset:-1 repl_backlog_active:0")
	put("repl_backlog_size", findParam("repl-backlog-size").get(&s.config))
	putFields(put, "repl_backlog_first_byte_offset:0 repl_backlog_histlen:0")
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
	putFields(put, "used_cpu_sys_children:0.000000 used_cpu_user_children:0.000000")
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
		put("errorstat_"+safeInName.Replace(code), fmt.Sprintf("count=%d", s.stats.errors[code]))
	}
}

// safeInName replaces what would end the name of a field of INFO.
var safeInName = strings.NewReplacer("#", "_", ":", "_", "\n", "_", "\r", "_")

func infoKeyspace(s *Server, put func(string, any)) {
	for i := range s.space.dbs {
		db := &s.space.dbs[i]
		if db.len() > 0 {
			put("db"+strconv.Itoa(i), fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d", db.len(), db.keys.Expiring(), db.meanTTL()))
		}
	}
}
