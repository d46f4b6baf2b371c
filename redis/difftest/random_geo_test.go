package difftest

import (
	"math/rand/v2"
	"strconv"
)

func init() {
	randomFamilies["geo"] = randomFamily{requests: func(r *rand.Rand) [][]string { return [][]string{randomGeo(r)} }}
}

// randomPlace returns a longitude and a latitude, often of one of a few places.
func randomPlace(r *rand.Rand) []string {
	if r.IntN(40) == 0 {
		return [][]string{{"x", "1"}, {"181", "1"}, {"1", "86"}, {"nan", "2"}, {"inf", "2"}, {"180", "85.05112878"},
			{"-180", "-85.05112878"}, {"0", "90"}}[r.IntN(8)]
	}
	some := rand.New(rand.NewPCG(uint64(r.IntN(30)), 0))
	near := []float64{0, 1e-4, 0.1, 5}[r.IntN(4)]
	lon := some.Float64()*350 - 175 + near*r.Float64()
	lat := some.Float64()*160 - 80 + near*r.Float64()
	return []string{strconv.FormatFloat(lon, 'g', -1, 64), strconv.FormatFloat(lat, 'g', -1, 64)}
}

func randomGeoKey(r *rand.Rand) string {
	return pick(r, "geo1", "geo1", "geo1", "geo2", "geo2", "none", "odd")
}

func randomGeoMember(r *rand.Rand) string { return "p" + strconv.Itoa(r.IntN(60)) }

func randomUnit(r *rand.Rand) string {
	return pick(r, "m", "km", "km", "ft", "mi", "KM", "Mi", "m", "km", "x")
}

func randomLength(r *rand.Rand) string {
	return pick(r, "0", "1", "100", "1.5", "5000", "20000", "1e6", "2e7", strconv.Itoa(r.IntN(3000)), "10", "300", "x", "-1")
}

// randomGeoOptions returns the options of a search. If it stores its result, most of them
// would be an error.
func randomGeoOptions(r *rand.Rand, store bool) (all []string) {
	if !store || r.IntN(20) == 0 {
		all = join(sometimes(r, 3, "WITHCOORD"), sometimes(r, 3, "WITHDIST"), sometimes(r, 4, "WITHHASH"))
	}
	return join(all, sometimes(r, 2, pick(r, "ASC", "DESC")),
		sometimes(r, 3, "COUNT", pick(r, "1", "2", "5", "100", "0", "-1", "x")), sometimes(r, 8, "ANY"), sometimes(r, 50, "bogus"))
}

func randomGeoShape(r *rand.Rand) []string {
	from := join("FROMMEMBER", randomGeoMember(r))
	if r.IntN(2) == 0 {
		from = join("FROMLONLAT", randomPlace(r))
	}
	by := join("BYRADIUS", randomLength(r), randomUnit(r))
	if r.IntN(2) == 0 {
		by = join("BYBOX", randomLength(r), randomLength(r), randomUnit(r))
	}
	switch r.IntN(40) {
	case 0:
		return from
	case 1:
		return by
	case 2:
		return join(from, by, from)
	}
	return join(by, from)
}

// nearKeys are the keys under which places near another are stored.
var nearKeys = []string{"near1", "near2"}

// randomGeo returns a request about places. Those that store distances are compared by
// their order alone: the last bit of a sine may differ.
func randomGeo(r *rand.Rand) []string {
	key, member := randomGeoKey(r), randomGeoMember(r)
	target := pick(r, nearKeys...)
	radius := []string{randomLength(r), randomUnit(r)}
	switch r.IntN(16) {
	case 0, 1, 2:
		all := join("GEOADD", pick(r, "geo1", "geo1", "geo2"), sometimes(r, 6, pick(r, "NX", "XX", "CH", "GT")), sometimes(r, 10, "XX"))
		for range 1 + r.IntN(5) {
			all = join(all, randomPlace(r), randomGeoMember(r))
		}
		return all
	case 3:
		return pickRequest(r, join("ZREM", key, member), join("ZADD", "odd", "1", "p1", "-5", "p2", "1e30", "p3", "inf", "p4"), join("SET", "none", "x"),
			join("DEL", "none"))
	case 4:
		return join("GEODIST", key, member, randomGeoMember(r), sometimes(r, 2, randomUnit(r)), sometimes(r, 40, "x"))
	case 5:
		return join("GEOHASH", key, member, randomGeoMember(r))
	case 6:
		return join("GEOPOS", key, member, randomGeoMember(r))
	case 7:
		return join("ZRANGE", target, "0", "-1")
	case 8:
		return join("GEOSEARCHSTORE", target, key, randomGeoShape(r), randomGeoOptions(r, true), sometimes(r, 2, "STOREDIST"))
	case 9:
		return join(pick(r, "GEORADIUS", "GEORADIUS", "GEORADIUS_RO"), key, randomPlace(r), radius, randomGeoOptions(r, true), pick(r, "STORE", "STOREDIST"), target)
	case 10, 11:
		return join(pick(r, "GEORADIUS", "GEORADIUS_RO"), key, randomPlace(r), radius, randomGeoOptions(r, false))
	case 12:
		return join(pick(r, "GEORADIUSBYMEMBER", "GEORADIUSBYMEMBER_RO"), key, member, radius, randomGeoOptions(r, false))
	}
	return join("GEOSEARCH", key, randomGeoShape(r), randomGeoOptions(r, false))
}
