package resp

const (
	// LongArgument is the minimum length of an argument to which a
	// [LongRequest] gives separate memory.
	LongArgument = 16 << 10

	// longRequest is the length of an incomplete request from which it pays to
	// copy its arguments one by one.
	longRequest = 64 << 10

	// argumentOverhead is the memory of an argument beside its bytes.
	argumentOverhead = 24

	// A long argument's memory begins with longStart bytes. It then grows by a
	// factor of longGrowth, and finally to its full length, so that few bytes
	// are copied twice. Memory costs the system nothing until it is written to.
	longStart  = 64 << 10
	longGrowth = 8

	// Short arguments are packed into blocks.
	minBlock = 4 << 10
	maxBlock = 64 << 10
)

// A LongRequest reads one long request in pieces, and copies it. The caller
// keeps at most the beginning of a short argument, instead of the whole
// request. A request of n bytes costs time and memory proportional to n,
// however many pieces it arrives in.
//
// The zero LongRequest is ready for the first byte of an array. It does not
// read inline requests. [IsLong] reports when to use a LongRequest instead of a
// [PartialRequest].
type LongRequest struct {
	left  int    // arguments not yet complete, including the current one
	begun bool   // the line with the number of arguments has been read
	long  []byte // the bytes so far of the current long argument
	size  int    // its length; 0: the current argument is short or has not begun
	skip  int    // missing bytes of the line break after a long argument

	// The arguments so far. Their list is made at the end, when its length is
	// known. A growing list would be copied, and the garbage collector would scan
	// every argument again and again.
	sizes  []uint16 // of each argument; isLong: the next one of longs
	longs  [][]byte
	blocks [][]byte // short arguments, packed one after the other
	held   int      // bytes of all arguments
}

// isLong marks a long argument in sizes. It is larger than any short argument.
const isLong = 1<<16 - 1

// IsLong reports whether a [LongRequest] should read an incomplete request from
// its start. in begins with the request, and want is what a [PartialRequest]
// returned for it.
func IsLong(in []byte, want int) bool {
	return len(in) > 0 && in[0] == '*' && max(want, len(in)) >= longRequest
}

// Read continues the request with in. in begins after the bytes that earlier
// calls took. Read takes n bytes of in, even if it returns an error.
//
// want is 0 when the request is complete. The caller then owns args and their
// memory, and the LongRequest must not be used again. The memory of an argument
// of [LongArgument] bytes or more holds nothing else. If want is not 0, Read
// can continue once want bytes follow the n bytes.
//
// err is a [*ProtocolError], the same that [ReadRequest] returns for these
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

// Size returns the memory, in bytes, that the request will take once the
// current argument is complete.
func (r *LongRequest) Size() int {
	return r.held + r.size + len(r.sizes)*argumentOverhead
}

// next reads a short argument, or the line before a long one.
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
	// The line announces a long argument, or nearly that, or is itself long.
	line := lengthLine(in, lim.Inline)
	if line < 0 || line+2 > len(in) {
		return 0, want, nil // a long line, not complete yet
	}
	size, _ := ParseInt(in[1:line])
	if size < LongArgument {
		return 0, want, nil
	}
	r.size, r.skip = int(size), 2
	return line + 2, 0, nil
}

// fill takes bytes of the current long argument, and of the line break after
// it.
func (r *LongRequest) fill(in []byte) (n int) {
	n = min(len(in), r.size-len(r.long))
	r.growLong(n)
	end := len(r.long)
	r.long = r.long[:end+n]
	if n > 0 && &r.long[end] != &in[0] { // otherwise in is memory from Room
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

// Room returns memory for the next bytes of the current long argument, once
// some of its bytes have arrived; otherwise nil. Read does not copy bytes that
// the caller puts at the start of this memory and passes from there.
func (r *LongRequest) Room() []byte {
	if len(r.long) == 0 || len(r.long) == r.size {
		return nil
	}
	r.growLong(1)
	return r.long[len(r.long):cap(r.long)]
}

// growLong makes room for n more bytes of the current long argument.
func (r *LongRequest) growLong(n int) {
	if need := len(r.long) + n; need > cap(r.long) {
		grown := make([]byte, len(r.long), longCapacity(need, r.size))
		copy(grown, r.long)
		r.long = grown
	}
}

// longCapacity returns the memory to allocate for need bytes of a long argument
// of size bytes.
func longCapacity(need, size int) int {
	if need >= size/(2*longGrowth) {
		return size // one more step in between would save too little
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

// add records an argument. The memory for it depends on what has arrived, not
// on the number of arguments announced.
func (r *LongRequest) add(size uint16, bytes int) {
	r.sizes = append(r.sizes, size)
	r.held += bytes
	r.left--
}

// list returns the list of the arguments.
func (r *LongRequest) list() [][]byte {
	args := make([][]byte, len(r.sizes))
	longs, blocks, at := r.longs, r.blocks, 0
	for i, size := range r.sizes {
		if size == isLong {
			args[i], longs = longs[0], longs[1:]
			continue
		}
		end := at + int(size)
		if end > len(blocks[0]) { // the first argument that did not fit
			blocks = blocks[1:]
			at, end = 0, int(size)
		}
		args[i] = blocks[0][at:end:end]
		at = end
	}
	return args
}
