package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/rondo-go/rondo/bench/serve"
)

// completionWorkloads are gaio's own cases, with the server and its clients both in
// the process that is measured: gaio's BenchmarkEcho64K and BenchmarkEcho1K, Test8k,
// Test10kRandomSwapBuffer and Test10kCompleteSwapBuffer; and, since connecting is
// most of what those take, rounds of echoes on connections that are there.
func completionWorkloads() []workload {
	of := func(name, title, unit, kind string, conns, size int) workload {
		return workload{
			Name: "completions-" + name, Title: title, Family: "completions", Unit: unit,
			measure: measureCompletions(kind, conns, size),
		}
	}
	return []workload{
		of("stream-64k", "a stream of echoes, 64 KiB", "message", "stream", 1, 64<<10),
		of("stream-1k", "a stream of echoes, 1 KiB", "message", "stream", 1, 1<<10),
		of("clients-8192", "connect and echo 1 KiB, 8,192 clients", "client", "clients", 8192, 1<<10),
		of("swap-random", "the same, one reply of 13 into lent memory", "client", "swap-random", mostConns, 1<<10),
		of("swap-complete", "the same, all replies into lent memory", "client", "swap-complete", mostConns, 1<<10),
		of("rounds-8192", "echo 1 KiB, 8,192 connected clients at once", "message", "rounds", 8192, 1<<10),
	}
}

// measureCompletions asks a process of serve's to run a case.
func measureCompletions(kind string, conns, size int) measure {
	return func(ctx context.Context, r *rig, t *target) (figures, error) {
		const others = 100            // connections' worth of descriptors that are none
		most := r.maxConns/2 - others // both ends are in one process
		asked := serve.Completions{
			Case: kind, Size: size, Conns: min(conns, most),
			Warmup: r.warmup.Seconds(), Seconds: r.measured.Seconds(),
		}
		got, err := askCompletions(ctx, t, asked)
		if err != nil {
			return figures{}, err
		}
		messages := float64(got.Messages)
		f := figures{
			PerSecond:   messages / got.Seconds,
			CPU:         got.CPUSeconds * 1e6 / messages,
			Allocs:      allocated(got.Objects, messages),
			AllocBytes:  allocated(got.Bytes, messages),
			Connections: asked.Conns,
		}
		switch kind {
		case "stream":
			f.Megabytes = f.PerSecond * float64(size) / 1e6
		case "rounds":
		default:
			f.Elapsed = got.Seconds * 1e3
		}
		return f, nil
	}
}

// allocated is for each message. None at all is still a figure, so it is not 0.
func allocated(n uint64, messages float64) float64 {
	const none = 1e-9
	return float64(n)/messages + none
}

func askCompletions(ctx context.Context, t *target, asked serve.Completions) (got serve.CompletionsResult, err error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", options{port: t.port}.address())
	if err != nil {
		return got, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if err := json.NewEncoder(c).Encode(asked); err != nil {
		return got, err
	}
	if err := json.NewDecoder(c).Decode(&got); err != nil {
		return got, fmt.Errorf("result of case %s: %w", asked.Case, err)
	}
	switch {
	case got.Error != "":
		return got, errors.New(got.Error)
	case got.Messages == 0:
		return got, errors.New("no message came back in the time measured")
	}
	return got, nil
}
