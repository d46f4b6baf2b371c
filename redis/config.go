package redis

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rondo-go/rondo/resp"
)

// config holds the current values of the parameters that CONFIG SET changes. It
// is a value, so that a CONFIG SET that fails half-way can restore a copy.
type config struct {
	maxClients   int
	timeout      int64 // seconds
	password     string
	protected    bool
	hz           int64
	maxBulk      int64
	queryLimit   int64
	maxMemory    int64
	eviction     eviction
	events       eventClass // notify-keyspace-events
	listSize     int64      // see quicklist.LimitOf
	listDepth    int64      // list-compress-depth, which has no effect
	outputLimits [classes]outputLimit
	logLevel     int // index of logLevels

	busyReply       int64 // busy-reply-threshold, in milliseconds; 0: none
	slowerThan      int64 // microseconds; negative: no slow log
	slowlogLen      int64
	latencyLimit    int64 // milliseconds; 0: no latency monitor
	latencyTracking bool
	percentiles     []float64 // of the durations of commands, for INFO

	zsetEntries, zsetValue             int64 // the largest sorted sets that are listpacks
	hashEntries, hashValue, setEntries int64 // limits of compact encodings
	hllSparse                          int64 // hll-sparse-max-bytes
	streamBytes, streamEntries         int64 // of a stream's block; 0: no limit

	trackedKeys  int64 // tracking-table-max-keys; 0: no limit
	clientMemory int64 // bytes; negative: percent of maxMemory
	defrag       bool
	defragFrom   int64 // percent of free memory between entries
	inert        [maxInert]string

	allChannels bool  // acl-pubsub-default
	deniedLen   int64 // acllog-max-len

	port       int
	bind       string
	unixSocket string
	aclFile    string
	debug      DebugAccess
	compress   bool // rdbcompression

	reading    bool // a file, of which several lines may set a parameter together
	fromFile   bool // so that the addresses are those of the file
	save       string
	master     string // replicaof
	dir        string // empty: the process's
	databases  int64
	threads    int64       // io-threads
	protecting DebugAccess // enable-protected-configs
	oomScores  string      // oom-score-adj-values
}

func (c *config) init(s *Server) {
	if s.Config != nil {
		*c = s.Config.config
		return
	}
	*c = config{
		maxClients: cmp.Or(s.MaxClients, DefaultMaxClients),
		timeout:    int64((s.Timeout + time.Second - 1) / time.Second),
		password:   s.Password,
		protected:  !s.NoProtectedMode,
		hz:         10,
		maxBulk:    512 << 20,
		queryLimit: 1 << 30,
		maxMemory:  s.MaxMemory,
		listSize:   -2,
		outputLimits: [classes]outputLimit{
			classReplica: {hard: 256 << 20, soft: 64 << 20, seconds: 60},
			classPubsub:  {hard: 32 << 20, soft: 8 << 20, seconds: 60},
		},
		logLevel: levelIndex(s.Level),

		busyReply: 5000, slowerThan: 10000, slowlogLen: 128,
		latencyTracking: true, percentiles: []float64{50, 99, 99.9},

		debug:     s.Debug,
		compress:  true,
		databases: defaultDatabases,
		threads:   1,
		oomScores: "0 200 800",

		zsetEntries: 128, zsetValue: 64,
		hashEntries: 512, hashValue: 64, setEntries: 512,
		hllSparse: 3000, streamBytes: 4096, streamEntries: 100,

		trackedKeys: 1_000_000,

		defrag: true, defragFrom: defragFrom, inert: inertDefaults,

		allChannels: s.AllChannels, deniedLen: 128, aclFile: s.ACLFile,
	}
	c.eviction.init()
}

// listening records an address that the server listens on.
func (c *config) listening(network, address string, port int) {
	if c.fromFile {
		return
	}
	if network == "unix" {
		c.unixSocket = address
		return
	}
	if c.port == 0 {
		c.port = port
	}
	host, _, _ := strings.Cut(address, ":"+strconv.Itoa(port))
	c.bind = strings.TrimSpace(c.bind + " " + strings.Trim(host, "[]"))
}

// logLevels are Redis's log levels with their slog equivalents.
var logLevels = []struct {
	name  string
	level slog.Level
}{{"debug", slog.LevelDebug}, {"verbose", slog.LevelDebug + 2}, {"notice", slog.LevelInfo}, {"warning", slog.LevelWarn}}

