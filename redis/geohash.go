package redis

import "math"

// A geoPoint is a place, in degrees.
type geoPoint struct{ lon, lat float64 }

const (
	maxLon = 180.0
	maxLat = 85.05112878 // of EPSG:3857: the poles have no hash
	// geoSteps are the bits of each coordinate in a score: 52 together, which a float64
	// holds exactly.
	geoSteps = 26

	earthRadius = 6372797.560856 // meters
	mercatorMax = 20037726.37    // likewise: half of the map's width
)

// A geohash names a cell of the map: the bits of longitude and latitude by turns, steps of
// each. The zero geohash names none.
type geohash struct {
	bits  uint64
	steps int
}

// geoRange is what the coordinates are parts of.
type geoRange struct{ lon, lat float64 }

var mercatorRange = geoRange{maxLon, maxLat}

// hash returns the cell of a place.
func (r geoRange) hash(p geoPoint, steps int) geohash {
	lat := (p.lat + r.lat) / (r.lat + r.lat) * float64(uint64(1)<<steps)
	lon := (p.lon + r.lon) / (r.lon + r.lon) * float64(uint64(1)<<steps)
	return geohash{spread(uint32(lat)) | spread(uint32(lon))<<1, steps}
}

// spread moves the bits of x to the even positions.
func spread(x uint32) uint64 {
	v := uint64(x)
	v = (v | v<<16) & 0x0000FFFF0000FFFF
	v = (v | v<<8) & 0x00FF00FF00FF00FF
	v = (v | v<<4) & 0x0F0F0F0F0F0F0F0F
	v = (v | v<<2) & 0x3333333333333333
	return (v | v<<1) & 0x5555555555555555
}

// gatherBits undoes spread.
func gatherBits(v uint64) uint32 {
	v &= 0x5555555555555555
	v = (v | v>>1) & 0x3333333333333333
	v = (v | v>>2) & 0x0F0F0F0F0F0F0F0F
	v = (v | v>>4) & 0x00FF00FF00FF00FF
	v = (v | v>>8) & 0x0000FFFF0000FFFF
	return uint32(v | v>>16)
}

// geoArea is a part of the map.
type geoArea struct{ min, max geoPoint }

// area returns a cell's area.
func (h geohash) area() geoArea {
	lat, lon := gatherBits(h.bits), gatherBits(h.bits>>1)
	return geoArea{
		geoPoint{h.edge(lon, maxLon), h.edge(lat, maxLat)},
		geoPoint{h.edge(lon+1, maxLon), h.edge(lat+1, maxLat)},
	}
}

// edge returns where cells that a coordinate counts begin. The conversions keep the
// compiler from joining a product and a sum, which rounds otherwise.
func (h geohash) edge(i uint32, most float64) float64 {
	return -most + float64(float64(i)/float64(uint64(1)<<h.steps)*(most+most))
}

// geoDecode returns the place of a score: the middle of its cell.
func geoDecode(score float64) geoPoint {
	a := geohash{geoBits(score), geoSteps}.area()
	return geoPoint{
		max(-maxLon, min(maxLon, (a.min.lon+a.max.lon)/2)),
		max(-maxLat, min(maxLat, (a.min.lat+a.max.lat)/2)),
	}
}

// geoBits returns a score as an integer. Scores that GEOADD does not make become what a
// C program makes of them on x86.
func geoBits(score float64) uint64 {
	switch {
	case score >= 1<<64:
		return 0
	case score >= 0:
		return uint64(score)
	case score >= -1<<63:
		return uint64(int64(score))
	}
	return 1 << 63
}

// scores returns the scores of the places in a cell: from min on, below max.
func (h geohash) scores() (min, max float64) {
	shift := 2 * (geoSteps - h.steps)
	return float64(h.bits << shift), float64((h.bits + 1) << shift)
}

// moved returns the cell so many columns to the east and rows to the north. It goes around
// the map.
func (h geohash) moved(columns, rows int) geohash {
	const even = 0x5555555555555555
	lats := uint64(even) >> (64 - 2*h.steps)
	lons := lats << 1
	// The bits of one coordinate carry to each other over those of the other.
	x, y := h.bits&(even<<1), h.bits&even
	switch columns {
	case 1:
		x = ((x | lats) + 1) & lons
	case -1:
		x = ((x | lats) - (lats + 1)) & lons
	}
	switch rows {
	case 1:
		y = ((y | lons) + 1) & lats
	case -1:
		y = ((y | lons) - (lons + 1)) & lats
	}
	return geohash{x | y, h.steps}
}

// geohashText returns the standard geohash of a place, as geohash.org has it. The last of
// 11 characters has no bits.
func geohashText(p geoPoint) string {
	const alphabet = "0123456789bcdefghjkmnpqrstuvwxyz"
	h := geoRange{180, 90}.hash(p, geoSteps)
	var text [11]byte
	for i := range 10 {
		text[i] = alphabet[h.bits>>(52-5*(i+1))&31]
	}
	text[10] = alphabet[0]
	return string(text[:])
}

