package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// benchmarkKey is the key that redis-benchmark uses without -r, and
// benchmarkValue the value.
const (
	benchmarkKey   = "key:__rand_int__"
	benchmarkValue = "xxx"
)

// A request is what a Redis server is asked.
type request struct {
	command         string
	conns, pipeline int
}

// A generator asks for n requests, and tells how fast they were served, and what
// CPU time it used for each.
type generator func(ctx context.Context, r *rig, t *target, q request, n int) (figures, error)

var generators = map[string]generator{
	redisGenerator: byRedisBenchmark,
	rondoGenerator: byRondoBench,
}

// measureRedis runs a generator, first briefly, to warm up and to learn how many
// requests take the wanted time; and at last once more, to count system calls.
func measureRedis(by, command string, conns, pipeline int) measure {
	generate, q := generators[by], request{command, conns, pipeline}
	return func(ctx context.Context, r *rig, t *target) (figures, error) {
		n, err := r.requests(ctx, t, generate, q)
		if err != nil {
			return figures{}, err
		}
		before, err := cpuTime(t.pid())
		if err != nil {
			return figures{}, err
		}
		f, err := generate(ctx, r, t, q, n)
		if err != nil {
			return figures{}, err
		}
		after, err := cpuTime(t.pid())
		if err != nil {
			return figures{}, err
		}
		f.CPU = float64(after-before) / float64(time.Microsecond) / float64(n)
		if r.counted > 0 {
			f.Calls, err = r.callsOf(ctx, t, generate, q, max(1, int(f.PerSecond*r.counted.Seconds())))
		}
		return f, err
	}
}

// measureGenerator measures the generator that the target is for: its rate, and
// its own CPU time.
func measureGenerator(command string, conns, pipeline int) measure {
	q := request{command, conns, pipeline}
	return func(ctx context.Context, r *rig, t *target) (figures, error) {
		generate := generators[t.server]
		n, err := r.requests(ctx, t, generate, q)
		if err != nil {
			return figures{}, err
		}
		f, err := generate(ctx, r, t, q, n)
		f.CPU, f.ClientCPU = f.ClientCPU, 0
		return f, err
	}
}

// requests is how many requests take the time to be measured. It lets the server
// warm up, and prove that it replies.
func (r *rig) requests(ctx context.Context, t *target, generate generator, q request) (int, error) {
	if err := checkRedis(ctx, t.port); err != nil {
		return 0, err
	}
	few := 20 * q.conns * q.pipeline
	f, err := generate(ctx, r, t, q, few)
	if err != nil {
		return 0, err
	}
	if enough := int(f.PerSecond * r.warmup.Seconds()); enough > few {
		if f, err = generate(ctx, r, t, q, enough); err != nil {
			return 0, err
		}
	}
	return max(few, int(f.PerSecond*r.measured.Seconds())), nil
}

// callsOf counts the server's system calls for each of n requests.
func (r *rig) callsOf(ctx context.Context, t *target, generate generator, q request, n int) (float64, error) {
	counter, err := countCalls(t.pid())
	if err != nil {
		return 0, err
	}
	if _, err := generate(ctx, r, t, q, n); err != nil {
		counter.close()
		return 0, err
	}
	calls, _, err := counter.stop()
	return calls / float64(n), err
}

// byRedisBenchmark runs redis-benchmark.
func byRedisBenchmark(ctx context.Context, _ *rig, t *target, q request, n int) (figures, error) {
	out, cpu, err := t.client(ctx, redisGenerator, "-h", "127.0.0.1", "-p", strconv.Itoa(t.port),
		"-c", strconv.Itoa(q.conns), "-P", strconv.Itoa(q.pipeline), "-n", strconv.Itoa(n), "-t", q.command, "--csv")
	if err != nil {
		return figures{}, err
	}
	f, err := parseRedisBenchmark(string(out), q.command)
	f.Connections = q.conns
	f.ClientCPU = float64(cpu) / float64(time.Microsecond) / float64(n)
	return f, err
}

