package redis

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// exported are the fields of INFO that redis_exporter reads, for version 7.0 without
// replicas, cluster and modules.
const exported = `uptime_in_seconds process_id connected_clients blocked_clients tracking_clients clients_in_timeout_table
maxclients client_recent_max_input_buffer client_recent_max_output_buffer cluster_connections allocator_active allocator_allocated allocator_resident
allocator_frag_ratio allocator_frag_bytes allocator_rss_ratio allocator_rss_bytes used_memory used_memory_rss used_memory_peak
used_memory_lua used_memory_vm_eval used_memory_scripts_eval used_memory_vm_functions used_memory_vm_total used_memory_functions
used_memory_scripts number_of_cached_scripts number_of_functions number_of_libraries used_memory_overhead used_memory_startup used_memory_dataset
maxmemory maxmemory_policy mem_fragmentation_ratio mem_fragmentation_bytes mem_clients_slaves mem_clients_normal mem_cluster_links mem_aof_buffer
mem_replication_backlog mem_total_replication_buffers total_system_memory lazyfree_pending_objects lazyfreed_objects active_defrag_running
migrate_cached_sockets active_defrag_hits active_defrag_misses active_defrag_key_hits active_defrag_key_misses total_active_defrag_time
expire_cycle_cpu_milliseconds rdb_changes_since_last_save rdb_last_bgsave_time_sec rdb_current_bgsave_time_sec rdb_saves rdb_last_cow_size
rdb_last_load_keys_expired rdb_last_load_keys_loaded aof_rewrite_in_progress aof_rewrite_scheduled aof_last_rewrite_time_sec
aof_current_rewrite_time_sec aof_last_cow_size aof_enabled rdb_bgsave_in_progress rdb_last_save_time rdb_last_bgsave_status aof_last_bgrewrite_status
aof_last_write_status loading async_loading module_fork_in_progress module_fork_last_cow_size total_connections_received
total_commands_processed instantaneous_ops_per_sec total_net_input_bytes total_net_output_bytes total_net_repl_input_bytes total_net_repl_output_bytes
instantaneous_input_kbps instantaneous_output_kbps instantaneous_input_repl_kbps instantaneous_output_repl_kbps rejected_connections sync_full
sync_partial_ok sync_partial_err expired_keys expired_stale_perc expired_time_cap_reached_count evicted_keys evicted_clients
total_eviction_exceeded_time current_eviction_exceeded_time keyspace_hits keyspace_misses pubsub_channels pubsub_patterns latest_fork_usec
slave_expires_tracked_keys tracking_total_keys tracking_total_items tracking_total_prefixes unexpected_error_replies total_error_replies
dump_payload_sanitizations total_reads_processed total_writes_processed io_threaded_reads_processed io_threaded_writes_processed
connected_slaves master_repl_offset second_repl_offset repl_backlog_active repl_backlog_size repl_backlog_first_byte_offset repl_backlog_histlen
used_cpu_sys used_cpu_user used_cpu_sys_children used_cpu_user_children cluster_enabled`

func TestInfoHasWhatExportersRead(t *testing.T) {
	b := newBench(t, &Server{})
	info := b.do("a", "INFO", "everything")
	for _, name := range strings.Fields(exported) {
		if name == "total_system_memory" && systemMemory() == 0 {
			continue
		}
		if !strings.Contains(info, " "+name+":") {
			t.Errorf("INFO has no %s", name)
		}
	}
	seen := make(map[string]bool)
	for _, field := range strings.Fields(info) {
		if name, _, ok := strings.Cut(field, ":"); ok && seen[name] {
			t.Errorf("INFO has %s twice", name)
		} else if ok {
			seen[name] = true
		}
	}
}