// degree is a degree in radians, rounded twice as in C.
const degree = float64(math.Pi) / 180

func radians(degrees float64) float64 { return degrees * degree }
func degrees(radians float64) float64 { return radians / degree }

// latDistance returns the distance of two latitudes on one meridian, in meters.
func latDistance(a, b float64) float64 {
	return earthRadius * math.Abs(radians(b)-radians(a))
}

// distance returns the distance of two places on a sphere, in meters.
func (p geoPoint) distance(q geoPoint) float64 {
	return p.haversine(q, math.Sin, math.Cos, math.Asin)
}

// preciseDistance is distance with the same rounding as Redis's, for replies.
func (p geoPoint) preciseDistance(q geoPoint) float64 {
	return p.haversine(q, preciseSin, preciseCos, preciseAsin)
}

func (p geoPoint) haversine(q geoPoint, sin, cos, asin func(float64) float64) float64 {
	v := sin((radians(q.lon) - radians(p.lon)) / 2)
	if v == 0 {
		return latDistance(p.lat, q.lat)
	}
	lat1, lat2 := radians(p.lat), radians(q.lat)
	u := sin((lat2 - lat1) / 2)
	a := float64(u*u) + float64(cos(lat1)*cos(lat2)*v*v)
	return 2 * earthRadius * asin(math.Sqrt(a))
}

// A geoShape is what a search covers: a circle or a box.
type geoShape struct {
	center        geoPoint
	box           bool
	radius        float64 // in units, as the fields below
	width, height float64
	unit          float64 // in meters
}

// contains returns about the distance of a place from the center; ok is false if it lies
// outside.
func (s *geoShape) contains(p geoPoint) (distance float64, ok bool) {
	if !s.box {
		return s.center.within(p, s.radius*s.unit)
	}
	if latDistance(p.lat, s.center.lat) > s.height*s.unit/2 {
		return 0, false
	}
	if _, ok := p.within(geoPoint{s.center.lon, p.lat}, s.width*s.unit/2); !ok {
		return 0, false
	}
	return s.center.distance(p), true
}

// within reports whether a place has at most some distance, and returns the distance. It
// is precise where that matters.
func (p geoPoint) within(q geoPoint, most float64) (distance float64, ok bool) {
	distance = p.distance(q)
	if math.Abs(distance-most) <= most*1e-12 {
		distance = p.preciseDistance(q)
	}
	return distance, distance <= most
}

// bounds returns an area around the shape.
func (s *geoShape) bounds() geoArea {
	height, width := s.unit*s.radius, s.unit*s.radius
	if s.box {
		height, width = s.unit*(s.height/2), s.unit*(s.width/2)
	}
	lat := degrees(height / earthRadius)
	wide := s.center.lat + lat // the side that is nearer to a pole
	if s.center.lat < 0 {
		wide = s.center.lat - lat
	}
	lon := degrees(width / earthRadius / math.Cos(radians(wide)))
	c := s.center
	return geoArea{geoPoint{c.lon - lon, c.lat - lat}, geoPoint{c.lon + lon, c.lat + lat}}
}

// steps estimates the size of the cells of which nine cover the shape.
func (s *geoShape) steps() int {
	radius := s.radius
	if s.box {
		w, h := s.width/2, s.height/2
		radius = math.Sqrt(float64(w*w) + float64(h*h))
	}
	radius *= s.unit
	if radius == 0 {
		return geoSteps
	}
	steps := 1
	for ; radius < mercatorMax; steps++ {
		radius *= 2
	}
	steps -= 2
	if lat := math.Abs(s.center.lat); lat > 80 {
		steps -= 2
	} else if lat > 66 {
		steps--
	}
	return max(1, min(steps, geoSteps))
}

// cells returns the cells that cover the shape, in Redis's order: that of the center, and
// neighbors in eight directions. Those that are not needed are zero.
func (s *geoShape) cells() [9]geohash {
	bounds, steps := s.bounds(), s.steps()
	center := mercatorRange.hash(s.center, steps)
	if steps > 1 && (center.moved(0, 1).area().max.lat < bounds.max.lat ||
		center.moved(0, -1).area().min.lat > bounds.min.lat ||
		center.moved(1, 0).area().max.lon < bounds.max.lon ||
		center.moved(-1, 0).area().min.lon > bounds.min.lon) {
		steps--
		center = mercatorRange.hash(s.center, steps)
	}
	area := center.area()
	cells := [9]geohash{center}
	for i, d := range [...]struct{ columns, rows int }{{0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}} {
		needless := d.rows < 0 && area.min.lat < bounds.min.lat || d.rows > 0 && area.max.lat > bounds.max.lat ||
			d.columns < 0 && area.min.lon < bounds.min.lon || d.columns > 0 && area.max.lon > bounds.max.lon
		if steps < 2 || !needless {
			cells[i+1] = center.moved(d.columns, d.rows)
		}
	}
	return cells
}
