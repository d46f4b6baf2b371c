package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"

	"github.com/rondo-go/rondo/internal/sys"
)

// upgradeEnv names the descriptor by which a new process reaches the one that has started it.
const upgradeEnv = "RONDO_UPGRADE_FD"

// socketsEnv has the names of the service manager's sockets, with a colon behind each. Their
// descriptors follow that of upgradeEnv.
const socketsEnv = "RONDO_UPGRADE_SOCKETS"

// theirFD is the descriptor of upgradeEnv in a process that spawn has started.
const theirFD = 3

// notifyUpgrade begins to catch the signal for an upgrade.
func notifyUpgrade() <-chan os.Signal {
	signals := make(chan os.Signal, 1)
	if sys.UpgradeSignal != nil {
		signal.Notify(signals, sys.UpgradeSignal)
	}
	return signals
}

// isSpawned reports whether another process has started this one for an upgrade.
func isSpawned() bool { return os.Getenv(upgradeEnv) != "" }

// spawnedBy returns the connection to the process that has started this one for an upgrade; nil:
// none has.
func spawnedBy() (*net.UnixConn, error) {
	text := os.Getenv(upgradeEnv)
	if text == "" {
		return nil, nil
	}
	os.Unsetenv(upgradeEnv) // it is not for the processes that this one starts
	fd, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("%s is %q: want a descriptor", upgradeEnv, text)
	}
	return unixConn(os.NewFile(uintptr(fd), "upgrade"))
}

// spawnedSockets returns the service manager's sockets, and their names, that the process has
// passed on which has started this one for an upgrade.
func spawnedSockets() (files []*os.File, names []string) {
	text := os.Getenv(socketsEnv)
	os.Unsetenv(socketsEnv) // it is not for the processes that this one starts
	for fd := uintptr(theirFD + 1); text != ""; fd++ {
		var name string
		name, text, _ = strings.Cut(text, ":")
		f, err := sys.DuplicateFile(fd) // which no process inherits that this one starts
		if err != nil {
			continue
		}
		os.NewFile(fd, name).Close()
		files, names = append(files, f), append(names, name)
	}
	return files, names
}

// unixConn makes a connection of a file, which it closes.
func unixConn(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	nc, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := nc.(*net.UnixConn)
	if !ok {
		nc.Close()
		return nil, fmt.Errorf("%s is a %T: want a unix socket", upgradeEnv, nc)
	}
	return u, nil
}

// A child is a process that spawn has started.
type child struct{ *exec.Cmd }

// Kill ends it.
func (c child) Kill() { c.Process.Kill() }

// spawn starts the program anew, with the same arguments, from the file where it was: that may
// be a newer version by now. nc is the connection to it.
func spawn() (child, *net.UnixConn, error) {
	path, err := os.Executable()
	if err != nil {
		return child{}, nil, err
	}
	end, theirs, err := sys.SocketPair()
	if err != nil {
		return child{}, nil, err
	}
	defer theirs.Close()
	ours, err := unixConn(end)
	if err != nil {
		return child{}, nil, err
	}
	cmd := exec.Command(path, os.Args[1:]...)
	cmd.Dir = startDir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	sockets, names := systemdSockets.Load().passOn()
	cmd.ExtraFiles = append([]*os.File{theirs}, sockets...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", upgradeEnv, theirFD), "WATCHDOG_PID=") // it answers systemd's watchdog later
	if len(names) > 0 {
		cmd.Env = append(cmd.Env, socketsEnv+"="+strings.Join(names, ":")+":")
	}
	if err := cmd.Start(); err != nil {
		ours.Close()
		return child{}, nil, err
	}
	return child{cmd}, ours, nil
}
