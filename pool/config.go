package pool

import (
	"cmp"
	"fmt"
	"time"
)

// check returns an error for a field with a meaningless value.
func (c *Config) check() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"MaxLive", c.MaxLive}, {"MinIdle", c.MinIdle}} {
		if f.value < 0 {
			return fmt.Errorf("pool.Config.%s is %d: want 0 or more", f.name, f.value)
		}
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"IdleTime", c.IdleTime}, {"MaxWait", c.MaxWait}, {"CheckAfter", c.CheckAfter}, {"Patience", c.Patience}} {
		if f.value < 0 {
			return fmt.Errorf("pool.Config.%s is %v: want 0 or more", f.name, f.value)
		}
	}
	if c.CheckAfter > 0 && c.Check == nil {
		return fmt.Errorf("pool.Config.CheckAfter is %v, and Check is nil: want a Check too", c.CheckAfter)
	}
	for i, f := range c.Filters {
		if f == nil {
			return fmt.Errorf("pool.Config.Filters[%d] is nil: want a rondo.FilterOpenFunc", i)
		}
	}
	return nil
}

// setDefaults replaces zeros by the defaults.
func (c *Config) setDefaults() {
	c.MaxLive = cmp.Or(c.MaxLive, DefaultMaxLive)
	c.MaxWaiters = cmp.Or(c.MaxWaiters, DefaultMaxWaiters)
	c.Patience = cmp.Or(c.Patience, DefaultPatience)
}
