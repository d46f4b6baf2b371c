package difftest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/redis"
)

// reference is the version of redis-server that replies are recorded from.
var reference = regexp.MustCompile(`\bv=7\.0\.\d+\b`)

// findReference returns the path of a redis-server of that version, or why
// there is none.
func findReference() (path, reason string) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "", err.Error()
	}
	version, err := exec.Command(path, "--version").Output()
	if err != nil {
		return "", err.Error()
	}
	if !reference.Match(version) {
		return "", fmt.Sprintf("%s is %s, not 7.0", path, bytes.TrimSpace(version))
	}
	return path, ""
}

// startReference starts a redis-server for the time of the test.
func startReference(t *testing.T, path, password string) *server {
	// It cannot be told to choose a port and say which. Another process may
	// take the one that was free a moment ago: then try another.
	for try := 1; ; try++ {
		address := testkit.FreeAddress(t)
		err := tryReference(t, path, address, password)
		if err == nil {
			return &server{"tcp4", address, password}
		}
		if try == 5 {
			t.Fatalf("starting redis-server: %v", err)
		}
	}
}

func tryReference(t *testing.T, path, address, password string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	var log bytes.Buffer
	cmd := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", t.TempDir(), "--requirepass", password, "--enable-debug-command", "local")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() { cmd.Wait(); close(exited) }()
	stop := func() { cmd.Process.Kill(); <-exited }
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		select {
		case <-exited:
			return fmt.Errorf("it exited: %s", log.Bytes())
		default:
		}
		if isProcess(address, password, cmd.Process.Pid) {
			t.Cleanup(stop)
			return nil
		}
	}
	stop()
	return fmt.Errorf("it does not listen: %s", log.Bytes())
}

// isProcess reports whether the Redis server of this process listens on address, and not another
// one that has taken the port.
func isProcess(address, password string, pid int) bool {
	conn, err := net.Dial("tcp4", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	request := "INFO server\r\nQUIT\r\n"
	if password != "" {
		request = "AUTH " + password + "\r\n" + request
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return false
	}
	info, _ := io.ReadAll(conn)
	return bytes.Contains(info, fmt.Appendf(nil, "\r\nprocess_id:%d\r\n", pid))
}

// startRondo starts a server of package redis on an engine of a backend with so
// many loops, for the time of the test.
func startRondo(t *testing.T, backend string, loops int, password string) *server {
	engine := &rondo.Engine{Backend: backend, NumLoops: loops, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	s := &redis.Server{Engine: engine, Password: password, Debug: redis.DebugLocal, Logger: engine.Logger}
	ln, err := s.Listen("tcp4", "127.0.0.1:0", rondo.SocketOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		engine.Close()
	})
	return &server{"tcp4", ln.Addr().String(), password}
}

func scriptFiles(t *testing.T) map[string]*file {
	paths, err := filepath.Glob("testdata/*.script")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	files := map[string]*file{}
	for _, path := range paths {
		f, err := readFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(filepath.Base(path), ".script")] = f
	}
	if runtime.GOOS != "linux" {
		delete(files, "system")
		delete(files, "protected") // other systems have no second loopback address unless it is set up
	}
	return files
}
