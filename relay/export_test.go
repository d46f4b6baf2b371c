package relay

// Piped reports which of the connections receive into a pipe.
func (p *Pair) Piped() (a, b bool) { return p.a.piped, p.b.piped }
