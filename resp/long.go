package resp

const (
	// LongArgument is the least length of an argument that gets memory of its
	// own from a [LongRequest].
	LongArgument = 16 << 10

	// longRequest is how long an incomplete request is when it pays to copy its
	// arguments one by one.
	longRequest = 64 << 10

	// argumentOverhead is what an argument costs beside its bytes.
	argumentOverhead = 24

	// A long argument's memory begins with longStart bytes and then grows
	// longGrowth times at once, to the whole at last, so that few bytes are copied
	// twice. Memory that was not written to yet costs the system nothing.
	longStart  = 64 << 10
	longGrowth = 8

	// Short arguments are packed into blocks.
	minBlock = 4 << 10
	maxBlock = 64 << 10
)

// A LongRequest reads one request that is too long to wait for in one buffer:
// it copies what it reads, so the caller keeps no more than the beginning of a
// short argument. A request of n bytes costs time and memory in proportion to
// n, however many pieces it comes in.
//
// The zero LongRequest is ready for the first byte of an array; it does not
// read inline requests. [IsLong] tells when to use one in place of a
// [PartialRequest].
type LongRequest struct {
	left  int    // arguments to come, the one at hand included
	begun bool   // the line with the number of arguments was read
	long  []byte // the long argument at hand: what has arrived of it
	size  int    // its length; 0: the argument at hand is short or not begun
	skip  int    // bytes of the line break behind a long argument, to come

	// The arguments so far. Their list is made at the end, when its length is
	// known: a list that grows would be copied, and the garbage collector would
	// look at every argument again and again.
	sizes  []uint16 // of each; isLong: it is the next of longs
	longs  [][]byte
	blocks [][]byte // where short arguments are packed, one behind the other
	held   int      // bytes of all
}

// isLong is no size of a short argument.
const isLong = 1<<16 - 1

// IsLong reports whether the incomplete request at the start of in, for which a
// [PartialRequest] wants so many bytes, should be read by a [LongRequest], from
// the start.
func IsLong(in []byte, want int) bool {
	return len(in) > 0 && in[0] == '*' && max(want, len(in)) >= longRequest
}

// Read reads on from in, which begins behind the bytes that earlier calls took,
// and takes n bytes of it, also when it returns an error.
//
// want is 0 when the request is complete; args are then the caller's, with
// memory of their own, and the LongRequest is used up. The memory of an argument
// of [LongArgument] bytes or more holds nothing else. Otherwise there is nothing
// to read until want bytes follow the n bytes taken.
//
// err is a [*ProtocolError], the one that [ReadRequest] returns for the same
// bytes.
func (r *LongRequest) Read(in []byte, lim Limits) (args [][]byte, n, want int, err error) {
	lim = lim.withDefaults()
	if !r.begun {
		if len(in) == 0 {
			return nil, 0, 1, nil
		}
		count, next, want, err := readArgumentCount(in, lim)
		if next == 0 {
			return nil, 0, want, err
		}
		r.begun, r.left, n = true, count, next
	}
	for r.left > 0 {
		if r.size > 0 {
			n += r.fill(in[n:])
			if r.size > 0 {
				return nil, n, 1, nil
			}
			continue
		}
		used, want, err := r.next(in[n:], lim)
		n += used
		if used == 0 {
			return nil, n, want, err
		}
	}
	return r.list(), n, 0, nil
}

// Size is how many bytes of memory the request takes when the argument at hand
// is complete.
func (r *LongRequest) Size() int {
	return r.held + r.size + len(r.sizes)*argumentOverhead
}

// next reads a short argument, or the line in front of a long one.
func (r *LongRequest) next(in []byte, lim Limits) (n, want int, err error) {
	if len(in) == 0 {
		return 0, 1, nil
	}
	start, end, want, err := readArgument(in, 0, 1, lim)
	switch {
	case err != nil:
		return 0, 0, err
	case end > 0 && end-start < LongArgument:
		r.pack(in[start:end])
		return end + 2, 0, nil
	case end == 0 && want < LongArgument+2:
		return 0, want, nil
	}
	// The line is there: what it announces is long.
	line := lengthLine(in, lim.Inline)
	if line < 0 || line+2 > len(in) {
		return 0, want, nil // a line that is long itself, and yet to be judged
	}
	size, _ := ParseInt(in[1:line])
	if size < LongArgument {
		return 0, want, nil
	}
	r.size, r.skip = int(size), 2
	return line + 2, 0, nil
}

// fill takes bytes of the long argument at hand, and of the line break behind it.
func (r *LongRequest) fill(in []byte) (n int) {
	n = min(len(in), r.size-len(r.long))
	r.growLong(n)
	end := len(r.long)
	r.long = r.long[:end+n]
	if n > 0 && &r.long[end] != &in[0] { // otherwise it is Room's
		copy(r.long[end:], in)
	}
	if len(r.long) < r.size {
		return n
	}
	k := min(len(in)-n, r.skip)
	if r.skip -= k; r.skip == 0 {
		r.longs = append(r.longs, r.long)
		r.add(isLong, r.size)
		r.long, r.size = nil, 0
	}
	return n + k
}

// Room returns memory for the next bytes of a long argument of which some have
// arrived; nil if there is no such argument at hand. Bytes that are put at its
// beginning, and passed to Read from there, are not copied.
func (r *LongRequest) Room() []byte {
	if len(r.long) == 0 || len(r.long) == r.size {
		return nil
	}
	r.growLong(1)
	return r.long[len(r.long):cap(r.long)]
}

// growLong makes room for n bytes of the long argument at hand.
func (r *LongRequest) growLong(n int) {
	if need := len(r.long) + n; need > cap(r.long) {
		grown := make([]byte, len(r.long), longCapacity(need, r.size))
		copy(grown, r.long)
		r.long = grown
	}
}

// longCapacity is the memory to take for need bytes of a long argument of size
// bytes.
func longCapacity(need, size int) int {
	if need >= size/(2*longGrowth) {
		return size // growing once more would come too near to the end to be worth it
	}
	return min(size, max(longStart, longGrowth*need))
}

// pack copies a short argument into a block.
func (r *LongRequest) pack(arg []byte) {
	last := len(r.blocks) - 1
	if last < 0 || len(arg) > cap(r.blocks[last])-len(r.blocks[last]) {
		size := minBlock
		if last >= 0 {
			size = min(2*cap(r.blocks[last]), maxBlock)
		}
		r.blocks = append(r.blocks, make([]byte, 0, max(size, len(arg))))
		last++
	}
	r.blocks[last] = append(r.blocks[last], arg...)
	r.add(uint16(len(arg)), len(arg))
}

// add notes an argument. What is noted grows with what has arrived, not with the
// number announced.
func (r *LongRequest) add(size uint16, bytes int) {
	r.sizes = append(r.sizes, size)
	r.held += bytes
	r.left--
}

// list makes the list of the arguments.
func (r *LongRequest) list() [][]byte {
	args := make([][]byte, len(r.sizes))
	longs, blocks, at := r.longs, r.blocks, 0
	for i, size := range r.sizes {
		if size == isLong {
			args[i], longs = longs[0], longs[1:]
			continue
		}
		end := at + int(size)
		if end > len(blocks[0]) { // it was the first that did not fit
			blocks = blocks[1:]
			at, end = 0, int(size)
		}
		args[i] = blocks[0][at:end:end]
		at = end
	}
	return args
}
