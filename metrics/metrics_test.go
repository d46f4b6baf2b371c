package metrics

import (
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/loopstats"
	"github.com/rondo-go/rondo/proxy"
	"github.com/rondo-go/rondo/redis"
	"github.com/rondo-go/rondo/resp"
)

// A collected collects what a function sends.
type collected struct {
	prometheus.Collector
	send func(chan<- prometheus.Metric)
}

func (c collected) Collect(to chan<- prometheus.Metric) { c.send(to) }

// gather returns the values of a collector by name and labels, as in
// rondo_turns_total{0}. It fails if promlint finds a problem.
func gather(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	problems, err := testutil.CollectAndLint(c)
	if err != nil || len(problems) > 0 {
		t.Fatalf("promlint: %v, %v", problems, err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetValue())
			}
			name := f.GetName()
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			values[name] = valueOf(m)
		}
	}
	return values
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	case m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount())
	}
	return float64(m.Summary.GetSampleCount())
}

// listening starts an engine that echoes, and exchanges a message with it.
func listening(t *testing.T) *rondo.Engine {
	t.Helper()
	e := &rondo.Engine{NumLoops: 2, Backend: "std"}
	t.Cleanup(func() { e.Close() })
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc((*rondo.Conn).Write)
	})
	if err != nil {
		t.Fatal(err)
	}
	exchange(t, ln.Addr().String())
	return e
}

// exchange sends five bytes to an echo server, reads them, and waits for the connection's end.
func exchange(t *testing.T, addr string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 10)
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(buf); err != nil || string(buf[:n]) != "hello" {
		t.Fatalf("read %q, %v", buf[:n], err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(buf); n != 0 || err == nil {
		t.Fatalf("read %d bytes more", n)
	}
}

// The collector shows each counter of Engine.Stats.
func TestEngine(t *testing.T) {
	e := &rondo.Engine{}
	if got := gather(t, Engine(e)); len(got) != 0 {
		t.Errorf("before the start: %v", got)
	}
	e = listening(t)
	if err := e.Close(); err != nil { // so that the counts stay
		t.Fatal(err)
	}
	e.Wait()
	got := gather(t, Engine(e))
	if got["rondo_engine_info{std}"] != 1 {
		t.Errorf("the backend is missing in %v", got)
	}
	stats := e.Stats()
	for name, want := range map[string]float64{
		"rondo_accepted_connections_total": 1, "rondo_received_bytes_total": 5, "rondo_sent_bytes_total": 5,
		"rondo_turns_total": float64(stats.Turns), "rondo_open_connections": float64(stats.Open),
	} {
		if sum := got[name+"{0}"] + got[name+"{1}"]; sum != want {
			t.Errorf("%s is %v, want %v", name, sum, want)
		}
	}
}

// Every field of rondo.LoopStats is shown, once.
func TestEveryCountOfALoop(t *testing.T) {
	var stats rondo.LoopStats
	fields := reflect.ValueOf(&stats).Elem()
	for i := range fields.NumField() {
		switch f := fields.Field(i); f.Kind() {
		case reflect.Int:
			f.SetInt(int64(i) + 1)
		case reflect.Uint64:
			f.SetUint(uint64(i) + 1)
		default:
			t.Errorf("LoopStats.%s is a %v: teach loopFamilies and this test what that is", fields.Type().Field(i).Name, f.Type())
		}
	}
	got := gather(t, collected{Engine(nil), func(to chan<- prometheus.Metric) { sendLoop(to, "7", &stats) }})
	var values []float64
	for name, v := range got {
		if !strings.HasSuffix(name, "{7}") {
			t.Errorf("%s has not the loop's label", name)
		}
		values = append(values, v)
	}
	slices.Sort(values)
	for i := range fields.NumField() {
		if n := len(values) - len(slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return v == float64(i+1) })); n != 1 {
			t.Errorf("LoopStats.%s is shown %d times, want once: add it to loopFamilies", fields.Type().Field(i).Name, n)
		}
	}
}

