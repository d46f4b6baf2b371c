package redis

import (
	"iter"
	"slices"
	"strings"
)

// prefixTree is a radix tree of prefixes. One walk along a key finds all of its prefixes, however
// many lengths the prefixes have:
//
//	root -- "user:" -- "1" -- "0"       user:, user:10 and user:12
//	                      \-- "2"
//
// Each node but the root has a prefix, or at least two children.
type prefixTree struct {
	root  *prefixNode // nil: no prefix was ever added
	count int
	size  int // bytes of all texts
}

type prefixNode struct {
	label    string  // the bytes from the parent to this node
	prefix   *prefix // whose text ends here; nil: none does
	firsts   string  // the first bytes of the children's labels, ascending
	children []*prefixNode
}

// next returns the child that a key goes on to, and how many bytes of the key lie above the child's
// children; nil: the tree ends. at bytes of the key lie above the node's children.
func (n *prefixNode) next(key []byte, at int) (child *prefixNode, end int) {
	if at == len(key) {
		return nil, at
	}
	i := strings.IndexByte(n.firsts, key[at])
	if i < 0 {
		return nil, at
	}
	child = n.children[i]
	if end = at + len(child.label); end > len(key) || string(key[at:end]) != child.label {
		return nil, at
	}
	return child, end
}

// find returns the prefix with a text, or nil.
func (t *prefixTree) find(text []byte) *prefix {
	for n, at := t.root, 0; n != nil; n, at = n.next(text, at) {
		if at == len(text) {
			return n.prefix
		}
	}
	return nil
}

// add adds a prefix whose text the tree does not have.
func (t *prefixTree) add(x *prefix) {
	if t.root == nil {
		t.root = new(prefixNode)
	}
	t.count++
	t.size += len(x.text)
	n, rest := t.root, x.text
	for rest != "" {
		i := strings.IndexByte(n.firsts, rest[0])
		if i < 0 {
			n = n.addChild(rest)
			break
		}
		child := n.children[i]
		same := commonLength(rest, child.label)
		if same < len(child.label) {
			child = child.split(same)
			n.children[i] = child
		}
		n, rest = child, rest[same:]
	}
	n.prefix = x
}

// addChild adds a node without a prefix. Labels are copies, since a part of a long text would keep
// all of it.
func (n *prefixNode) addChild(label string) *prefixNode {
	at := 0
	for at < len(n.firsts) && n.firsts[at] < label[0] {
		at++
	}
	child := &prefixNode{label: strings.Clone(label)}
	n.firsts = n.firsts[:at] + strings.Clone(label[:1]) + n.firsts[at:]
	n.children = slices.Insert(n.children, at, child)
	return child
}

// split puts a new node above this one, with the first bytes of its label.
func (n *prefixNode) split(at int) *prefixNode {
	above := &prefixNode{label: strings.Clone(n.label[:at]), firsts: strings.Clone(n.label[at : at+1]), children: []*prefixNode{n}}
	n.label = strings.Clone(n.label[at:])
	return above
}

// remove removes the prefix with a text, which the tree has.
func (t *prefixTree) remove(text string) {
	key := []byte(text)
	n, above, at := t.root, t.root, 0
	for at < len(key) {
		above = n
		n, at = n.next(key, at)
	}
	t.count--
	t.size -= len(text)
	n.prefix = nil
	if len(n.children) == 0 && n != t.root {
		above.removeChild(n)
		n = above
	}
	if len(n.children) == 1 && n.prefix == nil && n != t.root {
		child := n.children[0]
		child.label = n.label + child.label
		*n = *child
	}
}

func (n *prefixNode) removeChild(child *prefixNode) {
	at := slices.Index(n.children, child)
	n.firsts = n.firsts[:at] + n.firsts[at+1:]
	n.children = slices.Delete(n.children, at, at+1)
	if len(n.children) <= cap(n.children)/4 {
		n.children = slices.Clone(n.children) // there may have been 256
	}
}

// overlapping returns the first prefix that begins with a text, or with which the text begins; nil:
// there is none.
func (t *prefixTree) overlapping(text string) *prefix {
	n := t.root
	for n != nil && n.prefix == nil && len(n.children) > 0 {
		i := 0
		if text != "" {
			i = strings.IndexByte(n.firsts, text[0])
		}
		if i < 0 {
			return nil
		}
		n = n.children[i]
		same := commonLength(text, n.label)
		if same < len(n.label) && same < len(text) {
			return nil
		}
		text = text[same:]
	}
	if n == nil {
		return nil
	}
	return n.prefix
}

// all yields the prefixes in the order of their texts.
func (t *prefixTree) all() iter.Seq[*prefix] {
	return func(yield func(*prefix) bool) {
		if t.root != nil {
			t.root.all(yield)
		}
	}
}

// all calls itself at most maxPrefix times within itself: each node has a byte at least.
func (n *prefixNode) all(yield func(*prefix) bool) bool {
	if n.prefix != nil && !yield(n.prefix) {
		return false
	}
	for _, child := range n.children {
		if !child.all(yield) {
			return false
		}
	}
	return true
}

// commonLength returns how many bytes two texts have in common at their beginnings.
func commonLength(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
