package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// With --log-format json each line of every server's log is an object with time, level and msg.
func TestLogFormat(t *testing.T) {
	for _, args := range []string{"redis --addr 127.0.0.1:0", "http --echo --access-log text --addr 127.0.0.1:0", "echo --addr 127.0.0.1:0",
		"proxy --access-log off --listen 127.0.0.1:0 --to 127.0.0.1:1 --maxclients 100"} {
		p, addresses := start(t, append(strings.Fields(args), "--log-format", "json")...)
		if strings.HasPrefix(args, "http") {
			ask(t, addresses[0], "GET /")
		}
		p.stop(syscall.SIGTERM, 0)
		var said []string
		for line := range strings.Lines(p.stderr()) {
			var fields map[string]any
			if err := json.Unmarshal([]byte(line), &fields); err != nil {
				t.Errorf("%s: %q: %v", args, line, err)
			}
			at, _ := fields["time"].(string)
			if _, err := time.Parse(time.RFC3339Nano, at); err != nil || fields["level"] != "INFO" {
				t.Errorf("%s: %v, %s", args, err, line)
			}
			text, _ := fields["msg"].(string)
			said = append(said, text)
		}
		command, _, _ := strings.Cut(args, " ")
		if all := strings.Join(said, "\n"); !strings.Contains(all, "rondo "+command+" is ready") || !strings.Contains(all, "stopping") ||
			command == "http" && !strings.Contains(all, "request") {
			t.Errorf("%s: the log says %q", args, said)
		}
	}
}

// A JSON log has texts for values that JSON would not show as people know them.
func TestJSONValues(t *testing.T) {
	var out bytes.Buffer
	l := newLogger(&out, "json", slog.LevelInfo)
	l.Info("values", "address", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5}, "error", errors.New("no"), "took", time.Second,
		"value", func() {}, "none", nil, "list", []string{"a", "b"}, "n", 5)
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	value, _ := got["value"].(string)
	list, _ := json.Marshal(got["list"])
	if got["address"] != "127.0.0.1:5" || got["error"] != "no" || got["took"] != 1e9 || !strings.HasPrefix(value, "0x") ||
		got["none"] != nil || string(list) != `["a","b"]` || got["n"] != 5.0 || got["level"] != "INFO" {
		t.Errorf("the line is %s", out.String())
	}
}
