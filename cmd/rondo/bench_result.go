package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rondo-go/rondo/internal/load"
)

// benchResult is the result of a load, as --json prints it. A name ends with
// the unit, if there is one.
type benchResult struct {
	Test        string  `json:"test"`
	Address     string  `json:"address"`
	Backend     string  `json:"backend"`
	Loops       int     `json:"loops"`
	Conns       int     `json:"conns"`
	Pipeline    int     `json:"pipeline"`
	SizeBytes   int     `json:"size_bytes"`
	Keyspace    int     `json:"keyspace,omitempty"`
	Zipf        float64 `json:"zipf,omitempty"`
	Rate        float64 `json:"rate_per_s,omitempty"` // the value of --rate; absent: closed loop
	WarmupS     float64 `json:"warmup_s"`
	ElapsedS    float64 `json:"elapsed_s"`
	Interrupted bool    `json:"interrupted"`

	Requests      int64   `json:"requests"`
	RequestsPerS  float64 `json:"requests_per_s"`
	SentPerS      float64 `json:"sent_bytes_per_s"`
	ReceivedPerS  float64 `json:"received_bytes_per_s"`
	LatencyMicros latency `json:"latency_us"`
	Behind        *behind `json:"fell_behind,omitempty"` // absent: the server kept up
}

// latency is in microseconds.
type latency struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

// behind says how far a server fell behind --rate.
type behind struct {
	Waited        int64   `json:"waited"`
	Unsent        int64   `json:"unsent"`
	LongestMicros float64 `json:"longest_us"`
}

func (b *bench) result(test, backend string, r *load.Report) benchResult {
	f := b.flags
	result := benchResult{
		Test:         test,
		Address:      b.addr,
		Backend:      backend,
		Loops:        min(f.Loops, f.Conns),
		Conns:        f.Conns,
		Pipeline:     f.Pipeline,
		SizeBytes:    b.size,
		Keyspace:     b.keyspace,
		Zipf:         b.zipf,
		Rate:         f.Rate,
		WarmupS:      time.Duration(f.Warmup).Seconds(),
		ElapsedS:     r.Elapsed.Seconds(),
		Interrupted:  r.Interrupted,
		Requests:     r.Requests,
		RequestsPerS: r.Rate(),
		SentPerS:     r.SentRate(),
		ReceivedPerS: r.ReceivedRate(),
		LatencyMicros: latency{
			Mean: micros(r.Mean()),
			P50:  micros(r.Percentile(50)),
			P90:  micros(r.Percentile(90)),
			P99:  micros(r.Percentile(99)),
			P999: micros(r.Percentile(99.9)),
			Max:  micros(r.Percentile(100)),
		},
	}
	if r.Behind.Waited > 0 {
		result.Behind = &behind{r.Behind.Waited, r.Behind.Unsent, micros(r.Behind.Longest)}
	}
	return result
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// printJSON prints {"results": [...]}.
func printJSON(w io.Writer, results []benchResult) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Results []benchResult `json:"results"`
	}{append([]benchResult{}, results...)})
}

// print prints the result as text.
func (r *benchResult) print(w io.Writer) {
	mode := "closed loop"
	if r.Rate > 0 {
		mode = fmt.Sprintf("open loop at %s requests/s", strconv.FormatFloat(r.Rate, 'f', -1, 64))
	}
	fmt.Fprintf(w, "%s: %s, %s, %d in flight on each, %s, %s, %s, %s\n", strings.ToUpper(r.Test),
		r.Address, plural(r.Conns, "connection"), r.Pipeline, bytesText(float64(r.SizeBytes)), mode, r.Backend, plural(r.Loops, "loop"))
	if r.Requests == 0 {
		fmt.Fprintln(w, "  nothing was measured")
	} else {
		l := &r.LatencyMicros
		fmt.Fprintf(w, "  %.0f requests/s (%d in %.2f s), %s/s sent, %s/s received\n",
			r.RequestsPerS, r.Requests, r.ElapsedS, bytesText(r.SentPerS), bytesText(r.ReceivedPerS))
		fmt.Fprintf(w, "  latency p50 %s, p90 %s, p99 %s, p99.9 %s, max %s\n",
			timeText(l.P50), timeText(l.P90), timeText(l.P99), timeText(l.P999), timeText(l.Max))
	}
	if b := r.Behind; b != nil {
		fmt.Fprintf(w, "  fell behind: %d of %d requests waited for an earlier one on their connection, up to %s; %d of them were unsent at the end\n",
			b.Waited, r.Requests+b.Unsent, timeText(b.LongestMicros), b.Unsent)
	}
	if r.Interrupted {
		fmt.Fprintln(w, "  interrupted: these are the measurements so far")
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func timeText(micros float64) string {
	return scaled(micros, 1000, "µs", "ms", "s")
}

func bytesText(n float64) string {
	return scaled(n, 1024, "B", "KiB", "MiB", "GiB", "TiB")
}

// scaled writes a number with about three digits, in a suitable unit. Each unit
// is step times the one before.
func scaled(n, step float64, units ...string) string {
	for n >= 999.5 && len(units) > 1 {
		n /= step
		units = units[1:]
	}
	decimals := 0
	for digits := n; n != math.Trunc(n) && digits < 100 && decimals < 2; digits *= 10 {
		decimals++
	}
	return strconv.FormatFloat(n, 'f', decimals, 64) + " " + units[0]
}
