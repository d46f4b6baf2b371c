package acl

// places finds the texts of a list that only grows. A short list is searched: it has no places.
// Without them a line of many rules would take time by the square of their number.
type places map[string]int

// fewRules is the length of a list that is searched.
const fewRules = 32

// find returns the index of a text among n, of which at returns one. If the list does not have
// the text, the caller appends it.
func (p *places) find(text string, n int, at func(int) string) (i int, has bool) {
	if n < fewRules {
		for i := range n {
			if at(i) == text {
				return i, true
			}
		}
		return 0, false
	}
	if *p == nil {
		*p = make(places, 2*n)
		for i := range n {
			(*p)[at(i)] = i
		}
	}
	if i, has = (*p)[text]; !has {
		(*p)[text] = n
	}
	return i, has
}
