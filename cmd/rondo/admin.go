package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/admin"
	"github.com/rondo-go/rondo/watchdog"
)

// adminFlags are the flags of the live page, which all servers have.
type adminFlags struct {
	Admin      string `help:"Address at which to show a live page with loops, connections, slow callbacks and profiles: host:port, or tcp://host:port, or unix:///path. Without --admin-token it must be a loopback address, as in 127.0.0.1:6380: then all users of this host can see the page." placeholder:"ADDR"`
	AdminToken secret `help:"Secret of 16 or more characters that the page of --admin asks for, as the password of any user name. With it the page shows what clients have sent, as in Redis's slow log." placeholder:"TOKEN"`

	page  *admin.Page // nil: there is none
	admin *side
}

// adminFiles returns how many descriptors the page may take.
func (f *adminFlags) adminFiles() int {
	if f.Admin == "" {
		return 0
	}
	return sideFiles
}

// A secret is not empty: an empty variable of a shell must not switch off what it guards.
type secret string

// UnmarshalText is called if the flag is given.
func (s *secret) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return fmt.Errorf("it is empty: give a secret of %d characters or more, or leave the flag out", leastToken)
	}
	*s = secret(text)
	return nil
}

// leastToken is how long a token must be: nobody should guess it.
const leastToken = 16

// check returns an error for an address that strangers could reach.
func (f *adminFlags) check() error {
	if f.Admin == "" {
		if f.AdminToken != "" {
			return usagef("--admin-token is for the page of --admin: give that too")
		}
		return nil
	}
	network, address, err := parseStream("--admin", f.Admin)
	switch {
	case err != nil:
		return err
	case f.AdminToken != "" && len(f.AdminToken) < leastToken:
		return usagef("--admin-token has %d characters: want %d or more", len(f.AdminToken), leastToken)
	case f.AdminToken == "" && !isOfThisHost(network, address):
		return usagef("--admin %s: other hosts could reach it: give a loopback address, as in 127.0.0.1:6380, or --admin-token", f.Admin)
	}
	return nil
}

// isOfThisHost reports whether only this host reaches an address.
func isOfThisHost(network, address string) bool {
	if network == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return err == nil
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// showAdmin shows the page, if it is wanted.
func (f *loopFlags) showAdmin(name string, e *rondo.Engine, log *slog.Logger, sections ...admin.Section) error {
	if f.Admin == "" {
		return nil
	}
	network, address, err := parseStream("--admin", f.Admin)
	if err != nil {
		return err
	}
	page := admin.New(e, admin.Options{Name: name, Token: string(f.AdminToken), Sections: sections})
	s, err := f.openSide(network, address, page, log, sideLog{
		shown: func(address string) { log.Info("the page of --admin is shown", "address", address) },
		never: func(err error) { log.Error("upgrade: the page of --admin is not shown", "error", err) },
	})
	if err != nil {
		return fmt.Errorf("--admin: %w", err)
	}
	f.page, f.admin = page, s
	return nil
}

// report logs a report of the watchdog, and shows it on the page.
func (f *adminFlags) report(r watchdog.Report) {
	if f.page != nil {
		f.page.Report(r)
	}
	r.Log(nil)
}
