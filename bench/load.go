package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// A rig is what measures need.
type rig struct {
	programs *programs
	warmup   time.Duration
	measured time.Duration
	counted  time.Duration // in which system calls are counted; 0: they are not
	maxConns int           // as descriptors allow
}

// loadResult is what limit/load.c says at its end.
type loadResult struct {
	Error            string  `json:"error"`
	Seconds          float64 `json:"seconds"`
	Messages         float64 `json:"messages"`
	Stalled          int     `json:"stalled"`
	CPUSeconds       float64 `json:"cpu_seconds"`
	ServerCPUSeconds float64 `json:"server_cpu_seconds"`
	CountedSeconds   float64 `json:"counted_seconds"`
	Counted          float64 `json:"counted"`
	P50              float64 `json:"p50_ns"`
	P90              float64 `json:"p90_ns"`
	P99              float64 `json:"p99_ns"`
	P999             float64 `json:"p999_ns"`
	Max              float64 `json:"max_ns"`
}

// measureEcho has conns connections echo messages of size bytes.
func measureEcho(program string, conns, size int) measure {
	return func(ctx context.Context, r *rig, t *target) (figures, error) {
		return r.drive(ctx, t, program, "echo", min(conns, r.maxConns), size)
	}
}

// measureRate opens a connection for each message, some of them at once.
func measureRate(program string, atOnce, size int) measure {
	return func(ctx context.Context, r *rig, t *target) (figures, error) {
		return r.drive(ctx, t, program, "rate", atOnce, size)
	}
}

// measureDatagrams has sockets echo datagrams of size bytes, window of each under
// way.
func measureDatagrams(sockets, window, size int) measure {
	return func(ctx context.Context, r *rig, t *target) (figures, error) {
		return r.drive(ctx, t, udpProgram, strconv.Itoa(window), min(sockets, r.maxConns), size)
	}
}

// drive measures a load, and counts the server's system calls afterwards. The
// program that makes the load takes the arguments of limit/load.c, and speaks its
// lines.
func (r *rig) drive(ctx context.Context, t *target, program, kind string, conns, size int) (figures, error) {
	threads := min(t.mode.threads, conns)
	args := []string{
		"-c", strconv.Itoa(conns), "-b", strconv.Itoa(size), "-t", strconv.Itoa(threads), "-P", strconv.Itoa(t.pid()),
		"-w", fmt.Sprint(r.warmup.Seconds()), "-s", fmt.Sprint(r.measured.Seconds()), "-n", fmt.Sprint(r.counted.Seconds()), kind,
	}
	var counter *callCounter
	var calls float64
	var took time.Duration
	res, err := r.load(ctx, t, program, args, func(stage string, client io.Writer) (err error) {
		switch stage {
		case "count":
			counter, err = countCalls(t.pid())
		case "counted":
			calls, took, err = counter.stop()
		default:
			return nil
		}
		if err == nil {
			_, err = io.WriteString(client, "\n")
		}
		return err
	})
	switch {
	case err != nil:
		return figures{}, err
	case res.Stalled > 0:
		return figures{}, fmt.Errorf("%d of %s got no reply in 2 s", res.Stalled, connsText(conns))
	case res.Messages == 0:
		return figures{}, errors.New("no message came back in the time measured")
	}
	const us = 1e3
	f := figures{
		PerSecond:   res.Messages / res.Seconds,
		CPU:         res.ServerCPUSeconds * 1e6 / res.Messages,
		P50:         res.P50 / us,
		P90:         res.P90 / us,
		P99:         res.P99 / us,
		P999:        res.P999 / us,
		Max:         res.Max / us,
		Connections: conns,
		ClientCPU:   res.CPUSeconds * 1e6 / res.Messages,
		ClientBusy:  res.CPUSeconds / res.Seconds / float64(threads),
	}
	if res.Counted > 0 {
		// The counter began a little earlier than the load generator and
		// ended a little later.
		f.Calls = calls / took.Seconds() / (res.Counted / res.CountedSeconds)
	}
	return f, nil
}

// measureIdle compares the resident memory before connections were opened, with
// them idle, and after one echo on each.
func measureIdle(program string, conns, size int) measure {
	return func(ctx context.Context, r *rig, t *target) (figures, error) {
		conns := min(conns, r.maxConns)
		// What a server allocates at its first connections, whatever their
		// number, is not theirs.
		first := []string{"-c", "8", "-b", strconv.Itoa(size), "-w", "0", "-s", "0.05", "echo"}
		if _, err := r.load(ctx, t, program, first, nil); err != nil {
			return figures{}, err
		}
		pause(ctx)
		files, err := openFiles(t.pid())
		if err != nil {
			return figures{}, err
		}
		before, err := residentBytes(t.pid())
		if err != nil {
			return figures{}, err
		}
		var idle, echoed int64
		args := []string{"-c", strconv.Itoa(conns), "-b", strconv.Itoa(size), "idle"}
		_, err = r.load(ctx, t, program, args, func(stage string, client io.Writer) (err error) {
			if stage == "done" {
				pause(ctx)
				echoed, err = residentBytes(t.pid())
				return err
			}
			if err := t.accepted(ctx, files+conns); err != nil {
				return err
			}
			pause(ctx)
			if idle, err = residentBytes(t.pid()); err != nil {
				return err
			}
			_, err = io.WriteString(client, "\n")
			return err
		})
		return figures{
			IdleBytes:   float64(idle-before) / float64(conns),
			EchoedBytes: float64(echoed-before) / float64(conns),
			Connections: conns,
		}, err
	}
}

// pause lets a server finish what it does of its own accord.
func pause(ctx context.Context) {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
	}
}

// accepted waits until the server has so many descriptors: a connection may be
// established before it is accepted.
func (t *target) accepted(ctx context.Context, files int) error {
	for {
		n, err := openFiles(t.pid())
		if err != nil || n >= files {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server has accepted all but %d connections: %w", files-n, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// load runs a program like limit/load.c against a server. It calls at, unless
// that is nil, at each stage that the client announces, and with "done" before the
// client's connections are closed. What at writes goes to the client.
func (r *rig) load(ctx context.Context, t *target, program string, args []string, at func(stage string, client io.Writer) error) (loadResult, error) {
	var res loadResult
	args = append([]string{"-p", strconv.Itoa(t.port)}, args...)
	client, err := spawnClient(ctx, t.mode.clientCPU, r.programs.path(program), args...)
	if err != nil {
		return res, err
	}
	defer client.stop()
	said := false
	for lines := bufio.NewScanner(client.stdout); !said && lines.Scan(); {
		stage, announced := strings.CutPrefix(lines.Text(), "@")
		if !announced {
			if err := json.Unmarshal(lines.Bytes(), &res); err != nil {
				return res, fmt.Errorf("result of the load generator: %w", err)
			}
			if res.Error != "" {
				return res, errors.New(res.Error)
			}
			stage, said = "done", true
		}
		if at == nil {
			continue
		}
		if err := at(stage, client.stdin); err != nil {
			return res, err
		}
	}
	client.stdin.Close()
	err = client.wait()
	if !said {
		return res, fmt.Errorf("the load generator ended without a result: %s", client.end())
	}
	return res, err
}