func TestMemoryCommands(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		MEMORY DOCTOR => $...
		MEMORY MALLOC-STATS => $...
		MEMORY PURGE => +OK
		MEMORY STATS x => -ERR wrong number of arguments for 'memory|stats' command
		MEMORY STATS => *54 $14 peak.allocated...
		SET k v => +OK
		SET e v EX 10 => +OK
		MEMORY STATS => *56 $14 peak.allocated...
		HELLO 3 => ...
		MEMORY STATS => %28 $14 peak.allocated...
		MEMORY DOCTOR => =...
	`)
	if got := b.do("a", "MEMORY", "STATS"); !strings.Contains(got, "$4 db.0 %3 $23 overhead.hashtable.main :") || !strings.Contains(got, "$10 keys.count :2") {
		t.Error(got)
	}
}

// INFO counts the values and tables that are freed in slices.
func TestInfoLazyfree(t *testing.T) {
	b := newBench(t, &Server{})
	for i := range 5000 {
		b.do("a", "SADD", "s", fmt.Sprint("a member that is long enough ", i))
	}
	expect := func(want ...string) {
		t.Helper()
		info := b.do("a", "INFO", "memory")
		for _, w := range want {
			if !strings.Contains(info, w+" ") && !strings.HasSuffix(info, w) {
				t.Errorf("no %s in %s", w, info)
			}
		}
	}
	expect("lazyfree_pending_objects:0", "lazyfreed_objects:0")
	b.do("a", "DEL", "s")
	expect("lazyfree_pending_objects:1", "lazyfreed_objects:0")
	for b.s.space.store.Tick(tidyWork) {
	}
	expect("lazyfree_pending_objects:0", "lazyfreed_objects:1")
	b.do("a", "CONFIG", "RESETSTAT")
	expect("lazyfreed_objects:0")
}

func TestInertParameters(t *testing.T) {
	newBench(t, &Server{}).script(`
		CONFIG GET activedefrag => *2 $12 activedefrag $3 yes
		CONFIG SET activedefrag no => +OK
		CONFIG SET activedefrag maybe => -ERR CONFIG SET failed (possibly related to argument 'activedefrag') - argument must be 'yes' or 'no'
		CONFIG SET active-defrag-threshold-lower 20 => +OK
		CONFIG SET active-defrag-ignore-bytes 1kb active-defrag-cycle-max 99 => +OK
		CONFIG GET active-defrag-* => *12 $23 active-defrag-cycle-max $2 99 $23 active-defrag-cycle-min $1 1 $26 active-defrag-ignore-bytes $4 1024 $29 active-defrag-max-scan-fields $4 1000 $29 active-defrag-threshold-lower $2 20 $29 active-defrag-threshold-upper $3 100
		CONFIG SET active-defrag-cycle-max 100 => -ERR CONFIG SET failed (possibly related to argument 'active-defrag-cycle-max') - argument must be between 1 and 99 inclusive
		CONFIG SET active-defrag-ignore-bytes 0 => -ERR CONFIG SET failed (possibly related to argument 'active-defrag-ignore-bytes') - argument must be between 1 and 9223372036854775807 inclusive
		CONFIG SET active-defrag-ignore-bytes x => -ERR CONFIG SET failed (possibly related to argument 'active-defrag-ignore-bytes') - argument must be a memory value
		CONFIG SET slave-priority 7 masterauth secret appendfsync ALWAYS lazyfree-lazy-user-del YES => +OK
		CONFIG GET replica-priority masterauth appendfsync => *6 $11 appendfsync $6 always $10 masterauth $6 secret $16 replica-priority $1 7
		CONFIG SET appendfsync never => -ERR CONFIG SET failed (possibly related to argument 'appendfsync') - argument(s) must be one of the following: everysec, always, no
		CONFIG SET tcp-backlog 1 => -ERR CONFIG SET failed (possibly related to argument 'tcp-backlog') - can't set immutable config
		CONFIG GET watchdog-peri* => *0
		CONFIG GET watchdog-period => *2 $15 watchdog-period $1 0
		CONFIG SET maxmemory-clients 200% => -ERR CONFIG SET failed (possibly related to argument 'maxmemory-clients') - percentage argument must be less or equal to 100
		CONFIG SET maxmemory-clients x% => -ERR CONFIG SET failed (possibly related to argument 'maxmemory-clients') - argument must be a memory or percent value
		CONFIG SET maxmemory-clients 5% => +OK
		CONFIG GET maxmemory-clients => *2 $17 maxmemory-clients $2 5%
		CONFIG SET maxmemory-clients 1mb => +OK
		CONFIG GET maxmemory-clients => *2 $17 maxmemory-clients $7 1048576
	`)
}

// Every parameter can be set to the value that it has.
func TestConfigSanity(t *testing.T) {
	b := newBench(t, &Server{})
	for _, p := range params {
		if p.immutable || p.protected {
			continue
		}
		before := p.get(&b.s.config)
		if got := b.do("a", "CONFIG", "SET", p.name, before); got != "+OK" {
			t.Errorf("CONFIG SET %s %q: %s", p.name, before, got)
		}
		if after := p.get(&b.s.config); after != before {
			t.Errorf("%s was %q, and is %q", p.name, before, after)
		}
	}
}

func TestMaxmemoryClients(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		CONFIG SET maxmemory-clients 100kb => +OK
		small: PING => +PONG
		big: MULTI => +OK
		spared: CLIENT NO-EVICT on => +OK
		spared: MULTI => +OK
	`)
	b.now = b.now.Add(time.Second)
	b.do("spared", "SET", "k", strings.Repeat("x", 40<<10))
	b.do("big", "SET", "k", strings.Repeat("x", 30<<10))
	b.now = b.now.Add(time.Second)
	b.do("small", "PING")
	if b.clients["big"].aborted != nil {
		t.Error("a client was closed below the limit")
	}
	b.do("big", "SET", "k", strings.Repeat("x", 40<<10))
	b.now = b.now.Add(time.Second)
	b.do("small", "PING")
	if b.clients["big"].aborted == nil || b.clients["spared"].aborted != nil || b.clients["small"].aborted != nil {
		t.Error("the wrong client was closed, or none")
	}
	if info := b.do("small", "INFO", "stats"); !strings.Contains(info, "evicted_clients:1 ") {
		t.Error(info)
	}
}

