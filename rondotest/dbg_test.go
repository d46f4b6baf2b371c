package rondotest
import ("testing";"os")
func TestDbg(t *testing.T){
	t.Setenv("RONDO_TRACE","1")
	faults := Harmless(0.1)
	faults.NoFiles, faults.Reset = 0.1, 0.01
	for seed := uint64(1); seed <= 1500; seed++ {
		o := Options{Seed: seed, Faults: faults}
		a, b := &fakeTB{TB:t}, &fakeTB{TB:t}
		var ta, tb uint64
		la := a.run(func(){ ta = chat(a,o) })
		lb := b.run(func(){ tb = chat(b,o) })
		if ta != tb { os.WriteFile("/tmp/st/a",[]byte(la),0644); os.WriteFile("/tmp/st/b",[]byte(lb),0644); t.Fatal(seed) }
	}
}
