package redis

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// The examples of Redis's documentation.
func TestGeo(t *testing.T) {
	newBench(t, &Server{}).script(`
		GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :2
		GEODIST Sicily Palermo Catania => $11 166274.1516
		GEODIST Sicily Palermo Catania km => $8 166.2742
		GEODIST Sicily Palermo Catania mi => $8 103.3182
		GEODIST Sicily Palermo none => $-1
		GEODIST Sicily Palermo Catania x => -ERR unsupported unit provided. please use M, KM, FT, MI
		GEOHASH Sicily Palermo Catania none => *3 $11 sqc8b49rny0 $11 sqdtr74hyu0 $-1
		GEOPOS Sicily Palermo none => *2 *2 $20 13.36138933897018433 $20 38.11555639549629859 *-1
		GEORADIUS Sicily 15 37 200 km ASC => *2 $7 Catania $7 Palermo
		GEORADIUS Sicily 15 37 200 km WITHDIST DESC COUNT 1 => *1 *2 $7 Palermo $8 190.4424
		GEORADIUSBYMEMBER Sicily Palermo 100 km => *1 $7 Palermo
		GEOADD Sicily 12.758489 38.788135 edge1 17.241510 38.788135 edge2 => :2
		GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 km ASC WITHHASH => *4 *2 $7 Catania :3479447370796909 *2 $7 Palermo :3479099956230698 *2 $5 edge2 :3481342659049484 *2 $5 edge1 :3479273021651468
		GEOSEARCHSTORE near Sicily FROMLONLAT 15 37 BYRADIUS 200 km STOREDIST => :2
		ZRANGE near 0 -1 => *2 $7 Catania $7 Palermo
		GEORADIUS Sicily 15 37 1 m STORE near => :0
		EXISTS near => :0
		GEOADD Sicily 200 1 x => -ERR invalid longitude,latitude pair 200.000000,1.000000
		GEOADD Sicily NX XX 1 1 x => -ERR syntax error
		GEORADIUS Sicily 15 37 -1 km => -ERR radius cannot be negative
		GEORADIUS_RO Sicily 15 37 1 km STORE near => -ERR syntax error
		GEORADIUS Sicily 15 37 1 km STORE near WITHDIST => -ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options
		GEOSEARCH Sicily FROMMEMBER none BYRADIUS 1 km => -ERR could not decode requested zset member
		GEOSEARCH Sicily BYRADIUS 1 km ASC DESC => -ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GEOSEARCH
		GEOSEARCH Sicily FROMMEMBER Palermo ASC ASC ASC => -ERR exactly one of BYRADIUS and BYBOX can be specified for GEOSEARCH
		GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 1 km ANY => -ERR the ANY argument requires COUNT argument
		GEOSEARCH none FROMMEMBER x BYRADIUS 1 km => *0
	`)
}

// A partial sort has the same first elements as a whole one, but for their order if equal.
func TestAppendDistance(t *testing.T) {
	for _, c := range []struct {
		d    float64
		text string
	}{
		{0, "0.0000"},
		{0.00004, "0.0000"},
		{0.00006, "0.0001"},
		{1, "1.0000"},
		{12.3456789, "12.3457"},
		{999.99996, "1000.0000"},
		{14693572.743250001, "14693572.7432"}, // redis-server 7.0.15; printf has ...33
		{20015114.3521, "20015114.3521"},
	} {
		if got := string(appendDistance(nil, c.d)); got != c.text {
			t.Errorf("%v: %s, want %s", c.d, got, c.text)
		}
	}
}

func TestPartialSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		a := make([]int, rng.IntN(200))
		for i := range a {
			a[i] = rng.IntN(1 + rng.IntN(100))
		}
		k := rng.IntN(len(a) + 1)
		want := slices.Sorted(slices.Values(a))
		partialSort(a, k, func(x, y *int) int { return cmp.Compare(*x, *y) })
		if !slices.Equal(a[:k], want[:k]) {
			t.Fatalf("the first %d are %v, want %v", k, a[:k], want[:k])
		}
		slices.Sort(a)
		if !slices.Equal(a, want) {
			t.Fatal("elements were lost")
		}
	}
}
