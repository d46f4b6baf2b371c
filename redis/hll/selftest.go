package hll

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// SelfTest checks the package with elements of its own: the registers, and that the
// estimates of both encodings are the same and right. It takes about 50 ms. limit is as for
// Set.
func SelfTest(limit int64) error {
	if err := testRegisters(); err != nil {
		return err
	}
	both := [2][]byte{Init(nil), nil}
	both[1], _ = ToDense(both[0])
	var element [8]byte
	check := uint64(1)
	for n := uint64(1); n <= 1_000_000; n++ {
		binary.LittleEndian.PutUint64(element[:], n)
		register, rank := Hash(element[:])
		for i := range both {
			both[i], _, _ = Set(both[i], register, rank, limit)
		}
		if n == check {
			if err := testEstimates(both, n, limit); err != nil {
				return err
			}
			check *= 10
		}
	}
	return nil
}

func testEstimates(both [2][]byte, n uint64, limit int64) error {
	if int64(n) < limit/2 && Dense(both[0]) {
		return errors.New("sparse encoding not used")
	}
	got, _ := Count(both[0])
	if other, _ := Count(both[1]); got != other {
		return errors.New("dense/sparse disagree")
	}
	wrong := math.Abs(float64(got) - float64(n))
	if wrong > math.Ceil(6*1.04/math.Sqrt(Registers)*float64(n)) {
		return fmt.Errorf("too big error: card:%d abserr:%.0f", n, wrong)
	}
	return nil
}

// testRegisters sets registers in an order in which all neighbors are of use.
func testRegisters() error {
	registers := make([]byte, DenseSize-headerSize)
	var want Ranks
	seed := uint32(1)
	for range 4 * Registers {
		seed = seed*1664525 + 1013904223
		i, rank := int(seed>>8%Registers), byte(seed>>26)
		setDense(registers, i, rank)
		want[i] = max(want[i], rank)
	}
	for i, rank := range want {
		if got := rankAt(registers, i); got != rank {
			return fmt.Errorf("register %d should be %d but is %d", i, rank, got)
		}
	}
	return nil
}
