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

	"github.com/rondo-go/rondo"
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
		if u.Control != "" && answers(u.Control) {
			return fmt.Errorf("another process is at --control %s: give --upgrade to take over from it", u.Control)
		}
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
		log.Warn("upgrade: the pidfile stays the old process's", "error", err)
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

// A controller waits for those who want to take over.
type controller struct {
	flags  *upgradeFlags
	server *proxy.Server
	log    *slog.Logger
	ln     *net.UnixListener
	handed chan struct{} // closed when another process has taken over
}

// control begins to wait. SIGUSR2 starts a new process of the same program, with the same
// arguments.
func (u *upgradeFlags) control(s *proxy.Server, log *slog.Logger) (*controller, error) {
	c := &controller{flags: u, server: s, log: log, handed: make(chan struct{})}
	if u.Control != "" {
		var err error
		if c.ln, err = listenPrivately(u.Control); err != nil {
			return nil, fmt.Errorf("cannot listen on --control %s: %w", u.Control, err)
		}
		go c.accept()
	}
	go c.spawn(notifyUpgrade())
	return c, nil
}

// listenPrivately listens on a unix socket that only this user can connect to. It takes the
// place of another one in one step, so there always is one.
func listenPrivately(path string) (*net.UnixListener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".rondo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	inside := filepath.Join(dir, "control")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: inside})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false)
	if err = os.Chmod(inside, 0o600); err == nil {
		err = os.Rename(inside, path)
	}
	if err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

// accept serves those who connect to --control. One at a time can take over.
func (c *controller) accept() {
	for {
		nc, err := c.ln.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond) // no descriptors are left
			continue
		}
		go c.handOver(nc)
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
		if !c.handOver(nc) {
			time.AfterFunc(5*time.Second, func() { child.Kill() }) // it ends by itself, unless it hangs
		}
		child.Wait()
	}
}

// handOver lets the process at the other end of nc take over, and reports whether it has.
func (c *controller) handOver(nc *net.UnixConn) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.flags.UpgradeTimeout))
	defer cancel()
	if err := c.server.HandOver(ctx, nc); err != nil {
		c.log.Error("upgrade: no other process has taken over", "error", err)
		return false
	}
	close(c.handed)
	return true
}

// close removes the socket, unless another process has replaced it.
func (c *controller) close() {
	if c.ln == nil {
		return
	}
	select {
	case <-c.handed:
	default:
		os.Remove(c.flags.Control)
	}
	c.ln.Close()
}

// drain waits for the connections that stay when another process has taken over.
func (c *controller) drain(e *rondo.Engine) {
	c.log.Info("upgrade: another process has taken over", "staying", e.Stats().Open, "at_most", time.Duration(c.flags.StayTimeout))
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.flags.StayTimeout))
	defer cancel()
	if err := e.Shutdown(ctx); err != nil {
		c.log.Warn("upgrade: connections that could not be handed over have not ended in time", "error", err)
	}
}
