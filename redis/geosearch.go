package redis

import (
	"cmp"
	"math"

	"github.com/rondo-go/rondo/redis/zset"
)

// geoSearch is what GEOSEARCH and GEORADIUS, and their relatives, have for arguments.
type geoSearch struct {
	kind   geoKind
	set    zset.Set
	exists bool
	shape  geoShape

	target    []byte // store the result there
	distances bool   // store distances, not geohashes

	member, place      bool // the center is known
	radius, box        bool // the shape is known
	withDist, withHash bool
	withCoord, any     bool
	sorted, descending bool
	count              int64 // 0: all
}

// geoKind says which command a search is of.
type geoKind struct {
	search bool // GEOSEARCH or GEOSEARCHSTORE
	store  bool // GEOSEARCHSTORE, or a GEORADIUS that may store
}

func georadiusCommand(c *client, args [][]byte) { c.georadius(args, false, true) }

func georadiusRoCommand(c *client, args [][]byte) { c.georadius(args, false, false) }

func georadiusbymemberCommand(c *client, args [][]byte) { c.georadius(args, true, true) }

func georadiusbymemberRoCommand(c *client, args [][]byte) { c.georadius(args, true, false) }

// georadius implements the commands before GEOSEARCH, whose first arguments have fixed
// places.
func (c *client) georadius(args [][]byte, byMember, store bool) {
	g := geoSearch{kind: geoKind{store: store}}
	var ok bool
	if g.set, g.exists, ok = c.geoSource(args[1]); !ok {
		return
	}
	rest := args[5:]
	if byMember {
		ok = !g.exists || g.atMember(c, args[2]) && g.parseRadius(c, args[3:])
	} else {
		rest = args[6:]
		g.shape.center, ok = c.placeArg(args[2:])
		ok = ok && g.parseRadius(c, args[4:])
	}
	if ok && g.parse(c, rest) {
		g.run(c, args[0])
	}
}

func geosearchCommand(c *client, args [][]byte) { c.geosearch(args, nil, args[1:]) }

func geosearchstoreCommand(c *client, args [][]byte) { c.geosearch(args, args[1], args[2:]) }

func (c *client) geosearch(args [][]byte, target []byte, rest [][]byte) {
	g := geoSearch{kind: geoKind{search: true, store: target != nil}, target: target}
	var ok bool
	if g.set, g.exists, ok = c.geoSource(rest[0]); ok && g.parse(c, rest[1:]) {
		g.run(c, args[0])
	}
}

// atMember makes a member the center.
func (g *geoSearch) atMember(c *client, member []byte) bool {
	score, ok := g.set.Score(member)
	if !ok {
		c.fail("ERR could not decode requested zset member")
		return false
	}
	g.shape.center = geoDecode(score)
	return true
}

// parseRadius reads a radius and its unit.
func (g *geoSearch) parseRadius(c *client, args [][]byte) (ok bool) {
	if g.shape.radius, ok = c.doubleArg(args[0], "ERR need numeric radius"); !ok {
		return false
	}
	if g.shape.radius < 0 {
		c.fail("ERR radius cannot be negative")
		return false
	}
	g.shape.unit, ok = c.unitArg(args[1])
	return ok
}

// parseBox reads a width, a height and their unit.
func (g *geoSearch) parseBox(c *client, args [][]byte) (ok bool) {
	if g.shape.width, ok = c.doubleArg(args[0], "ERR need numeric width"); !ok {
		return false
	}
	if g.shape.height, ok = c.doubleArg(args[1], "ERR need numeric height"); !ok {
		return false
	}
	if g.shape.width < 0 || g.shape.height < 0 {
		c.fail("ERR height or width cannot be negative")
		return false
	}
	g.shape.box = true
	g.shape.unit, ok = c.unitArg(args[2])
	return ok
}

