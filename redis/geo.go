package redis

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/rondo-go/rondo/redis/zset"
)

// geoTarget finds the key behind the last word, which is STORE or STOREDIST.
func geoTarget(from int, word string) func([][]byte) (first, last int) {
	return func(args [][]byte) (first, last int) {
		first, last = noKeys(args)
		for i := from; i < len(args)-1; i++ {
			switch {
			case isWord(args[i], "COUNT"):
				i++
			case isWord(args[i], "STORE"), isWord(args[i], "STOREDIST"):
				if isWord(args[i], word) {
					first, last = i+1, i+1
				}
				i++
			}
		}
		return first, last
	}
}

func geoCommands() []*command {
	const group = "geo"
	const search = "O(N + log M), N the members in cells around the shape, M the size of the set"
	source := keySpec{flags: keyRO | keyAccess, first: 1, step: 1}
	radius := func(name string, arity int, since, summary, instead string, run func(*client, [][]byte)) *command {
		cmd := &command{name: name, arity: arity, flags: flagReadonly, cats: catGeo, keys: []keySpec{source},
			run: run, doc: doc{summary, since, group, search, "6.2.0", instead}}
		if since == "3.2.0" {
			cmd.flags = flagWrite | flagDenyOOM | flagMovableKeys
			for _, word := range []string{"STORE", "STOREDIST"} {
				cmd.keys = append(cmd.keys, keySpec{flags: keyOW | keyUpdate, first: -arity, step: 1, keyword: word, search: geoTarget(-arity, word)})
			}
		}
		return cmd
	}
	const near, nearMember = "Returns members in a circle.", "Returns members in a circle around a member."
	return []*command{
		{name: "geoadd", arity: -5, flags: flagWrite | flagDenyOOM, cats: catGeo, keys: oneKey(keyRW | keyUpdate), run: geoaddCommand,
			doc: doc{"Adds places to a sorted set, or moves them.", "3.2.0", group, "O(log N) for each place, N the size of the set", "", ""}},
		{name: "geodist", arity: -4, flags: flagReadonly, cats: catGeo, keys: oneKey(keyRO | keyAccess), run: geodistCommand,
			doc: doc{"Returns the distance between two members.", "3.2.0", group, "O(1)", "", ""}},
		{name: "geohash", arity: -2, flags: flagReadonly, cats: catGeo, keys: oneKey(keyRO | keyAccess), run: geohashCommand,
			doc: doc{"Returns the standard geohashes of members.", "3.2.0", group, "O(N), N the number of members asked for", "", ""}},
		{name: "geopos", arity: -2, flags: flagReadonly, cats: catGeo, keys: oneKey(keyRO | keyAccess), run: geoposCommand,
			doc: doc{"Returns the longitudes and latitudes of members.", "3.2.0", group, "O(N), N the number of members asked for", "", ""}},
		radius("georadius", -6, "3.2.0", near, "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument", georadiusCommand),
		radius("georadius_ro", -6, "3.2.10", near, "`GEOSEARCH` with the `BYRADIUS` argument", georadiusRoCommand),
		radius("georadiusbymember", -5, "3.2.0", nearMember,
			"`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments", georadiusbymemberCommand),
		radius("georadiusbymember_ro", -5, "3.2.10", nearMember,
			"`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments", georadiusbymemberRoCommand),
		{name: "geosearch", arity: -7, flags: flagReadonly, cats: catGeo, keys: oneKey(keyRO | keyAccess), run: geosearchCommand,
			doc: doc{"Returns members in a circle or a box.", "6.2.0", group, search, "", ""}},
		{name: "geosearchstore", arity: -8, flags: flagWrite | flagDenyOOM, cats: catGeo,
			keys: []keySpec{{flags: keyOW | keyUpdate, first: 1, step: 1}, {flags: keyRO | keyAccess, first: 2, step: 1}},
			run:  geosearchstoreCommand,
			doc:  doc{"Stores members in a circle or a box as a sorted set.", "6.2.0", group, search, "", ""}},
	}
}

// placeArg parses a longitude and a latitude.
func (c *client) placeArg(args [][]byte) (p geoPoint, ok bool) {
	if p.lon, ok = c.doubleArg(args[0], errNotFloat); !ok {
		return p, false
	}
	if p.lat, ok = c.doubleArg(args[1], errNotFloat); !ok {
		return p, false
	}
	if p.lon < -maxLon || p.lon > maxLon || p.lat < -maxLat || p.lat > maxLat {
		c.fail(fmt.Sprintf("ERR invalid longitude,latitude pair %s,%s", sixDigits(p.lon), sixDigits(p.lat)))
		return p, false
	}
	return p, true
}

// sixDigits is C's "%f".
func sixDigits(f float64) string {
	if f-f != 0 {
		return string(zset.AppendScore(nil, f))
	}
	return strconv.FormatFloat(f, 'f', 6, 64)
}

// unitArg parses a unit, and returns it in meters.
func (c *client) unitArg(arg []byte) (meters float64, ok bool) {
	switch {
	case isWord(arg, "M"):
		return 1, true
	case isWord(arg, "KM"):
		return 1000, true
	case isWord(arg, "FT"):
		return 0.3048, true
	case isWord(arg, "MI"):
		return 1609.34, true
	}
	c.fail("ERR unsupported unit provided. please use M, KM, FT, MI")
	return 0, false
}

