package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/proxy"
)

// upgradeFlags are flags of an upgrade: another process takes over without a lost connection.
type upgradeFlags struct {
	Control        string   `help:"Unix socket at which another process may ask to take over, by --upgrade." placeholder:"FILE"`
	Upgrade        bool     `help:"Take listeners and connections over from the process at --control, which then ends."`
	UpgradeTimeout duration `help:"How long a new process may take until it serves. Then the old one goes on." default:"30s" placeholder:"TIME"`
	StayTimeout    duration `help:"How long connections that cannot be handed over (whose TLS the old process has ended or begun) may go on in the old process. Then it resets them." default:"1h" placeholder:"TIME"`

	tookOver bool // from another process
}

func (u *upgradeFlags) check() error {
	if u.Upgrade && u.Control == "" {
		return usagef("--upgrade takes over from the process at --control: give that too")
	}
	return nil
}

// begin makes the server serve config: anew, or in place of another process.
func (u *upgradeFlags) begin(s *proxy.Server, config proxy.Config) error {
	old, err := spawnedBy()
	if err == nil && old == nil && u.Upgrade {
		old, err = u.dial()
	}
	if err != nil {
		return fmt.Errorf("cannot take over: %w", err)
	}
	if old == nil {
		return s.Apply(config)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(u.UpgradeTimeout))
	defer cancel()
	u.tookOver = true
	return s.TakeOver(ctx, old, config)
}

// oldTime is how long the old process may take, behind an upgrade, to let go of what only one can
// have: the pidfile, and the address of --stats. oldPause is the time between two tries.
const (
	oldTime  = 10 * time.Second
	oldPause = 20 * time.Millisecond
)

// takePidfile takes the pidfile from the old process, and tells the service manager that this
// is the service's process now.
func (u *upgradeFlags) takePidfile(path string, log *slog.Logger) {
	if !u.tookOver {
		return
	}
	systemd.follow()
	if path == "" {
		return
	}
	err := pid.lock(path)
	for end := time.Now().Add(oldTime); err != nil && time.Now().Before(end); {
		time.Sleep(oldPause)
		err = pid.lock(path)
	}
	if err != nil {
		log.Warn("upgrade: the pidfile does not name this process", "error", err)
	}
}

// dial connects to the process at --control.
func (u *upgradeFlags) dial() (*net.UnixConn, error) {
	nc, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: u.Control})
	if err != nil {
		return nil, fmt.Errorf("no process is at --control %s: start without --upgrade: %w", u.Control, err)
	}
	return nc, nil
}

// answers reports whether a process listens at a unix socket.
func answers(path string) bool {
	nc, err := net.Dial("unix", path)
	if err == nil {
		nc.Close()
	}
	return err == nil
}

// giveUp ends a process that cannot serve. If another one goes on after all, connections that have
// come from it may end here.
func (u *upgradeFlags) giveUp(s *proxy.Server, log *slog.Logger, signals <-chan os.Signal) {
	if open := s.Engine.Stats().Open; open > 0 {
		log.Error("upgrade: the old process goes on, this one only until its connections have ended", "connections", open, "at_most", time.Duration(u.StayTimeout))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(u.StayTimeout))
	defer cancel()
	go func() {
		<-signals
		cancel()
	}()
	s.Shutdown(ctx)
}

// A controller waits for those who want to take over.
type controller struct {
	flags  *upgradeFlags
	server *proxy.Server
	log    *slog.Logger
	socket *privateSocket // nil: there is no --control
	handed chan struct{}  // closed when another process has taken over
	heir   int            // then, its number; 0: not known
}

// control prepares the waiting. It finds out whether there can be a socket at --control before
// another process lets go of its connections. replaces: there is such a process.
func (u *upgradeFlags) control(s *proxy.Server, log *slog.Logger, replaces bool) (*controller, error) {
	c := &controller{flags: u, server: s, log: log, handed: make(chan struct{})}
	if u.Control == "" {
		return c, nil
	}
	if !replaces && answers(u.Control) {
		return nil, fmt.Errorf("another process is at --control %s: give --upgrade to take over from it", u.Control)
	}
	var err error
	if c.socket, err = listenPrivately(u.Control); err != nil {
		return nil, fmt.Errorf("cannot listen on --control %s: %w", u.Control, err)
	}
	return c, nil
}

