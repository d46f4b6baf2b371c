package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
)

// adminOf returns the URL of a process's page.
func adminOf(t *testing.T, p *process) (url string) {
	t.Helper()
	testkit.Until(t, "the page's address", func() bool {
		m := regexp.MustCompile(`the page of --admin is shown"? address=tcp://(\S+)`).FindStringSubmatch(p.stderr())
		if m != nil {
			url = "http://" + m[1]
		}
		return m != nil
	})
	return url
}

// askPage returns what a page answers.
func askPage(t *testing.T, url, token string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.SetBasicAuth("any", token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// adminVars is what the tests read of /vars.
type adminVars struct {
	Name     string
	Total    rondo.LoopStats
	Sections []struct {
		Tables []struct {
			Name string
			Rows [][]any
		}
	}
}

// rows returns a table's rows.
func (v *adminVars) rows(table string) [][]any {
	for _, s := range v.Sections {
		for _, t := range s.Tables {
			if t.Name == table {
				return t.Rows
			}
		}
	}
	return nil
}

func readVars(t *testing.T, url, token string) (v adminVars) {
	t.Helper()
	status, text := askPage(t, url+"/vars", token)
	if err := json.Unmarshal([]byte(text), &v); err != nil || status != 200 {
		t.Fatalf("%d, %s, %v", status, text, err)
	}
	return v
}

// The page of rondo redis has the keyspace, the slow log without what clients have sent, clients,
// and callbacks that were slow.
func TestAdminOfRedis(t *testing.T) {
	p, addresses := start(t, "redis", "--addr", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--enable-debug-command", "local", "--slow-callback", "20ms")
	url := adminOf(t, p)
	conn := dial(t, addresses[0])
	talk(t, conn, "SET key value\r\nSET other value EX 1000\r\nCONFIG SET slowlog-log-slower-than 0\r\nECHO secret\r\n", "+OK\r\n+OK\r\n+OK\r\n$6\r\nsecret\r\n")
	if status, text := askPage(t, url+"/", ""); status != 200 || !strings.Contains(text, "<title>rondo redis</title>") {
		t.Errorf("%d, %s", status, text)
	}
	var v adminVars
	testkit.Until(t, "the tables", func() bool {
		v = readVars(t, url, "")
		return len(v.rows("Slow log")) >= 2 && len(v.rows("Keyspace")) == 1
	})
	if keys := v.rows("Keyspace")[0]; v.Name != "rondo redis" || keys[0] != "db0" || keys[1] != 2.0 || keys[2] != 1.0 || len(v.rows("INFO")) != len(redisFields) {
		t.Errorf("%+v", v)
	}
	if _, text := askPage(t, url+"/vars", ""); !strings.Contains(text, `\"ECHO\" (and 1 more: give --admin-token to see them)`) || strings.Contains(text, "secret") {
		t.Error(text)
	}
	if _, text := askPage(t, url+"/conns", ""); !strings.Contains(text, conn.LocalAddr().String()) || !strings.Contains(text, `"handler":"*redis.direct"`) {
		t.Error(text)
	}
	talk(t, conn, "DEBUG SLEEP 0.2\r\n", "+OK\r\n")
	testkit.Until(t, "the slow callback", func() bool {
		_, text := askPage(t, url+"/slow", "")
		return strings.Contains(text, `"over":true`) && strings.Contains(text, conn.LocalAddr().String()) && strings.Contains(text, "time.Sleep")
	})
	testkit.Until(t, "the log", func() bool {
		return strings.Contains(p.stderr(), "watchdog: the callback that blocked its loop is over")
	})

	answer, err := http.Get(url + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for n := 0; n < 2 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), `data: {"name":"rondo redis"`) {
			n++
		}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	r, _ := http.NewRequest("GET", url+"/vars", nil)
	r.Host = "evil.example"
	if answer, err := http.DefaultClient.Do(r); err != nil || answer.StatusCode != 403 {
		t.Errorf("rebinding: %v", err)
	}
	p.stop(syscall.SIGTERM, 0) // although somebody looks
}

// With a token the page shows what clients have sent, and nothing without it.
func TestAdminToken(t *testing.T) {
	const token = "0123456789abcdef"
	p, addresses := start(t, "redis", "--addr", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--admin-token", token, "--requirepass", "pass")
	url := adminOf(t, p)
	if status, _ := askPage(t, url+"/", ""); status != 401 {
		t.Errorf("without the token: %d", status)
	}
	talk(t, dial(t, addresses[0]), "AUTH pass\r\nCONFIG SET slowlog-log-slower-than 0\r\nECHO hello\r\n", "+OK\r\n+OK\r\n$5\r\nhello\r\n")
	testkit.Until(t, "the slow log", func() bool {
		_, text := askPage(t, url+"/vars", token)
		return strings.Contains(text, `\"ECHO\" \"hello\"`)
	})
	p.stop(syscall.SIGTERM, 0)
}

// The other servers have the page too.
func TestAdminOfOthers(t *testing.T) {
	echo, addresses := start(t, "echo", "--addr", "127.0.0.1:0", "--admin", "localhost:0", "--slow-callback", "0")
	talk(t, dial(t, addresses[0]), "hello", "hello")
	if v := readVars(t, adminOf(t, echo), ""); v.Name != "rondo echo" || v.Total.Accepted != 1 {
		t.Errorf("%+v", v)
	}
	site, _ := start(t, "http", "--addr", "127.0.0.1:0", "--echo", "--access-log", "off", "--admin", "[::ffff:127.0.0.1]:0")
	if v := readVars(t, adminOf(t, site), ""); v.Name != "rondo http" || len(v.rows("")) != 13 || v.rows("")[1][0] != "requests" {
		t.Errorf("%+v", v)
	}
	front, doors := start(t, "proxy", "--listen", "127.0.0.1:0", "--to", addresses[0], "--access-log", "off", "--admin", "tcp://127.0.0.1:0")
	conn := dial(t, doors[0])
	talk(t, conn, "hello", "hello")
	v := readVars(t, adminOf(t, front), "")
	if backends := v.rows("Backends"); v.Name != "rondo proxy" || len(backends) != 1 || backends[0][1] != addresses[0] || backends[0][3] != "up" || backends[0][4] != 1.0 {
		t.Errorf("%+v", v)
	}
	if len(v.rows("Listeners")) != 1 || len(v.rows("Pools")) != 1 {
		t.Errorf("%+v", v)
	}
	conn.Close()
	for _, p := range []*process{front, site, echo} {
		p.stop(syscall.SIGTERM, 0)
	}
}

// One sentence for an address that others could reach, and for a token that is none.
func TestAdminMistakes(t *testing.T) {
	taken := testkit.FreeAddress(t)
	holder := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, testkit.Echo)
	for args, want := range map[string]string{
		"echo --admin :6380":                                      "--admin :6380: other hosts could reach it: give a loopback address, as in 127.0.0.1:6380, or --admin-token",
		"redis --admin 0.0.0.0:6380":                              "--admin 0.0.0.0:6380: other hosts could reach it",
		"http --echo --admin [::]:6380":                           "--admin [::]:6380: other hosts could reach it",
		"echo --admin example.com:6380":                           "--admin example.com:6380: other hosts could reach it",
		"proxy --listen :0 --to :1 --check --admin :6380":         "--admin :6380: other hosts could reach it",
		"proxy --config x --admin :6380":                          "--admin :6380: other hosts could reach it",
		"echo --admin udp://127.0.0.1:1":                          `--admin: address "udp://127.0.0.1:1": the network is udp`,
		"echo --admin 127.0.0.1":                                  `--admin: address "127.0.0.1": missing port in address`,
		"echo --admin :6380 --admin-token secret":                 "--admin-token has 6 characters: want 16 or more",
		"echo --admin 127.0.0.1:0 --admin-token=":                 "--admin-token: it is empty: give a secret of 16 characters or more, or leave the flag out",
		"echo --admin-token 0123456789abcdef":                     "--admin-token is for the page of --admin: give that too",
		"echo --addr 127.0.0.1:0 --admin " + holder:               "--admin: cannot listen on tcp://" + holder,
		"proxy --listen " + taken + " --to :1 --admin " + holder:  "--admin: cannot listen on tcp://" + holder,
		"http --echo --addr 127.0.0.1:0 --admin tcp4://" + holder: "--admin: cannot listen on tcp4://" + holder,
	} {
		output, code := run(t, strings.Fields(args)...)
		usage := !strings.Contains(want, "cannot listen")
		if !strings.Contains(output, "rondo: "+want) || usage != (code == statusUsage) || code == 0 {
			t.Errorf("rondo %s: code %d, %s; want %q", args, code, output, want)
		}
	}
}
