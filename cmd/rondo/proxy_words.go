package main

import "strings"

// Package proxy names its fields in errors. Those who write a file or flags know other names.
var (
	fileWords = strings.NewReplacer(
		"Listener.TLS is for clients that no Route has, and they have no Pool: name one, or set Route.TLS",
		"tls is for clients that no route has, and they have no pool: name one, or give tls to the routes",
		"want some, or Listener.Pool for all clients", "want some, or the listener's pool for all clients",
		"Listener.MaxConns", "max-conns",
		"Listener.HelloTimeout", "hello-timeout",
		"Target.Weight", "weight",
		"want 0, for 1, to ", "want 1 to ",
		"Target.MaxConns", "max-conns",
		"Pool.TLS.ServerName", "the name in tls",
		"Pool.ConnectTimeout", "connect-timeout",
		"Pool.EjectTime", "eject-time",
		"Pool.SlowStart", "slow-start",
		"Pool.QueueTime", "queue-time",
		"Pool.Idle", "idle",
		"Pool.Limit", "limit",
		"Pool.SendProxy", "send-proxy",
		"Pool.Queue", "queue",
		"Pool.Tries", "tries",
		"Check.Interval", "health.interval",
		"Check.Timeout", "health.timeout",
		"Check.Rise", "health.rise",
		"Check.Fall", "health.fall",
		"Check.Path", "health.path",
		"Check.Host", "health.host",
		"Check.Status", "health.status",
		"--tls-cert and --tls-key", "cert and key",
		"--tls-key and --tls-ca need a certificate: give it with --tls-cert", "key needs a cert",
		"--tls-ca", "ca",
	)
	flagWords = strings.NewReplacer(
		"Pool.TLS.ServerName", "--to-tls-name",
		"Check.Path", "--health-path",
		"Check.Host", "--health-host",
	)
)

// reworded is an error in other words.
type reworded struct {
	error
	text string
}

func (r reworded) Error() string { return r.text }
func (r reworded) Unwrap() error { return r.error }

// inWordsOf returns err in the words of a file or of flags.
func inWordsOf(words *strings.Replacer, err error) error {
	return reworded{err, words.Replace(err.Error())}
}