// wait begins to wait. A signal starts a new process of the same program, with the same
// arguments.
func (c *controller) wait(signals <-chan os.Signal) {
	go c.spawn(signals)
	if c.socket == nil {
		return
	}
	if err := c.socket.publish(); err != nil {
		c.log.Error("upgrade: there is no socket at --control", "error", err)
		c.socket.close()
		return
	}
	go c.accept()
}

// A privateSocket is a unix socket that only this user can connect to. It takes the place of
// another one in one step, so there always is one.
type privateSocket struct {
	*net.UnixListener
	path, dir string
	file      os.FileInfo // nil: there is none at path
}

// listenPrivately makes the socket beside path.
func listenPrivately(path string) (*privateSocket, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".rondo-")
	if err != nil {
		return nil, err
	}
	p := &privateSocket{path: path, dir: dir}
	p.UnixListener, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: p.inside()})
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	p.SetUnlinkOnClose(false)
	if err := os.Chmod(p.inside(), 0o600); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *privateSocket) inside() string { return filepath.Join(p.dir, "control") }

// publish moves the socket to its path.
func (p *privateSocket) publish() error {
	file, err := os.Lstat(p.inside())
	if err == nil {
		err = os.Rename(p.inside(), p.path)
	}
	if err != nil {
		return err
	}
	p.file = file
	os.Remove(p.dir)
	return nil
}

// close closes the socket, and removes its file unless another process has replaced it.
func (p *privateSocket) close() {
	if p.file == nil {
		os.RemoveAll(p.dir)
	} else if now, err := os.Lstat(p.path); err == nil && os.SameFile(now, p.file) {
		os.Remove(p.path)
	}
	p.Close()
}

// accept serves those who connect to --control. One at a time can take over.
func (c *controller) accept() {
	for {
		nc, err := c.socket.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond) // no descriptors are left
			continue
		}
		go c.handOver(nc, sys.PeerProcess(nc))
	}
}

// spawn starts a new process for each signal.
func (c *controller) spawn(signals <-chan os.Signal) {
	for range signals {
		c.log.Info("upgrade: starting a new process")
		child, nc, err := spawn()
		if err != nil {
			c.log.Error("upgrade: cannot start a new process: this one goes on", "error", err)
			continue
		}
		go child.Wait() // so that the system forgets it when it has ended
		if err := c.handOver(nc, child.Process.Pid); errors.Is(err, context.DeadlineExceeded) {
			time.AfterFunc(hangTime, child.Kill) // it ends by itself, unless it hangs
		}
	}
}

// hangTime is how long a new process may take to see that the old one goes on.
const hangTime = 5 * time.Second

// handOver lets the process at the other end of nc take over. The error is why it has not.
func (c *controller) handOver(nc *net.UnixConn, pid int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.flags.UpgradeTimeout))
	defer cancel()
	err := c.server.HandOver(ctx, nc)
	if err != nil {
		c.log.Error("upgrade: no other process has taken over", "error", err)
		return err
	}
	c.heir = pid
	close(c.handed)
	return nil
}

// close removes the socket.
func (c *controller) close() {
	if c.socket != nil {
		c.socket.close()
	}
}

// drain waits for the connections that stay when another process has taken over.
func (c *controller) drain() {
	c.log.Info("upgrade: another process has taken over", "staying", c.server.Engine.Stats().Open, "at_most", time.Duration(c.flags.StayTimeout))
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.flags.StayTimeout))
	defer cancel()
	if err := c.server.Shutdown(ctx); err != nil {
		c.log.Warn("upgrade: connections that could not be handed over have not ended in time", "error", err)
	}
}
