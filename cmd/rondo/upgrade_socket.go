package main

import (
	"net"
	"os"
	"path/filepath"
)

// answers reports whether a process listens at a unix socket.
func answers(path string) bool {
	nc, err := net.Dial("unix", path)
	if err == nil {
		nc.Close()
	}
	return err == nil
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
