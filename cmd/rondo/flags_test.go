package main

import (
	"math"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "65536": 65536, "100b": 100, "64k": 64 << 10, "64KB": 64 << 10, "64KiB": 64 << 10, "2m": 2 << 20, "2MiB": 2 << 20,
		"3g": 3 << 30, "3GiB": 3 << 30, "9223372036854775807": math.MaxInt64,
	} {
		var s size
		if err := s.UnmarshalText([]byte(text)); err != nil || int64(s) != want {
			t.Errorf("%s is %d, %v, want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "k", "-1", "1.5k", "1 k", "1x", "9223372036854775807k", "9223372036854775808"} {
		var s size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %d", text, s)
		}
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "300": 300 * time.Second, "5m": 5 * time.Minute, "1h30m": 90 * time.Minute, "50ms": 50 * time.Millisecond,
		"2147483647": math.MaxInt32 * time.Second,
	} {
		var d duration
		if err := d.UnmarshalText([]byte(text)); err != nil || time.Duration(d) != want {
			t.Errorf("%s is %v, %v, want %v", text, time.Duration(d), err, want)
		}
	}
	for _, text := range []string{"", "-1", "-5s", "soon", "5 m", "2147483648", "2562047h"} {
		var d duration
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %v", text, time.Duration(d))
		}
	}
}