// What package loopstats counts and measures is shown, once.
func TestLoops(t *testing.T) {
	e := listening(t)
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc((*rondo.Conn).Write)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := gather(t, Engine(e)); len(got) == 0 || hasMeasure(got) {
		t.Errorf("before Measure: %v", got)
	}
	stop, err := loopstats.Measure(e)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	exchange(t, ln.Addr().String())
	if err := e.Close(); err != nil { // so that the counts stay
		t.Fatal(err)
	}
	e.Wait()
	got := gather(t, Engine(e))
	sum := func(name, label string) float64 { return got[name+"{"+label+"0}"] + got[name+"{"+label+"1}"] }
	if n := sum("rondo_ended_connections_total", "peer_end,"); n != 2 {
		t.Errorf("%v connections were ended by their peer, want 2", n)
	}
	var turns, posts float64
	for _, l := range loopstats.Of(e) {
		turns += float64(l.Turn.Count())
		posts += float64(l.PostDelay.Count())
	}
	if n := sum("rondo_turn_seconds", ""); n == 0 || n != turns {
		t.Errorf("%v turns, want %v", n, turns)
	}
	if n := sum("rondo_post_delay_seconds", ""); n != posts {
		t.Errorf("%v posts, want %v", n, posts)
	}
	for _, name := range []string{"rondo_output_stops_total", "rondo_waiting_output_bytes", "rondo_used_buffers"} {
		if n, ok := got[name+"{1}"]; !ok || n != 0 {
			t.Errorf("%s is %v (%t), want 0", name, n, ok)
		}
	}
}

func hasMeasure(values map[string]float64) bool {
	for name := range values {
		if strings.HasPrefix(name, "rondo_turn_seconds") {
			return true
		}
	}
	return false
}

// Every Histogram of a Loop is shown.
func TestEveryMeasureOfALoop(t *testing.T) {
	all := 0
	for i := range reflect.TypeFor[loopstats.Loop]().NumField() {
		if reflect.TypeFor[loopstats.Loop]().Field(i).Type == reflect.TypeFor[loopstats.Histogram]() {
			all++
		}
	}
	if all != len(measures) {
		t.Errorf("%d of %d histograms are shown: add the others to measures", len(measures), all)
	}
}

// The buckets of a histogram grow up to the count.
func TestBuckets(t *testing.T) {
	e := listening(t)
	stop, err := loopstats.Measure(e)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	count := func() (n uint64) {
		for _, l := range loopstats.Of(e) {
			n += l.Turn.Count()
		}
		return n
	}
	for end := time.Now().Add(20 * time.Second); count() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no turn was measured")
		}
		for l := range e.Loops() {
			l.Post(func() {})
		}
	}
	h := loopstats.Histogram{}
	for _, l := range loopstats.Of(e) {
		h = h.Merge(l.Turn)
	}
	shown := times.of(h)
	var ends []float64
	for end := range shown {
		ends = append(ends, end)
	}
	slices.Sort(ends)
	if len(ends) != 14 || ends[0] != 1.023e-6 || ends[13] != 68.719476735 || shown[ends[13]] != h.Count() {
		t.Errorf("buckets: %v of %d", shown, h.Count())
	}
	for i := range ends[1:] {
		if shown[ends[i]] > shown[ends[i+1]] {
			t.Errorf("buckets: %v", shown)
		}
	}
	if got := numbers.of(loopstats.Histogram{}); len(got) != 10 || got[1] != 0 {
		t.Errorf("buckets of numbers: %v", got)
	}
}

