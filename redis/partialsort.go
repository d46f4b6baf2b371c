package redis

// partialSort sorts elements so far that the first k are in order, k of them and no
// others. It is the quicksort of Bentley and McIlroy ("Engineering a sort function",
// 1993), which leaves out the parts behind k: Redis uses it for the first results of many,
// and so decides by it how equal elements are ordered.
func partialSort[T any](a []T, k int, compare func(x, y *T) int) {
	for k > 0 && len(a) > 1 {
		if len(a) < 7 {
			insertionSort(a, compare)
			return
		}
		low, high := partition(a, compare)
		partialSort(a[:low], k, compare)
		a, k = a[high:], k-high
	}
}

func insertionSort[T any](a []T, compare func(x, y *T) int) {
	for i := range a {
		for j := i; j > 0 && compare(&a[j-1], &a[j]) > 0; j-- {
			a[j-1], a[j] = a[j], a[j-1]
		}
	}
}

// partition puts the elements below a pivot before low, those above it from high on, and
// those equal to it between.
func partition[T any](a []T, compare func(x, y *T) int) (low, high int) {
	n := len(a)
	swap := func(i, j int) { a[i], a[j] = a[j], a[i] }
	swap(0, pivot(a, compare))
	// From the front: equal elements up to equalLeft, smaller ones up to left. From the end:
	// equal elements behind equalRight, greater ones behind right.
	equalLeft, left, right, equalRight := 1, 1, n-1, n-1
	for {
		for ; left <= right; left++ {
			c := compare(&a[left], &a[0])
			if c > 0 {
				break
			}
			if c == 0 {
				swap(equalLeft, left)
				equalLeft++
			}
		}
		for ; left <= right; right-- {
			c := compare(&a[right], &a[0])
			if c < 0 {
				break
			}
			if c == 0 {
				swap(right, equalRight)
				equalRight--
			}
		}
		if left > right {
			break
		}
		swap(left, right)
		left++
		right--
	}
	// The equal elements go to the middle.
	r := min(equalLeft, left-equalLeft)
	for i := range r {
		swap(i, left-r+i)
	}
	r = min(equalRight-right, n-1-equalRight)
	for i := range r {
		swap(left+i, n-r+i)
	}
	return left - equalLeft, n - (equalRight - right)
}

// pivot returns the index of an element that is probably in the middle.
func pivot[T any](a []T, compare func(x, y *T) int) int {
	n := len(a)
	first, middle, last := 0, n/2, n-1
	if n == 7 {
		return middle
	}
	median := func(i, j, k int) int {
		switch {
		case compare(&a[i], &a[j]) < 0:
			if compare(&a[j], &a[k]) < 0 {
				return j
			} else if compare(&a[i], &a[k]) < 0 {
				return k
			}
			return i
		case compare(&a[j], &a[k]) > 0:
			return j
		case compare(&a[i], &a[k]) < 0:
			return i
		}
		return k
	}
	if n > 40 {
		d := n / 8
		first = median(first, first+d, first+2*d)
		middle = median(middle-d, middle, middle+d)
		last = median(last-2*d, last-d, last)
	}
	return median(first, middle, last)
}
