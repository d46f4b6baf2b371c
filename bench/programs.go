package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

//go:embed limit/*.c
var sources embed.FS

// Programs that are always there.
const (
	selfProgram = "bench" // this one
	loadProgram = "load"  // limit/load.c
	udpProgram  = "udp"   // limit/udp.c
	tlsProgram  = "tlsload"
)

// serverProgram is most servers: package server.
const serverProgram = "server"

// packages are the Go programs that are built, by the directory of their module
// as seen from this one, and the package in it.
var packages = map[string][2]string{serverProgram: {".", "./server"}, tlsProgram: {".", "./tlsload"}, "rondo": {"..", "./cmd/rondo"}}

// programs are the executables of a run. They stay where they are, so that a run
// that is continued later measures the same ones.
type programs struct{ dir string }

func (p *programs) path(name string) string { return filepath.Join(p.dir, name) }

// build makes what a run needs in dir: this program and the load generator, and
// what the servers and workloads ask for.
func build(ctx context.Context, dir string, with []string) (*programs, error) {
	p := &programs{dir}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := install(self, p.path(selfProgram)); err != nil {
		return nil, err
	}
	names := append([]string{loadProgram}, with...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if slices.Contains(cPrograms(), name) {
			err = p.compile(ctx, name)
		} else {
			err = p.buildGo(ctx, name)
		}
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// errChanged is why a run cannot go on.
var errChanged = errors.New("this program is not the one that began the run")

// reuse takes the programs that an earlier part of a run has built, if this
// program is the one that did.
func reuse(dir string) (*programs, error) {
	p := &programs{dir}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	same, err := sameFile(self, p.path(selfProgram))
	if err == nil && !same {
		err = fmt.Errorf("%w: use %s, or begin a new one without --append", errChanged, p.path(selfProgram))
	}
	return p, err
}

// install copies an executable, unless it is there.
func install(from, to string) error {
	if same, err := sameFile(from, to); err == nil && same {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	// A name of its own first: what may be running cannot be written to.
	if err := os.WriteFile(to+".new", b, 0o700); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

// sameFile tells whether two files are one, or have the same bytes.
func sameFile(a, b string) (bool, error) {
	infoA, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	infoB, err := os.Stat(b)
	if err != nil {
		return false, err
	}
	if os.SameFile(infoA, infoB) {
		return true, nil
	}
	if infoA.Size() != infoB.Size() {
		return false, nil
	}
	bytesA, err := os.ReadFile(a)
	if err != nil {
		return false, err
	}
	bytesB, err := os.ReadFile(b)
	return bytes.Equal(bytesA, bytesB), err
}

// buildGo builds one of packages.
func (p *programs) buildGo(ctx context.Context, name string) error {
	path, err := filepath.Abs(p.path(name))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-C", packages[name][0], "-o", path, packages[name][1])
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s of %s: %w: run this in the directory bench\n%s", packages[name][1], packages[name][0], err, out)
	}
	return nil
}

// compile builds one of the C programs.
func (p *programs) compile(ctx context.Context, name string) error {
	source, err := sources.ReadFile("limit/" + name + ".c")
	if err != nil {
		return err
	}
	path := p.path(name)
	if err := os.WriteFile(path+".c", source, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "gcc", "-O2", "-pthread", "-o", path, path+".c")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build limit/%s.c: %w: gcc is needed\n%s", name, err, out)
	}
	return nil
}
