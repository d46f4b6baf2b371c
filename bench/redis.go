package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
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

// measureRedis runs redis-benchmark, first briefly, to warm up and to learn how
// many requests take the wanted time.
func measureRedis(command string, conns, pipeline int) measure {
	return func(ctx context.Context, r *rig, t *target) (figures, error) {
		if err := checkRedis(ctx, t.port); err != nil {
			return figures{}, err
		}
		few := 20 * conns * pipeline
		res, err := redisBenchmark(ctx, t, command, conns, pipeline, few)
		if err != nil {
			return figures{}, err
		}
		requests := max(few, int(res.PerSecond*r.measured.Seconds()))
		before, err := cpuTime(t.pid())
		if err != nil {
			return figures{}, err
		}
		if res, err = redisBenchmark(ctx, t, command, conns, pipeline, requests); err != nil {
			return figures{}, err
		}
		after, err := cpuTime(t.pid())
		if err != nil {
			return figures{}, err
		}
		res.CPU = float64(after-before) / float64(time.Microsecond) / float64(requests)
		return res, nil
	}
}

// redisBenchmark runs it once.
func redisBenchmark(ctx context.Context, t *target, command string, conns, pipeline, requests int) (figures, error) {
	client, err := spawnClient(ctx, t.mode.clientCPU, "redis-benchmark", "-h", "127.0.0.1", "-p", strconv.Itoa(t.port),
		"-c", strconv.Itoa(conns), "-P", strconv.Itoa(pipeline), "-n", strconv.Itoa(requests), "-t", command, "--csv")
	if err != nil {
		return figures{}, err
	}
	defer client.stop()
	out, err := io.ReadAll(client.stdout)
	if err != nil {
		return figures{}, err
	}
	if err := client.wait(); err != nil {
		return figures{}, fmt.Errorf("redis-benchmark: %w: %s", err, client.said.line())
	}
	f, err := parseRedisBenchmark(string(out), command)
	f.Connections = conns
	return f, err
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
