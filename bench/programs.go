package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed limit/*.c
var sources embed.FS

// cPrograms are the names of the C programs in limit.
var cPrograms = []string{"epoll", "uring", "load", "sink", "udp", "tlsload"}

// Build tags of gnet's documentation. No other library here uses them.
const peersTags = "poll_opt,gc_opt"

// make builds programs in the build's directory. It builds the servers of this
// benchmark with the rondo of the build's root. If they do not compile with it,
// as with an old commit, it builds that commit's own servers.
func (b build) make(ctx context.Context, programs []string) error {
	if err := os.MkdirAll(b.dir, 0o777); err != nil {
		return err
	}
	for _, program := range slices.Compact(slices.Sorted(slices.Values(programs))) {
		var err error
		switch {
		case slices.Contains(cPrograms, program):
			err = b.compile(ctx, program)
		case program == "rondo":
			err = b.goBuild(ctx, b.root, program, "./cmd/rondo")
		default:
			err = b.server(ctx, program)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// server builds ./server with go.mod's replacement of rondo set to the root.
func (b build) server(ctx context.Context, program string) error {
	var flags []string
	if program == "server-tags" {
		flags = []string{"-tags", peersTags}
	}
	if here, err := filepath.Abs(".."); err != nil || here == b.root {
		return b.goBuild(ctx, ".", program, "./server", flags...)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		return err
	}
	replaced := strings.ReplaceAll(string(mod), "=> ../", "=> "+b.root)
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		return err
	}
	file := b.path("go.mod")
	if err := os.WriteFile(file, []byte(replaced), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(b.path("go.sum"), sum, 0o600); err != nil {
		return err
	}
	first := b.goBuild(ctx, ".", program, "./server", append(flags, "-modfile="+file, "-mod=mod")...)
	if first == nil {
		return nil
	}
	if err := b.goBuild(ctx, filepath.Join(b.root, "bench"), program, "./server", flags...); err != nil {
		return fmt.Errorf("%w\ntoday's servers do not compile with it either: %w", err, first)
	}
	fmt.Fprintf(os.Stderr, "%s: measuring its own servers, since today's do not compile with it\n", b.root)
	return nil
}

func (b build) goBuild(ctx context.Context, dir, program, pkg string, flags ...string) error {
	out, err := filepath.Abs(b.path(program))
	if err != nil {
		return err
	}
	args := append([]string{"build", "-C", dir, "-trimpath", "-o", out}, flags...)
	if said, err := exec.CommandContext(ctx, "go", append(args, pkg)...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s of %s: %w: run this in the directory bench\n%s", pkg, dir, err, said)
	}
	return nil
}

// compile builds a C program.
func (b build) compile(ctx context.Context, name string) error {
	path, file, flags := b.path(name), name, []string{"-O2"}
	if name == "tlsload" {
		file, flags = "load", []string{"-O2", "-DTLS"}
	}
	source, err := sources.ReadFile("limit/" + file + ".c")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".c", source, 0o600); err != nil {
		return err
	}
	flags = append(flags, "-pthread", "-o", path, path+".c")
	if name == "tlsload" {
		flags = append(flags, "-lssl", "-lcrypto")
	}
	if said, err := exec.CommandContext(ctx, "gcc", flags...).CombinedOutput(); err != nil {
		return fmt.Errorf("build limit/%s.c: %w: install gcc, and for TLS OpenSSL's libssl-dev\n%s", file, err, said)
	}
	return nil
}
