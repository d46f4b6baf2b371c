package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"github.com/rondo-go/rondo/internal/sys"
)

// pid is the file of --pidfile, which tells others this process's number.
var pid pidfile

// A pidfile is locked as long as its process lives. So a number that a dead process has left, and
// that another program may have by now, means nothing.
type pidfile struct {
	mu sync.Mutex
	f  *os.File // nil: there is none
}

// lock makes the file, or takes one that a dead process has left, and empties it.
func (p *pidfile) lock(path string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	// A file may go away after it was opened and before it was locked, when its process ends:
	// then the next one is locked.
	for range 100 {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err == nil {
			err = take(f)
		}
		if err == nil {
			p.f = f
			return nil
		}
		if f != nil {
			f.Close()
		}
		if !errors.Is(err, errReplaced) {
			var op *os.PathError
			if errors.As(err, &op) {
				err = op.Err // so that the text names the file once
			}
			return fmt.Errorf("--pidfile %s: %w", path, err)
		}
	}
	return fmt.Errorf("--pidfile %s: %w", path, errReplaced)
}

var errReplaced = errors.New("other processes make and remove it all the time")

// take locks an open file and empties it, if it is one of a number.
func take(f *os.File) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	if !opened.Mode().IsRegular() {
		return errors.New("it is no regular file; give the name of a file for the process's number")
	}
	text, err := io.ReadAll(io.LimitReader(f, 100))
	if err != nil {
		return err
	}
	text = bytes.TrimSpace(text)
	number, err := strconv.Atoi(string(text))
	if len(text) > 0 && (err != nil || number <= 0) {
		return errors.New("it has something other than the number of a process; give another name")
	}
	err = sys.LockFile(f)
	switch {
	case errors.Is(err, sys.ErrLocked) && number > 0:
		return fmt.Errorf("process %d has it and is alive; stop that, or give another name", number)
	case errors.Is(err, sys.ErrLocked):
		return errors.New("another process that is starting has it; stop that, or give another name")
	case err != nil:
		return err
	}
	if now, err := os.Stat(f.Name()); err != nil || !os.SameFile(opened, now) {
		return errReplaced
	}
	return f.Truncate(0)
}

// write writes the number of this process.
func (p *pidfile) write() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.f == nil {
		return nil
	}
	if _, err := p.f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("--pidfile: %w", err)
	}
	return nil
}

// remove removes the file, and with it the lock.
func (p *pidfile) remove() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.f == nil {
		return
	}
	err := os.Remove(p.f.Name()) // while it is locked, so that it is not another's
	p.f.Close()
	if err != nil {
		os.Remove(p.f.Name()) // Windows removes no open file
	}
	p.f = nil
}