// levelIndex returns the index of the least verbose level that shows all that l
// does.
func levelIndex(l *slog.LevelVar) int {
	i := len(logLevels) - 2
	if l == nil {
		return i
	}
	for i = len(logLevels) - 1; i > 0 && logLevels[i].level > l.Level(); i-- {
	}
	return i
}

// params lists all parameters, sorted by name. They are made by init, since what applies them
// may log, and the log looks for their names.
var (
	params        []*param
	inertDefaults [maxInert]string
)

func init() { params, inertDefaults = allParams() }

func allParams() ([]*param, [maxInert]string) {
	inert, defaults := inertParams()
	all := append(ownParams(), inert...)
	slices.SortFunc(all, func(a, b *param) int { return strings.Compare(a.name, b.name) })
	return all, defaults
}

// ownParams returns the parameters that have an effect, or none but one value.
func ownParams() []*param {
	return append(encodingParams(), []*param{
		{name: "acl-pubsub-default", get: getPubsubDefault, set: setPubsubDefault, apply: applyACL},
		fixed(&param{name: "aclfile", form: formOptional, get: func(c *config) string { return c.aclFile }, set: func(c *config, v string) string { c.aclFile = v; return "" }}),
		intParam("acllog-max-len", func(c *config) *int64 { return &c.deniedLen }, 0, math.MaxInt64, applyACL),
		intParam("active-defrag-threshold-lower", func(c *config) *int64 { return &c.defragFrom }, 0, 1000, applyDefrag),
		boolParam("activedefrag", func(c *config) *bool { return &c.defrag }, applyDefrag),
		{name: "bind", form: formBind, frozen: "Failed to bind to specified addresses: they cannot change while the server runs",
			get: func(c *config) string { return c.bind }, setAll: setBind},
		intParam("busy-reply-threshold", func(c *config) *int64 { return &c.busyReply }, 0, math.MaxInt64, nil),
		outputLimitParam("client-output-buffer-limit"),
		memoryParam("client-query-buffer-limit", func(c *config) *int64 { return &c.queryLimit }, 1<<20),
		fixed(intParam("databases", func(c *config) *int64 { return &c.databases }, 1, maxDatabases, nil)),
		dirParam("dir"),
		accessParam("enable-debug-command", func(c *config) *DebugAccess { return &c.debug }),
		accessParam("enable-protected-configs", func(c *config) *DebugAccess { return &c.protecting }),
		{name: "hz", get: getInt(func(c *config) *int64 { return &c.hz }), set: setHz},
		fixed(intParam("io-threads", func(c *config) *int64 { return &c.threads }, 1, 128, nil)),
		intParam("latency-monitor-threshold", func(c *config) *int64 { return &c.latencyLimit }, 0, math.MaxInt64, applyLimits),
		boolParam("latency-tracking", func(c *config) *bool { return &c.latencyTracking }, nil),
		{name: "latency-tracking-info-percentiles", form: formWords, get: getPercentiles, setAll: setPercentiles},
		rangeParam("lfu-decay-time", func(c *config) *int64 { return &c.eviction.decayTime }, 0, applyEviction),
		rangeParam("lfu-log-factor", func(c *config) *int64 { return &c.eviction.logFactor }, 0, applyEviction),
		{name: "loglevel", get: func(c *config) string { return logLevels[c.logLevel].name }, set: setLogLevel, apply: applyLogLevel},
		alias("busy-reply-threshold", intParam("lua-time-limit", func(c *config) *int64 { return &c.busyReply }, 0, math.MaxInt64, nil)),
		{name: "maxclients", get: func(c *config) string { return strconv.Itoa(c.maxClients) }, set: setMaxClients},
		memoryParam("maxmemory", func(c *config) *int64 { return &c.maxMemory }, 0),
		{name: "maxmemory-clients", form: formMemory, get: getClientMemory, set: setClientMemory, apply: applyClientMemory},
		{name: "maxmemory-policy", get: func(c *config) string { return policyNames[c.eviction.policy] }, set: setPolicy, apply: applyEviction},
		rangeParam("maxmemory-samples", func(c *config) *int64 { return &c.eviction.samples }, 1, nil),
		eventsParam("notify-keyspace-events"),
		oomScoreParam("oom-score-adj-values"),
		{name: "port", frozen: "Unable to listen on this port: it cannot change while the server runs",
			get: func(c *config) string { return strconv.Itoa(c.port) }, set: setPort},
		boolParam("protected-mode", func(c *config) *bool { return &c.protected }, nil),
		memoryParam("proto-max-bulk-len", func(c *config) *int64 { return &c.maxBulk }, 1<<20),
		boolParam("rdbcompression", func(c *config) *bool { return &c.compress }, nil),
		replicaofParam("replicaof"),
		{name: "requirepass", secret: true, form: formOptional, get: func(c *config) string { return c.password }, set: func(c *config, v string) string { c.password = v; return "" },
			apply: func(s *Server) { s.users.SetPassword(s.config.password) }},
		{name: "save", form: formWords, get: func(c *config) string { return c.save }, setAll: setSave,
			only: func(c *config) string { return onlyValue("save", "", c.save) }},
		alias("replicaof", replicaofParam("slaveof")),
		intParam("slowlog-log-slower-than", func(c *config) *int64 { return &c.slowerThan }, -1, math.MaxInt64, applyLimits),
		intParam("slowlog-max-len", func(c *config) *int64 { return &c.slowlogLen }, 0, math.MaxInt64, applyLimits),
		{name: "timeout", get: getInt(func(c *config) *int64 { return &c.timeout }),
			set:   func(c *config, v string) string { return parseRange(v, 0, math.MaxInt32, &c.timeout) },
			apply: applyTimeout},
		intParam("tracking-table-max-keys", func(c *config) *int64 { return &c.trackedKeys }, 0, math.MaxInt64, applyTracking),
		fixed(&param{name: "unixsocket", form: formOptional, get: func(c *config) string { return c.unixSocket },
			set: func(c *config, v string) string { c.unixSocket = v; return "" }}),
	}...)
}