func geoaddCommand(c *client, args [][]byte) {
	var o zaddOptions
	places := args[2:]
	for option := true; option && len(places) > 0; {
		switch arg := places[0]; {
		case isWord(arg, "NX"):
			o.nx = true
		case isWord(arg, "XX"):
			o.xx = true
		case isWord(arg, "CH"):
			o.ch = true
		default:
			option = false
			continue
		}
		places = places[1:]
	}
	if len(places)%3 != 0 || o.nx && o.xx {
		c.fail(errSyntax)
		return
	}
	var pairs [][]byte
	for ; len(places) > 0; places = places[3:] {
		p, ok := c.placeArg(places)
		if !ok {
			return
		}
		score := strconv.AppendUint(nil, mercatorRange.hash(p, geoSteps).bits, 10)
		pairs = append(pairs, score, places[2])
	}
	c.zadd(args[1], pairs, &o)
}

func geodistCommand(c *client, args [][]byte) {
	unit := 1.0
	if len(args) > 5 {
		c.fail(errSyntax)
		return
	}
	if len(args) == 5 {
		var ok bool
		if unit, ok = c.unitArg(args[4]); !ok {
			return
		}
	}
	s, ok := c.readZset(args[1])
	if !ok {
		return
	}
	a, ok1 := s.Score(args[2])
	b, ok2 := s.Score(args[3])
	if !ok1 || !ok2 {
		c.Null()
		return
	}
	c.distance(geoDecode(a).preciseDistance(geoDecode(b)) / unit)
}

// near adds the distance of a member that a search has found, as its reply.
func (c *client) near(shape *geoShape, x *geoFound) {
	d := x.distance / shape.unit
	if _, rest := math.Modf(d * 1e4); math.Abs(rest-0.5) < 0.01 { // rounding needs all digits
		d = shape.center.preciseDistance(x.place) / shape.unit
	}
	c.distance(d)
}

// distance adds a distance, which is not negative, with four decimals.
func (c *client) distance(d float64) {
	var text [64]byte
	c.Bulk(appendDistance(text[:0], d))
}

// appendDistance appends d with four decimals. As Redis does, it rounds the product of d and
// 10,000, to the even neighbour if it is halfway: of a large distance that product has been rounded
// itself.
func appendDistance(b []byte, d float64) []byte {
	n := int64(math.RoundToEven(d * 1e4))
	b = strconv.AppendInt(b, n/1e4, 10)
	point := len(b)
	b = strconv.AppendInt(b, 1e4+n%1e4, 10) // a digit more than the decimals
	b[point] = '.'
	return b
}

func geohashCommand(c *client, args [][]byte) {
	s, ok := c.readZset(args[1])
	if !ok {
		return
	}
	c.Array(len(args) - 2)
	for _, member := range args[2:] {
		if score, ok := s.Score(member); ok {
			c.BulkString(geohashText(geoDecode(score)))
		} else {
			c.Null()
		}
	}
}

func geoposCommand(c *client, args [][]byte) {
	s, ok := c.readZset(args[1])
	if !ok {
		return
	}
	c.Array(len(args) - 2)
	for _, member := range args[2:] {
		if score, ok := s.Score(member); ok {
			c.place(geoDecode(score))
		} else {
			c.NullArray()
		}
	}
}

// place adds a longitude and a latitude.
func (c *client) place(p geoPoint) {
	c.Array(2)
	c.coordinate(p.lon)
	c.coordinate(p.lat)
}

// coordinate adds a number with at most 17 decimals, a double in RESP3.
func (c *client) coordinate(f float64) {
	var buf [64]byte
	text := strconv.AppendFloat(buf[:0], f, 'f', 17, 64)
	text = bytes.TrimRight(text, "0")
	text = bytes.TrimSuffix(text, []byte("."))
	if string(text) == "-0" {
		text = text[1:]
	}
	if c.Proto != 3 {
		c.Bulk(text)
		return
	}
	c.B = append(append(append(c.B, ','), text...), "\r\n"...)
}

// geoFound is a member that a search has found.
type geoFound struct {
	member   string
	place    geoPoint
	score    float64
	distance float64 // about, in meters
}

// find returns the members of a set within a shape. It stops when it has limit of them, if
// limit is not 0.
func (s *geoShape) find(set *zset.Set, limit int64) (found []geoFound) {
	var last geohash
	for _, cell := range s.cells() {
		if cell.steps == 0 || cell == last {
			continue
		}
		low, high := cell.scores()
		for member, score := range set.From(set.Rank(zset.AtScore(low, false))) {
			if score >= high {
				break
			}
			p := geoDecode(score)
			if distance, ok := s.contains(p); ok {
				found = append(found, geoFound{string(member), p, score, distance})
				if limit > 0 && int64(len(found)) >= limit {
					return found
				}
			}
		}
		last = cell
	}
	return found
}

// sortFound sorts by distance, at least as many as are wanted.
func sortFound(found []geoFound, wanted int64, descending bool) {
	compare := func(a, b *geoFound) int {
		switch order := cmp.Compare(a.distance, b.distance); {
		case descending:
			return -order
		default:
			return order
		}
	}
	if wanted < int64(len(found)) {
		partialSort(found, int(wanted), compare)
		return
	}
	slices.SortStableFunc(found, func(a, b geoFound) int { return compare(&a, &b) })
}

// geoSource returns the sorted set of a search, and whether it exists.
func (c *client) geoSource(key []byte) (s zset.Set, exists, ok bool) {
	it := c.db.read(key)
	if !c.isZset(it) {
		return s, false, false
	}
	return zset.Open(c.db.keys, it), it.Exists(), true
}

// storeFound makes the results of a search the sorted set of a key.
func (c *client) storeFound(key []byte, found []geoFound, shape *geoShape, distances bool, event string) {
	var all scoredMembers
	for _, x := range found {
		score := x.score
		if distances {
			score = shape.center.preciseDistance(x.place) / shape.unit
		}
		all = append(all, scoredMember{x.member, score})
	}
	all.sort()
	c.storeZset(key, all, event)
}
