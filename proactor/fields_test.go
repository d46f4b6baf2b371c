package proactor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/proactor"
)

// New and Wait refuse meaningless arguments, and name them.
func TestFieldsThatMeanNothing(t *testing.T) {
	for want, test := range map[string]struct {
		e *rondo.Engine
		o proactor.Options
	}{
		"proactor: New: the engine is nil":                          {nil, proactor.Options{}},
		"proactor: Options.Lend is -1: want 0, for 262144, or more": {&rondo.Engine{}, proactor.Options{Lend: -1}},
		"proactor: rondo: Engine.NumLoops is -1":                    {&rondo.Engine{NumLoops: -1}, proactor.Options{}},
	} {
		if _, err := proactor.New(test.e, test.o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	q := queue(t, &rondo.Engine{NumLoops: 1}, proactor.Options{})
	var ctx context.Context
	for range 2 {
		if _, err := q.Wait(ctx); err == nil || !strings.Contains(err.Error(), "ctx is nil: want a context") {
			t.Error(err)
		}
	}
}