// encodingParams returns the limits of the encodings of values.
func encodingParams() []*param {
	return []*param{
		limitParam("hash-max-listpack-entries", func(c *config) *int64 { return &c.hashEntries }),
		memoryParam("hash-max-listpack-value", func(c *config) *int64 { return &c.hashValue }, 0),
		alias("hash-max-listpack-entries", limitParam("hash-max-ziplist-entries", func(c *config) *int64 { return &c.hashEntries })),
		alias("hash-max-listpack-value", memoryParam("hash-max-ziplist-value", func(c *config) *int64 { return &c.hashValue }, 0)),
		memoryParam("hll-sparse-max-bytes", func(c *config) *int64 { return &c.hllSparse }, 0),
		intParam("list-compress-depth", func(c *config) *int64 { return &c.listDepth }, 0, math.MaxInt32, nil),
		intParam("list-max-listpack-size", func(c *config) *int64 { return &c.listSize }, math.MinInt32, math.MaxInt32, applyListSize),
		alias("list-max-listpack-size", intParam("list-max-ziplist-size", func(c *config) *int64 { return &c.listSize }, math.MinInt32, math.MaxInt32, applyListSize)),
		limitParam("set-max-intset-entries", func(c *config) *int64 { return &c.setEntries }),
		memoryParam("stream-node-max-bytes", func(c *config) *int64 { return &c.streamBytes }, 0),
		limitParam("stream-node-max-entries", func(c *config) *int64 { return &c.streamEntries }),
		limitParam("zset-max-listpack-entries", func(c *config) *int64 { return &c.zsetEntries }),
		memoryParam("zset-max-listpack-value", func(c *config) *int64 { return &c.zsetValue }, 0),
		alias("zset-max-listpack-entries", limitParam("zset-max-ziplist-entries", func(c *config) *int64 { return &c.zsetEntries })),
		alias("zset-max-listpack-value", memoryParam("zset-max-ziplist-value", func(c *config) *int64 { return &c.zsetValue }, 0)),
	}
}

// applyDefrag makes the store move entries together, or not.
func applyDefrag(s *Server) {
	from := 0
	if s.config.defrag {
		from = int(max(s.config.defragFrom, 1))
	}
	s.space.store.SetDefrag(from)
}

func findParam(name string) *param {
	for _, p := range params {
		if strings.EqualFold(p.name, name) {
			return p
		}
	}
	return nil
}