// The clients are not all counted after each batch, but a client that makes them hold too much
// is closed at once; clients that are exempt do not make the server count each time.
func TestMaxmemoryClientsIsQuick(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		CONFIG SET maxmemory-clients 100kb => +OK
		small: PING => +PONG
		big: MULTI => +OK
		spared: CLIENT NO-EVICT on => +OK
		spared: MULTI => +OK
	`)
	counted := func() bool {
		c := b.clients["big"].client
		c.listed = -1 // a count of all sets it
		b.do("small", "PING")
		return c.listed != -1
	}
	for i := range 5 {
		if counted() {
			t.Errorf("batch %d counts all clients, which hold little", i)
		}
	}
	b.now = b.now.Add(20 * time.Millisecond)
	if !counted() {
		t.Error("the clients are not counted after a while")
	}
	b.do("spared", "SET", "k", strings.Repeat("x", 60<<10))
	if b.clients["big"].aborted != nil {
		t.Error("a client was closed below the limit")
	}
	b.do("big", "SET", "k", strings.Repeat("x", 50<<10))
	if b.clients["big"].aborted == nil {
		t.Error("the client that holds too much was not closed at once")
	}
	b.do("spared", "SET", "k", strings.Repeat("x", 60<<10))
	for _, name := range []string{"small", "spared"} {
		if aborted := b.clients[name].aborted != nil; aborted != (name == "small") {
			t.Errorf("%s: closed is %v", name, aborted)
		}
	}
	b.script(`big2: MULTI => +OK`)
	if !b.s.clientMemory.stuck || b.clients["big2"].aborted != nil {
		t.Error("the exempt client is not noticed")
	}
}

// A client that is closed for its output does not make others go.
func TestMaxmemoryClientsSparesOthers(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		CONFIG SET maxmemory-clients 100kb => +OK
		CONFIG SET client-output-buffer-limit "normal 60000 0 0" => +OK
		big: MULTI => +OK
		greedy: PING => +PONG
	`)
	b.do("big", "SET", "k", strings.Repeat("x", 60_000))
	b.now = b.now.Add(time.Second)
	b.clients["greedy"].waiting = 70_000
	b.do("greedy", "PING")
	if b.clients["big"].aborted != nil || b.clients["greedy"].aborted == nil {
		t.Error("the wrong client was closed, or none")
	}
}

func TestMaxmemoryClientsCountsSubscriptions(t *testing.T) {
	for _, subscribe := range []string{"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"} {
		b := newBench(t, &Server{})
		b.script(`CONFIG SET maxmemory-clients 100kb => +OK`)
		for i := range 2000 {
			b.now = b.now.Add(10 * time.Millisecond)
			b.do("s", subscribe, strconv.Itoa(i))
			if b.clients["s"].aborted != nil {
				break
			}
		}
		if b.clients["s"].aborted == nil {
			t.Errorf("%s: not closed after 2000 subscriptions", subscribe)
		}
	}
}

