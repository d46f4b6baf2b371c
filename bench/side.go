package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/rondo-go/rondo/bench/serve"
)

// A side is one of two servers under a workload, with the load generators
// connected to it. Between slices both wait.
type side struct {
	mode     mode
	workload workload
	server   server
	build    build    // of the server
	tools    build    // of the load generators
	under    []string // the command that runs the server, if any

	*process
	port    int
	script  string // the load generators' file, if they need one
	config  string // the server's file, if it needs one
	clients []*process
	backend *process // behind a proxy
	behind  string   // its address
}

// A sample is the result of a slice of load.
type sample struct {
	Error     string     `json:"error"`
	Seconds   float64    `json:"seconds"`
	Messages  float64    `json:"messages"` // measured ones
	All       float64    `json:"all"`      // including those before and after the measurement
	CPU       float64    `json:"cpu"`      // s, of the load generator
	ServerCPU float64    `json:"server_cpu"`
	Latency   [][2]int64 `json:"latency"` // ns, and number of messages
	allocs    float64
}

// open starts the server and connects the load generators to it.
func (s *side) open(ctx context.Context) (err error) {
	if err := s.start(ctx); err != nil {
		return err
	}
	if s.workload.once {
		return nil
	}
	if err := s.check(); err != nil {
		return err
	}
	return s.connect(ctx)
}

// check prepares the server for the load, and checks what the load generator does not.
func (s *side) check() (err error) {
	switch s.workload.Family {
	case "redis":
		err = checkRedis(s.port)
	case "http", "https":
		err = checkHTTP(s.workload.Family, s.port, s.workload.args[len(s.workload.args)-1])
	case "ws", "wsz":
		err = s.frames()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.server.name, err)
	}
	return nil
}

// connect starts the load generators.
func (s *side) connect(ctx context.Context) error {
	number := min(s.mode.clients, s.workload.conns)
	if s.workload.broadcasts() {
		number = 1 // all connections must get each message
	}
	for i := range number {
		args := []string{s.tools.path(s.workload.client), "-p", strconv.Itoa(s.port), "-P", strconv.Itoa(s.pid()),
			"-c", strconv.Itoa(s.workload.conns*(i+1)/number - s.workload.conns*i/number)}
		args = append(args, s.workload.args...)
		if s.script != "" {
			args = append(args, s.script)
		}
		c, err := spawnClient(ctx, s.mode.clientCPU, args...)
		if err != nil {
			return err
		}
		s.clients = append(s.clients, c)
	}
	_, err := s.ask("")
	return err
}