func memoryParam(name string, field func(*config) *int64, least int64) *param {
	return &param{name: name, form: formMemory, get: getInt(field), set: func(c *config, v string) string {
		n, ok := parseMemory(v)
		if !ok {
			return "argument must be a memory value"
		}
		if n < least {
			return rangeError(least, math.MaxInt64)
		}
		*field(c) = n
		return ""
	}}
}

// limitParam is a number of elements.
func limitParam(name string, field func(*config) *int64) *param {
	return &param{name: name, get: getInt(field), set: func(c *config, v string) string {
		return parseRange(v, 0, math.MaxInt64, field(c))
	}}
}

// intParam is a parameter that is an integer.
func intParam(name string, field func(*config) *int64, least, most int64, apply func(*Server)) *param {
	return &param{name: name, get: getInt(field), apply: apply, set: func(c *config, v string) string {
		return parseRange(v, least, most, field(c))
	}}
}

// boolParam is a parameter that is yes or no.
func boolParam(name string, field func(*config) *bool, apply func(*Server)) *param {
	return &param{name: name, apply: apply,
		get: func(c *config) string { return yesNo(*field(c)) },
		set: func(c *config, v string) string { return parseYesNo(v, field(c)) }}
}

func parseYesNo(v string, to *bool) string {
	switch strings.ToLower(v) {
	case "yes":
		*to = true
	case "no":
		*to = false
	default:
		return errYesNo
	}
	return ""
}

func getInt(field func(*config) *int64) func(*config) string {
	return func(c *config) string { return strconv.FormatInt(*field(c), 10) }
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

const errYesNo = "argument must be 'yes' or 'no'"

func rangeError(least, most int64) string {
	return fmt.Sprintf("argument must be between %d and %d inclusive", least, most)
}

func parseRange(v string, least, most int64, to *int64) string {
	n, ok := resp.ParseInt([]byte(v))
	if !ok {
		return "argument couldn't be parsed into an integer"
	}
	if n < least || n > most {
		return rangeError(least, most)
	}
	*to = n
	return ""
}

// parseMemory parses an amount of memory as Redis does: 100, 100b, 1k (1000),
// 1kb (1024), and so on with m and g. Without digits the amount is 0.
func parseMemory(v string) (int64, bool) {
	digits := len(v) - len(strings.TrimLeft(v, "0123456789"))
	var unit float64
	switch strings.ToLower(v[digits:]) {
	case "", "b":
		unit = 1
	case "k":
		unit = 1e3
	case "kb":
		unit = 1 << 10
	case "m":
		unit = 1e6
	case "mb":
		unit = 1 << 20
	case "g":
		unit = 1e9
	case "gb":
		unit = 1 << 30
	default:
		return 0, false
	}
	if digits == 0 {
		return 0, true
	}
	n, err := strconv.ParseInt(v[:digits], 10, 64)
	if err != nil || float64(n)*unit > math.MaxInt64/2 {
		return math.MaxInt64, err == nil || digits < 128
	}
	return n * int64(unit), true
}

func setHz(c *config, v string) string {
	if failure := parseRange(v, 0, math.MaxInt32, &c.hz); failure != "" {
		return failure
	}
	c.hz = min(max(c.hz, 1), 500)
	return ""
}

func setPort(c *config, v string) string {
	var n int64
	failure := parseRange(v, 0, 65535, &n)
	if failure == "" {
		c.port = int(n)
	}
	return failure
}

func setMaxClients(c *config, v string) string {
	var n int64
	failure := parseRange(v, 1, math.MaxUint32, &n)
	if failure != "" {
		return failure
	}
	c.maxClients = int(min(n, math.MaxInt))
	if most, ok := c.clientsThatFit(); !ok && !c.reading { // Listen lowers the number that a file has
		return fmt.Sprintf("The operating system is not able to handle the specified number of clients, try with %d", most)
	}
	return ""
}

func setLogLevel(c *config, v string) string {
	for i, l := range logLevels {
		if strings.EqualFold(l.name, v) {
			c.logLevel = i
			return ""
		}
	}
	return "argument(s) must be one of the following: debug, verbose, notice, warning"
}

func applyLogLevel(s *Server) {
	if s.Level != nil {
		s.Level.Set(logLevels[s.config.logLevel].level)
	}
}

func applyTimeout(s *Server) {
	for _, c := range s.clients.list {
		c.idleChanged()
	}
}