// A proxy's counters, after one connection.
func TestProxy(t *testing.T) {
	backend := listening(t)
	ln, err := backend.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc((*rondo.Conn).Write)
	})
	if err != nil {
		t.Fatal(err)
	}
	target := ln.Addr().String()
	engine := &rondo.Engine{NumLoops: 1}
	defer engine.Close()
	s := &proxy.Server{Engine: engine}
	if got := gather(t, Proxy(s)); len(got) != 0 {
		t.Errorf("before the start: %v", got)
	}
	if err := s.Apply(proxy.Config{
		Listeners: []proxy.Listener{{Network: "tcp", Address: "127.0.0.1:0", Pool: "web"}},
		Pools:     []proxy.Pool{{Name: "web", Targets: []proxy.Target{{Network: "tcp", Address: target}}}},
	}); err != nil {
		t.Fatal(err)
	}
	addr := s.Addrs()[0].String()
	exchange(t, addr)
	for end := time.Now().Add(20 * time.Second); s.Stats().Listeners[0].Open > 0 || s.Stats().Pools[0].Targets[0].Open > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the connection has not ended: %+v", s.Stats())
		}
	}
	got := gather(t, Proxy(s))
	for name, want := range map[string]float64{
		"rondo_proxy_accepted_clients_total{tcp://" + addr + "}":                 1,
		"rondo_proxy_open_clients{tcp://" + addr + "}":                           0,
		"rondo_proxy_pool_retries_total{web}":                                    0,
		"rondo_proxy_target_connections_total{,web,tcp://" + target + "}":        1,
		"rondo_proxy_target_sent_bytes_total{,web,tcp://" + target + "}":         5,
		"rondo_proxy_target_received_bytes_total{,web,tcp://" + target + "}":     5,
		"rondo_proxy_target_state{,web,up,tcp://" + target + "}":                 1,
		"rondo_proxy_target_state{,web,down,tcp://" + target + "}":               0,
		"rondo_proxy_target_failed_dials_total{,web,tcp://" + target + "}":       0,
		"rondo_proxy_target_open_connections{,web,tcp://" + target + "}":         0,
		"rondo_proxy_pool_expired_clients_total{web}":                            0,
		"rondo_proxy_target_failed_checks_total{,web,tcp://" + target + "}":      0,
		"rondo_proxy_target_ejections_total{,web,tcp://" + target + "}":          0,
		"rondo_proxy_target_broken_connections_total{,web,tcp://" + target + "}": 0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (%t), want %v", name, v, ok, want)
		}
	}
}

// Two targets with the same address are one series, with the sums.
func TestProxyWithTheSameTargetTwice(t *testing.T) {
	one := proxy.TargetStats{Network: "tcp", Address: "a:1", State: "up"}
	fields := reflect.ValueOf(&one).Elem()
	for i := range fields.NumField() {
		switch f := fields.Field(i); f.Kind() {
		case reflect.Int64:
			f.SetInt(int64(i))
		case reflect.Uint64:
			f.SetUint(uint64(i))
		}
	}
	other := one
	other.State = "removed"
	stats := proxy.Stats{Pools: []proxy.PoolStats{{Name: "web", Targets: []proxy.TargetStats{one, other}}}}
	got := gather(t, collected{Proxy(nil), func(to chan<- prometheus.Metric) { sendProxy(to, stats) }})
	if got["rondo_proxy_target_state{,web,up,tcp://a:1}"] != 1 || got["rondo_proxy_target_state{,web,removed,tcp://a:1}"] != 0 {
		t.Errorf("the state is not the first one's: %v", got)
	}
	var values []float64
	for name, v := range got {
		if strings.HasPrefix(name, "rondo_proxy_target_") && !strings.Contains(name, "_state{") {
			values = append(values, v)
		}
	}
	for i := range fields.NumField() {
		kind := fields.Field(i).Kind()
		if name := fields.Type().Field(i).Name; (kind == reflect.Int64 || kind == reflect.Uint64) && !slices.Contains(values, float64(2*i)) {
			t.Errorf("TargetStats.%s is not shown, or not the sum", name)
		}
	}
}