// parse reads options.
func (g *geoSearch) parse(c *client, args [][]byte) bool {
	for len(args) > 0 {
		used := 1
		switch arg := args[0]; {
		case isWord(arg, "WITHDIST"):
			g.withDist = true
		case isWord(arg, "WITHHASH"):
			g.withHash = true
		case isWord(arg, "WITHCOORD"):
			g.withCoord = true
		case isWord(arg, "ANY"):
			g.any = true
		case isWord(arg, "ASC"):
			g.sorted, g.descending = true, false
		case isWord(arg, "DESC"):
			g.sorted, g.descending = true, true
		case isWord(arg, "COUNT") && len(args) > 1:
			used = 2
			var ok bool
			if g.count, ok = c.int64Arg(args[1]); !ok {
				return false
			}
			if g.count <= 0 {
				c.fail("ERR COUNT must be > 0")
				return false
			}
		default:
			var ok bool
			if g.kind.search {
				used, ok = g.parsePlace(c, args)
			} else {
				used, ok = g.parseTarget(args)
			}
			if !ok {
				return false
			}
			if used == 0 {
				c.fail(errSyntax)
				return false
			}
		}
		args = args[used:]
	}
	return true
}

// parseTarget reads an option that only GEORADIUS has, and returns how many arguments it
// takes.
func (g *geoSearch) parseTarget(args [][]byte) (used int, ok bool) {
	if !g.kind.store || len(args) < 2 {
		return 0, true
	}
	switch {
	case isWord(args[0], "STORE"):
		g.distances = false
	case isWord(args[0], "STOREDIST"):
		g.distances = true
	default:
		return 0, true
	}
	g.target = args[1]
	return 2, true
}

// parsePlace reads an option that only GEOSEARCH has, and returns how many arguments it
// takes. ok is false if it has replied with an error.
func (g *geoSearch) parsePlace(c *client, args [][]byte) (used int, ok bool) {
	switch arg := args[0]; {
	case isWord(arg, "FROMMEMBER") && len(args) > 1 && !g.place:
		g.member = true
		return 2, !g.exists || g.atMember(c, args[1])
	case isWord(arg, "FROMLONLAT") && len(args) > 2 && !g.member:
		g.place = true
		g.shape.center, ok = c.placeArg(args[1:])
		return 3, ok
	case isWord(arg, "BYRADIUS") && len(args) > 2 && !g.box:
		g.radius = true
		return 3, g.parseRadius(c, args[1:])
	case isWord(arg, "BYBOX") && len(args) > 3 && !g.radius:
		g.box = true
		return 4, g.parseBox(c, args[1:])
	case isWord(arg, "STOREDIST") && g.kind.store:
		g.distances = true
		return 1, true
	}
	return 0, true
}

// conflict returns why the options do not go together, or "". name is the command as the
// client spells it.
func (g *geoSearch) conflict(name []byte) string {
	switch {
	case g.target != nil && (g.withDist || g.withHash || g.withCoord):
		what := "STORE option in GEORADIUS"
		if g.kind.search {
			what = "GEOSEARCHSTORE"
		}
		return "ERR " + what + " is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
	case g.kind.search && !g.member && !g.place:
		return "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for " + string(name)
	case g.kind.search && !g.radius && !g.box:
		return "ERR exactly one of BYRADIUS and BYBOX can be specified for " + string(name)
	case g.any && g.count == 0:
		return "ERR the ANY argument requires COUNT argument"
	}
	return ""
}

// run searches, and stores the result or replies with it.
func (g *geoSearch) run(c *client, name []byte) {
	if conflict := g.conflict(name); conflict != "" {
		c.fail(conflict)
		return
	}
	var found []geoFound
	if g.exists {
		limit := int64(0)
		if g.any {
			limit = g.count
		}
		found = g.shape.find(&g.set, limit)
	}
	if g.sorted || g.count > 0 && !g.any {
		sortFound(found, cmp.Or(g.count, math.MaxInt64), g.descending)
	}
	if g.count > 0 && g.count < int64(len(found)) {
		found = found[:g.count]
	}
	if g.target != nil {
		event := "georadiusstore"
		if g.kind.search {
			event = "geosearchstore"
		}
		c.storeFound(g.target, found, &g.shape, g.distances, event)
		return
	}
	c.Array(len(found))
	for i := range found {
		g.reply(c, &found[i])
	}
}

// reply adds a result.
func (g *geoSearch) reply(c *client, x *geoFound) {
	n := 1
	for _, with := range [...]bool{g.withDist, g.withHash, g.withCoord} {
		if with {
			n++
		}
	}
	if n > 1 {
		c.Array(n)
	}
	c.BulkString(x.member)
	if g.withDist {
		c.near(&g.shape, x)
	}
	if g.withHash {
		c.Int(int64(x.score))
	}
	if g.withCoord {
		c.place(x.place)
	}
	c.spill()
}