// What clients hold counts for maxmemory, as long as they hold it.
func TestMaxmemoryCountsClients(t *testing.T) {
	b := newBench(t, &Server{})
	for i := range 100 {
		b.do("a", "SET", strconv.Itoa(i), strings.Repeat("x", 10_000))
	}
	b.do("a", "CONFIG", "SET", "maxmemory", strconv.FormatInt(b.s.usedMemory()+1<<20, 10))
	b.script(`
		SET new value => +OK
		s: SUBSCRIBE c => ...
		reader: PING => +PONG
	`)
	for _, f := range []*fakeConn{b.connect("reader"), b.connect("s")} {
		f.waiting = 3 << 20
		if f.client.subscribed() {
			b.script(`PUBLISH c x => :1`)
		} else {
			b.script(`reader: PING => +PONG`)
		}
		b.script(`SET new value => -OOM command not allowed when used memory > 'maxmemory'.`)
		f.waiting = 0
		b.now = b.now.Add(time.Second)
		b.script(`
			PING => +PONG
			SET new value => +OK
		`)
	}
	b.clients["reader"].waiting = 3 << 19
	b.script(`
		CONFIG SET maxmemory-policy allkeys-random => +OK
		reader: PING => +PONG
		SET new value => +OK
	`)
	if n := b.s.stats.evicted; n == 0 || n > 100 {
		t.Errorf("%d keys were evicted", n)
	}
	b.clients["reader"].closed = true
	b.clients["reader"].end()
	b.now = b.now.Add(time.Second)
	b.script(`PING => +PONG`)
	if held := b.s.clientMemory.held; held != 2*clientSize+96+1 {
		t.Errorf("clients hold %d bytes after the largest has gone", held)
	}
}

// What a client was sent in its last batch does not make keys go in the next one.
func TestSentOutputDoesNotEvict(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`SET k v => +OK`)
	f := b.connect("a")
	b.do("a", "CONFIG", "SET", "maxmemory", strconv.FormatInt(b.s.usedMemory()+3000, 10))
	f.waiting = 5000 // a short reply: as that of INFO
	b.script(`
		PING => +PONG
		SET k w => +OK
	`)
	f.waiting = 1 << 20
	b.script(`PING => +PONG`)
	f.waiting = 0
	b.script(`SET k x => +OK`)
}

// Where keys are evicted by the time of their use, no two of them share an integer.
func TestRefcountWithEviction(t *testing.T) {
	newBench(t, &Server{}).script(`
		SET a 1 => +OK
		CONFIG SET maxmemory 1gb maxmemory-policy allkeys-random => +OK
		OBJECT REFCOUNT a => :2147483647
		CONFIG SET maxmemory-policy volatile-lru => +OK
		OBJECT REFCOUNT a => :1
		CONFIG SET maxmemory-policy allkeys-lfu => +OK
		OBJECT REFCOUNT a => :1
		CONFIG SET maxmemory 0 => +OK
		OBJECT REFCOUNT a => :2147483647
	`)
}

func TestDebugProtocol(t *testing.T) {
	newBench(t, &Server{Debug: DebugYes}).script(`
		DEBUG PROTOCOL string => $11 Hello World
		DEBUG PROTOCOL map => *6 :0 :0 :1 :1 :2 :0
		DEBUG PROTOCOL attrib => $39 Some real reply following the attribute
		DEBUG PROTOCOL push => -ERR RESP2 is not supported by this command
		DEBUG PROTOCOL x => -ERR Wrong protocol type name. Please use...
		HELLO 3 => ...
		DEBUG PROTOCOL integer => :12345
		DEBUG PROTOCOL double => ,3.141
		DEBUG PROTOCOL bignum => (1234567999999999999999999999999999999
		DEBUG PROTOCOL null => _
		DEBUG PROTOCOL array => *3 :0 :1 :2
		DEBUG PROTOCOL set => ~3 :0 :1 :2
		DEBUG PROTOCOL map => %3 :0 #f :1 #t :2 #f
		DEBUG PROTOCOL attrib => |1 $14 key-popularity *2 $7 key:123 :90 $39 Some real reply following the attribute
		DEBUG PROTOCOL push => >2 $16 server-cpu-usage :42 $40 Some real reply following the push reply
		DEBUG PROTOCOL true => #t
		DEBUG PROTOCOL false => #f
	`)
}