// The counters of a server for Redis clients, after some commands.
func TestRedis(t *testing.T) {
	engine := &rondo.Engine{NumLoops: 1}
	defer engine.Close()
	s := &redis.Server{Engine: engine}
	client, err := s.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"SET a 1", "SET b 2 EX 1000", "GET a", "GET none", "LPUSH a x", "SELECT 3", "SET c 3"} {
		if _, err := client.Do(context.Background(), strings.Fields(command)...); err != nil {
			t.Fatal(err)
		}
	}
	got := gather(t, Redis(client))
	for name, want := range map[string]float64{
		"rondo_redis_up": 1, "rondo_redis_keys{0}": 2, "rondo_redis_expiring_keys{0}": 1, "rondo_redis_keys{3}": 1,
		"rondo_redis_keyspace_hits_total": 1, "rondo_redis_keyspace_misses_total": 1,
		"rondo_redis_error_replies_total{WRONGTYPE}": 1, "rondo_redis_failed_commands_total{lpush}": 1,
		"rondo_redis_command_duration_seconds{set}": 3, "rondo_redis_command_duration_seconds{get}": 2,
		"rondo_redis_memory_max_bytes": 0, "rondo_redis_rejected_connections_total": 0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (%t), want %v", name, v, ok, want)
		}
	}
	for _, f := range redisFamilies {
		name := strings.Split(f.desc.String(), `"`)[1]
		if _, ok := got[name]; !ok {
			t.Errorf("INFO has no %s, which %s shows", f.field, name)
		}
	}
	engine.Close()
	engine.Wait()
	if got := gather(t, Redis(client)); len(got) != 1 || got["rondo_redis_up"] != 0 {
		t.Errorf("of a server that has ended: %v, want rondo_redis_up 0 alone", got)
	}
}

// A fixed client answers INFO with a text.
type fixedClient struct {
	value resp.Value
	err   error
}

func (f fixedClient) Do(context.Context, ...string) (resp.Value, error) { return f.value, f.err }

func TestRedisQuantiles(t *testing.T) {
	const text = "# Commandstats\r\ncmdstat_get:calls=4,usec=6,usec_per_call=1.50,rejected_calls=1,failed_calls=0\r\n" +
		"# Latencystats\r\nlatency_percentiles_usec_get:p50=1.003,p99=2.007,p99.9=3.500\r\ndbsize:x\r\n"
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Redis(fixedClient{value: resp.Value{Kind: resp.Verbatim, Str: []byte(text)}}))
	const want = `# HELP rondo_redis_command_duration_seconds Time that commands took to run.
# TYPE rondo_redis_command_duration_seconds summary
rondo_redis_command_duration_seconds{command="get",quantile="0.5"} 1.003e-06
rondo_redis_command_duration_seconds{command="get",quantile="0.99"} 2.007e-06
rondo_redis_command_duration_seconds{command="get",quantile="0.999"} 3.5e-06
rondo_redis_command_duration_seconds_sum{command="get"} 6e-06
rondo_redis_command_duration_seconds_count{command="get"} 4
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "rondo_redis_command_duration_seconds"); err != nil {
		t.Error(err)
	}
	names := "errorstat_\xff:count=1\r\nerrorstat_A:count=2\r\ncmdstat_\xfe:calls=1,usec=1,usec_per_call=1,rejected_calls=0,failed_calls=0\r\n"
	got := gather(t, Redis(fixedClient{value: resp.Value{Kind: resp.Verbatim, Str: []byte(names)}}))
	if len(got) != 2 || got["rondo_redis_up"] != 1 || got["rondo_redis_error_replies_total{A}"] != 2 {
		t.Errorf("names that are not UTF-8: %v", got)
	}
	for _, down := range []fixedClient{{err: errors.New("away")}, {value: resp.Value{Kind: resp.Error, Str: []byte("ERR")}}} {
		if got := gather(t, Redis(down)); len(got) != 1 || got["rondo_redis_up"] != 0 {
			t.Errorf("of %v: %v", down, got)
		}
	}
}