// byRondoBench runs rondo bench, which unlike redis-benchmark verifies the
// replies. Values are as long as redis-benchmark's.
func byRondoBench(ctx context.Context, r *rig, t *target, q request, n int) (figures, error) {
	out, cpu, err := t.client(ctx, r.programs.path("rondo"), "bench", "redis", "--addr", options{port: t.port}.address(),
		"-c", strconv.Itoa(q.conns), "-P", strconv.Itoa(q.pipeline), "-n", strconv.Itoa(n), "-t", q.command,
		"--size", strconv.Itoa(len(benchmarkValue)), "--warmup", "0", "--json")
	if err != nil {
		return figures{}, err
	}
	f, err := parseRondoBench(out)
	f.Connections = q.conns
	f.ClientCPU = float64(cpu) / float64(time.Microsecond) / float64(n)
	return f, err
}

// client runs a client to its end. It returns what that printed and what CPU
// time it used.
func (t *target) client(ctx context.Context, path string, args ...string) (out []byte, cpu time.Duration, err error) {
	client, err := spawnClient(ctx, t.mode.clientCPU, path, args...)
	if err != nil {
		return nil, 0, err
	}
	defer client.stop()
	if out, err = io.ReadAll(client.stdout); err != nil {
		return nil, 0, err
	}
	if err := client.wait(); err != nil {
		return nil, 0, fmt.Errorf("%s: %w: %s", filepath.Base(path), err, client.said.line())
	}
	state := client.cmd.ProcessState
	return out, state.UserTime() + state.SystemTime(), nil
}

// parseRondoBench reads the figures of its one test from its JSON.
func parseRondoBench(out []byte) (figures, error) {
	var printed struct {
		Results []struct {
			PerSecond float64 `json:"requests_per_s"`
			Latency   struct {
				P50  float64 `json:"p50"`
				P90  float64 `json:"p90"`
				P99  float64 `json:"p99"`
				P999 float64 `json:"p99.9"`
				Max  float64 `json:"max"`
			} `json:"latency_us"`
		} `json:"results"`
	}
	if err := json.Unmarshal(out, &printed); err != nil {
		return figures{}, fmt.Errorf("rondo bench's JSON: %w", err)
	}
	if len(printed.Results) != 1 || printed.Results[0].PerSecond == 0 {
		return figures{}, fmt.Errorf("rondo bench gave no figures: %s", out)
	}
	l := printed.Results[0].Latency
	return figures{PerSecond: printed.Results[0].PerSecond, P50: l.P50, P90: l.P90, P99: l.P99, P999: l.P999, Max: l.Max}, nil
}

// parseRedisBenchmark reads the figures of a command from its CSV: requests per
// second, then the latencies, in milliseconds.
func parseRedisBenchmark(out, command string) (figures, error) {
	reader := csv.NewReader(strings.NewReader(out))
	reader.FieldsPerRecord = -1
	rows, err := reader.ReadAll()
	if err != nil {
		return figures{}, fmt.Errorf("redis-benchmark's CSV: %w", err)
	}
	var f figures
	const us = 1000 // in a millisecond
	for _, row := range rows {
		if !strings.EqualFold(row[0], command) {
			continue
		}
		for i, name := range rows[0][:min(len(rows[0]), len(row))] {
			v, err := strconv.ParseFloat(row[i], 64)
			switch name {
			case "rps":
				f.PerSecond = v
			case "p50_latency_ms":
				f.P50 = v * us
			case "p95_latency_ms":
				f.P95 = v * us
			case "p99_latency_ms":
				f.P99 = v * us
			case "max_latency_ms":
				f.Max = v * us
			default:
				continue
			}
			if err != nil {
				return f, fmt.Errorf("redis-benchmark's CSV: %s: %w", name, err)
			}
		}
	}
	if f.PerSecond == 0 {
		return f, errors.New("redis-benchmark gave no figures: it needs version 6.2 or later")
	}
	return f, nil
}

// checkRedis sets and gets the key that redis-benchmark will use, since that
// compares no replies.
func checkRedis(ctx context.Context, port int) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	request := fmt.Sprintf("*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n",
		len(benchmarkKey), benchmarkKey, len(benchmarkValue), benchmarkValue, len(benchmarkKey), benchmarkKey)
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	want := fmt.Sprintf("+OK\r\n$%d\r\n%s\r\n", len(benchmarkValue), benchmarkValue)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(bufio.NewReader(c), got); err != nil {
		return fmt.Errorf("replies to SET and GET: %w", err)
	}
	if string(got) != want {
		return fmt.Errorf("SET and GET were replied to with %q, not %q", got, want)
	}
	return nil
}
