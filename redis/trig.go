package redis

import "math"

// Sine, cosine and arcsine, rounded to the nearest float64 but for very few arguments. So
// are those of C's library, on which the distances that Redis stores depend to the last
// bit; those of package math have another last bit for every tenth argument or so. A
// precise function takes half a microsecond.

// double2 is the sum of two float64s, of which lo is less than half a unit of hi's last
// place: a number of 106 bits.
type double2 struct{ hi, lo float64 }

// sum2 returns a+b without an error.
func sum2(a, b float64) double2 {
	s := a + b
	t := s - a
	return double2{s, (a - (s - t)) + (b - t)}
}

// product2 returns a*b without an error.
func product2(a, b float64) double2 {
	p := a * b
	return double2{p, math.FMA(a, b, -p)}
}

func (x double2) add(y double2) double2 {
	s, t := sum2(x.hi, y.hi), sum2(x.lo, y.lo)
	s = sum2(s.hi, s.lo+t.hi)
	return sum2(s.hi, s.lo+t.lo)
}

func (x double2) negative() double2 { return double2{-x.hi, -x.lo} }

func (x double2) mul(y double2) double2 {
	p := product2(x.hi, y.hi)
	return sum2(p.hi, p.lo+(x.hi*y.lo+x.lo*y.hi))
}

func (x double2) div(d float64) double2 {
	q := x.hi / d
	p := product2(q, d)
	return sum2(q, ((x.hi-p.hi)-p.lo+x.lo)/d)
}

// series returns the sum 1 - x²/(n+1)(n+2) + x⁴/(n+1)(n+2)(n+3)(n+4) and so on, for x of
// at most π/4.
func series(square double2, n float64) double2 {
	one := double2{1, 0}
	sum := one
	for k := n + 26; k > n; k -= 2 {
		sum = one.add(square.mul(sum).div(k * (k - 1)).negative())
	}
	return sum
}

// quarter returns the rest of x, from -π/4 to π/4, when it is divided by π/2, and the
// quotient. x is at most 2π.
func quarter(x float64) (rest double2, quotient int) {
	const half0, half1, half2 = 1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33
	k := math.Round(x / half0)
	rest = sum2(x, -k*half0).add(product2(-k, half1)).add(double2{-k * half2, 0})
	return rest, int(k)
}

func sin2(x float64) double2 {
	r, k := quarter(x)
	return sinQuarter(r, k)
}

// sinQuarter returns the sine of r + k·π/2.
func sinQuarter(r double2, k int) (y double2) {
	square := r.mul(r)
	if k&1 == 0 {
		y = r.mul(series(square, 1))
	} else {
		y = series(square, 0)
	}
	if k&2 != 0 {
		y = y.negative()
	}
	return y
}

// preciseSin returns the sine of x, at most 2π.
func preciseSin(x float64) float64 { return sin2(x).hi }

// preciseCos returns the cosine of x, at most 2π.
func preciseCos(x float64) float64 {
	r, k := quarter(x)
	return sinQuarter(r, k+1).hi
}

// preciseAsin returns the arcsine of x, from 0 to 1, by a step of Newton's method.
func preciseAsin(x float64) float64 {
	y := math.Asin(x)
	cos := math.Cos(y)
	if x >= 1 || cos < 1e-8 {
		return y
	}
	miss := double2{x, 0}.add(sin2(y).negative())
	return y + miss.hi/cos
}