// start starts the server and waits until it accepts connections. The port was
// free a moment before; if another process has taken it, start tries another
// port.
func (s *side) start(ctx context.Context) (err error) {
	if err := s.startBackend(ctx); err != nil {
		return err
	}
	const attempts = 3
	for attempt := 1; ; attempt++ {
		if s.port, err = freePort(); err != nil {
			return err
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
		command, err := s.command(address)
		if err != nil {
			return err
		}
		if s.process, err = spawnServer(ctx, s.mode.serverCPU, s.build.env, command...); err != nil {
			return err
		}
		if err = s.ready(ctx, address); err == nil {
			return nil
		}
		s.process.stop()
		if attempt == attempts || ctx.Err() != nil {
			return fmt.Errorf("%s: %w", s.server.name, err)
		}
	}
}

// command returns the command of the server, after it has written its file.
func (s *side) command(address string) ([]string, error) {
	if s.backend != nil {
		address += "," + s.behind
	}
	command := append(s.under[:len(s.under):len(s.under)], s.server.command(s.build, s.workload.Family, address, s.mode.loops)...)
	if s.server.config == nil {
		return command, nil
	}
	if s.config == "" {
		s.config = s.tools.path(fmt.Sprintf("config-%d", s.port))
	}
	return append(command, s.config), os.WriteFile(s.config, []byte(s.server.config(address, s.mode.loops)), 0o600)
}

func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

// ready waits until the server accepts connections, or answers datagrams.
func (s *side) ready(ctx context.Context, address string) error {
	if s.workload.Family == "udp" {
		return s.process.await(ctx, func() bool { return answers(address) })
	}
	return s.process.accepts(ctx, address)
}

// accepts waits until a server accepts connections.
func (p *process) accepts(ctx context.Context, address string) error {
	return p.await(ctx, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// await waits until a server is ready.
func (p *process) await(ctx context.Context, ready func() bool) error {
	const patience = 30 * time.Second
	for start := time.Now(); time.Since(start) < patience && ctx.Err() == nil; {
		if ready() {
			return nil
		}
		if how, dead := p.died(2 * time.Millisecond); dead {
			return fmt.Errorf("server ended during its start: %s", how)
		}
	}
	return fmt.Errorf("server did not accept connections within %v", patience)
}

// answers reports whether a datagram sent to address comes back.
func answers(address string) bool {
	c, err := net.Dial("udp", address)
	if err != nil {
		return false
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Millisecond))
	b := []byte("are you there?")
	if _, err := c.Write(b); err != nil {
		return false
	}
	n, err := c.Read(b)
	return err == nil && n == len(b)
}

// ask sends a line to all load generators and adds up their answers.
func (s *side) ask(line string) (sample, error) {
	answers := make([]sample, len(s.clients))
	failed := make(chan error, len(s.clients))
	for i, c := range s.clients {
		go func() { failed <- c.ask(line, &answers[i]) }()
	}
	var sum sample
	var err error
	for range s.clients {
		err = errors.Join(err, <-failed)
	}
	for _, a := range answers {
		if a.Error != "" {
			err = errors.Join(err, errors.New(a.Error))
		}
		sum.Seconds = max(sum.Seconds, a.Seconds)
		sum.ServerCPU = max(sum.ServerCPU, a.ServerCPU)
		sum.Messages += a.Messages
		sum.All += a.All
		sum.CPU += a.CPU
		sum.Latency = append(sum.Latency, a.Latency...)
	}
	if err == nil {
		return sum, nil
	}
	if how, dead := s.died(100 * time.Millisecond); dead {
		err = fmt.Errorf("server ended (%s): %w", how, err)
	}
	return sum, fmt.Errorf("%s under %s: %w", s.server.name, s.workload.Name, err)
}

// slice makes load of a length, at a rate. 0 means as much as the server takes.
func (s *side) slice(ctx context.Context, length time.Duration, rate float64) (sample, error) {
	if s.workload.once {
		return s.completions(ctx, length)
	}
	x, err := s.ask(fmt.Sprintf("slice %f %f", length.Seconds(), rate))
	if err == nil && x.Messages == 0 {
		err = fmt.Errorf("%s under %s: no message came back in the time measured", s.server.name, s.workload.Name)
	}
	return x, err
}

// touch sends a message on each connection.
func (s *side) touch() error {
	_, err := s.ask("touch")
	return err
}

// close ends the server and the load generators.
func (s *side) close() {
	for _, c := range s.clients {
		c.stop()
	}
	if s.process != nil {
		s.process.stop()
	}
	if s.backend != nil {
		s.backend.stop()
	}
	for _, file := range []string{s.script, s.config} {
		if file != "" {
			os.Remove(file)
		}
	}
	s.process, s.clients, s.script, s.backend, s.config = nil, nil, "", nil, ""
}

// completions lets a process run a case, and starts another process for the
// next case.
func (s *side) completions(ctx context.Context, length time.Duration) (x sample, err error) {
	size, err := strconv.Atoi(s.workload.args[1])
	if err != nil {
		return x, err
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)))
	if err != nil {
		return x, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	asked := serve.Completions{Case: s.workload.args[0], Size: size, Conns: s.workload.conns, Warmup: 0.05, Seconds: length.Seconds()}
	var got serve.CompletionsResult
	if err := json.NewEncoder(c).Encode(asked); err != nil {
		return x, err
	}
	if err := json.NewDecoder(c).Decode(&got); err != nil {
		return x, fmt.Errorf("%s: case %s: %w", s.server.name, asked.Case, err)
	}
	if got.Error != "" || got.Messages == 0 {
		return x, fmt.Errorf("%s: case %s: %d messages came back; %s", s.server.name, asked.Case, got.Messages, got.Error)
	}
	s.process.stop()
	x = sample{Seconds: got.Seconds, Messages: float64(got.Messages), All: float64(got.Messages), ServerCPU: got.CPUSeconds, allocs: float64(got.Objects)}
	return x, s.start(ctx)
}

// memory returns the resident memory of the server per idle connection: before
// anything was sent on the connection, and after an echo. It does not count
// what a server allocates for its first few connections.
func (s *side) memory(ctx context.Context) (idle, echoed float64, err error) {
	if err := s.start(ctx); err != nil {
		return 0, 0, err
	}
	if err := s.check(); err != nil {
		return 0, 0, err
	}
	few := *s
	few.clients, few.workload.conns = nil, 8
	if err := errors.Join(few.connect(ctx), few.touch()); err != nil {
		return 0, 0, err
	}
	for _, c := range few.clients {
		c.stop()
	}
	time.Sleep(settling)
	before, err := residentBytes(s.pid())
	if err != nil {
		return 0, 0, err
	}
	files, err := s.openFiles()
	if err != nil {
		return 0, 0, err
	}
	if err := s.connect(ctx); err != nil {
		return 0, 0, err
	}
	if err := s.accepted(ctx, files+s.workload.conns); err != nil {
		return 0, 0, err
	}
	var bytes [2]float64
	for i := range bytes {
		time.Sleep(settling)
		n, err := residentBytes(s.pid())
		if err != nil {
			return 0, 0, err
		}
		bytes[i] = float64(n-before) / float64(s.workload.conns)
		if i == 0 {
			if err := s.touch(); err != nil {
				return 0, 0, err
			}
		}
	}
	return bytes[0], bytes[1], nil
}

// settling is the time for a server to finish its own work.
const settling = 100 * time.Millisecond

// openFiles counts the descriptors of the server, or of the backend behind a
// proxy: that has one for each connection, and a proxy may have pipes besides.
func (s *side) openFiles() (int, error) {
	pid := s.pid()
	if s.backend != nil {
		pid = s.backend.pid()
	}
	n, err := openFiles(pid)
	if err == nil {
		return n, nil
	}
	if how, dead := s.died(100 * time.Millisecond); dead {
		err = fmt.Errorf("%s under %s: server ended: %s", s.server.name, s.workload.Name, how)
	}
	return n, err
}

// accepted waits until openFiles returns so many, since a connection
// may be established before it is accepted.
func (s *side) accepted(ctx context.Context, files int) error {
	const patience = 30 * time.Second
	for start := time.Now(); ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		n, err := s.openFiles()
		if err != nil || n >= files {
			return err
		}
		if time.Since(start) > patience {
			return fmt.Errorf("%s under %s: %d descriptors after %v, want %d", s.server.name, s.workload.Name, n, patience, files)
		}
	}
	return ctx.Err()
}

// The key that redis-benchmark uses without -r, and its value.
const (
	benchmarkKey   = "key:__rand_int__"
	benchmarkValue = "xxx"
)

// checkRedis sets the key that the load asks for.
func checkRedis(port int) error {
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprintf(c, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n",
		len(benchmarkKey), benchmarkKey, len(benchmarkValue), benchmarkValue); err != nil {
		return err
	}
	if got, err := bufio.NewReader(c).ReadString('\n'); err != nil || got != "+OK\r\n" {
		return fmt.Errorf("the reply to SET is %q: %w", got, err)
	}
	return nil
}

// checkHTTP asks for a path, whose content the load generator does not know.
func checkHTTP(scheme string, port int, path string) error {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	answer, err := client.Get(fmt.Sprintf("%s://127.0.0.1:%d%s", scheme, port, path))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	kind, want := serve.Content(path)
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != kind || !bytes.Equal(got, want) {
		return fmt.Errorf("the answer to GET %s is %s, %s, of %d bytes: want 200, %s, of %d bytes", path, answer.Status, answer.Header.Get("Content-Type"), len(got), kind, len(want))
	}
	return nil
}
