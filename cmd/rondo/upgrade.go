package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/internal/upgrade"
)

// upgradeFlags are flags of an upgrade: another process takes over without a lost connection.
type upgradeFlags struct {
	Control        string   `help:"Unix socket at which another process may ask to take over, by --upgrade." placeholder:"FILE"`
	Upgrade        bool     `help:"Take over from the process at --control, which then ends."`
	UpgradeTimeout duration `help:"How long a new process may take until it serves. Then the old one goes on." default:"30s" placeholder:"TIME"`

	tookOver bool // from another process
}

// stayFlag is for servers that hand over connections, too.
type stayFlag struct {
	StayTimeout duration `help:"How long connections that cannot be handed over (whose TLS the old process has ended or begun) may go on in the old process. Then it resets them." default:"1h" placeholder:"TIME"`
}

func (u *upgradeFlags) check() error {
	switch {
	case (u.Upgrade || u.Control != "") && sys.UpgradeSignal == nil:
		return usagef("--control and --upgrade pass sockets to another process, which this system cannot")
	case u.Upgrade && u.Control == "":
		return usagef("--upgrade takes over from the process at --control: give that too")
	}
	return nil
}

// isHeir reports whether this process takes the place of another one.
func (u *upgradeFlags) isHeir() bool { return u.Upgrade || isSpawned() }

// old returns the connection to the process whose place this one takes; nil: there is none.
func (u *upgradeFlags) old() (*net.UnixConn, error) {
	old, err := spawnedBy()
	if err == nil && old == nil && u.Upgrade {
		old, err = u.dial()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot take over: %w", err)
	}
	u.tookOver = old != nil
	return old, nil
}

// inTime returns a context that ends after --upgrade-timeout.
func (u *upgradeFlags) inTime() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Duration(u.UpgradeTimeout))
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

// An upgradable is a server that another process can take over.
type upgradable interface {
	// HandOver lets the process at the other end of nc take over. The error is why it has not.
	HandOver(ctx context.Context, nc *net.UnixConn) error
}

// A stayer waits, for so long at most, for the end of the connections that another process cannot
// get. Then it cuts them off.
type stayer struct {
	most time.Duration
	wait func(ctx context.Context) error
}

// end waits.
func (s *stayer) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.most)
	defer cancel()
	return s.wait(ctx)
}

// giveUp ends a process that cannot serve. If another one goes on after all, connections that have
// come from it may end here.
func (s *stayer) giveUp(e *rondo.Engine, log *slog.Logger, signals <-chan os.Signal) {
	if open := e.Stats().Open; open > 0 {
		log.Error("upgrade: the old process goes on, this one only until its connections have ended", "connections", open, "at_most", s.most)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-signals
		cancel()
	}()
	s.end(ctx)
}

// A controller waits for those who want to take over.
type controller struct {
	flags  *upgradeFlags
	server upgradable
	log    *slog.Logger
	socket *privateSocket // nil: there is no --control
	handed chan struct{}  // closed when another process has taken over
	heir   int            // then, its number; 0: not known
}

// control prepares the waiting. It finds out whether there can be a socket at --control before
// another process lets go of its connections.
func (u *upgradeFlags) control(s upgradable, log *slog.Logger) (*controller, error) {
	c := &controller{flags: u, server: s, log: log, handed: make(chan struct{})}
	if u.Control == "" {
		return c, nil
	}
	if !u.isHeir() && answers(u.Control) {
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
		if upgrade.IsClosed(c.handed) {
			c.log.Warn("upgrade: refused, since another process has taken over already")
			continue
		}
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
	ctx, cancel := c.flags.inTime()
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

// ended is called when another process has taken over. It returns when the connections that stay
// have ended.
func (c *controller) ended(e *rondo.Engine, s *stayer) {
	systemd.leave(c.heir)
	pid.remove()
	c.close()
	c.log.Info("upgrade: another process has taken over", "staying", e.Stats().Open, "at_most", s.most)
	if err := s.end(context.Background()); err != nil {
		c.log.Warn("upgrade: connections that could not be handed over have not ended in time", "error", err)
	}
}
