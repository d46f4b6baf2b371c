package store

// Tracking says what the Store notes about the use of keys. A note takes 4 bytes in an
// entry, so it is off until something asks: an eviction policy, OBJECT IDLETIME or OBJECT
// FREQ. Keys of before get their note when they are used.
type Tracking uint8

const (
	TrackNothing Tracking = iota
	TrackLRU              // when a key was last used
	TrackLFU              // how often, as a logarithmic counter that decays, as Redis's
)

// An access field has a bit for what it means, then the time of the last access in units
// of 128 ms, or the minute of the last decay in 16 bits and the counter in 8.
const (
	lfuField   = 1 << 31
	lruUnit    = 7 // log2 of milliseconds
	lruMask    = 1<<31 - 1
	lfuMinutes = 1<<16 - 1
	lfuInitial = 5 // a new key's counter: it needs time to be used
	lfuMost    = 255
)

// LFU are the parameters lfu-log-factor and lfu-decay-time.
type LFU struct {
	LogFactor int // how much use a higher count needs
	DecayTime int // minutes after which an unused key loses one; 0: never
}

// DefaultLFU are Redis's defaults.
var DefaultLFU = LFU{LogFactor: 10, DecayTime: 1}

// Track sets what the Store notes about the use of keys from now on.
func (s *Store) Track(t Tracking) {
	if t != s.tracking {
		s.tracking, s.tracked = t, s.now
		s.pool.clear()
	}
}

// Tracking returns what the Store notes about the use of keys.
func (s *Store) Tracking() Tracking { return s.tracking }

// SetLFU sets the parameters of TrackLFU.
func (s *Store) SetLFU(l LFU) { s.lfu = l }

func (s *Store) lruClock() uint32 { return uint32(s.now>>lruUnit) & lruMask }

func (s *Store) minute() uint32 { return uint32(s.now/60000) & lfuMinutes }

func (s *Store) firstAccess() uint32 {
	if s.tracking == TrackLFU {
		return lfuField | s.minute()<<8 | lfuInitial
	}
	return s.lruClock()
}

// accessed notes an access to an Item.
func (t *table) accessed(it Item) Item {
	s, e := t.store, it.e()
	if e[0]&accessBit == 0 {
		head := int(it.at) - prefix(e[0])
		it = t.recast(it, e[0]|accessBit, head+e.payload(int(it.at)), 0)
		it.e().setAccess(s.firstAccess())
		return it
	}
	field := e.access()
	switch {
	case field>>31 != s.firstAccess()>>31:
		e.setAccess(s.firstAccess())
	case s.tracking == TrackLRU:
		e.setAccess(s.lruClock())
	default:
		e.setAccess(lfuField | s.minute()<<8 | s.raise(s.decayed(field)))
	}
	return it
}

// decayed returns a field's counter after the minutes without use.
func (s *Store) decayed(field uint32) uint32 {
	count := field & lfuMost
	if s.lfu.DecayTime > 0 {
		idle := (s.minute() - field>>8) & lfuMinutes
		count -= min(count, idle/uint32(s.lfu.DecayTime))
	}
	return count
}

// raise returns a counter after an access: the higher it is, the less likely it rises.
func (s *Store) raise(count uint32) uint32 {
	if count >= lfuMost {
		return lfuMost
	}
	above := uint64(0)
	if count > lfuInitial {
		above = uint64(count - lfuInitial)
	}
	if s.rng.Uint64N(above*uint64(s.lfu.LogFactor)+1) == 0 {
		count++
	}
	return count
}

// Idle returns for how many milliseconds the key has not been used, to 128 ms. It is the
// time since Store.Track if the key has no note of that.
func (it Item) Idle() int64 {
	s := it.t.store
	if e := it.e(); e[0]&accessBit != 0 {
		if field := e.access(); field&lfuField == 0 {
			return int64((s.lruClock()-field)&lruMask) << lruUnit
		}
	}
	return s.now - s.tracked
}

// Frequency returns the counter of TrackLFU: 0 to 255.
func (it Item) Frequency() int {
	if e := it.e(); e[0]&accessBit != 0 {
		if field := e.access(); field&lfuField != 0 {
			return int(it.t.store.decayed(field))
		}
	}
	return lfuInitial
}

// SetIdle sets what Idle returns: at least so much, and up to 128 ms more.
func (db *DB) SetIdle(it Item, milliseconds int64) Item {
	it = db.t.accessed(it)
	units := (milliseconds + 1<<lruUnit - 1) >> lruUnit
	it.e().setAccess((db.store.lruClock() - uint32(units)) & lruMask)
	return it
}

// SetFrequency sets what Frequency returns, 0 to 255.
func (db *DB) SetFrequency(it Item, count int) Item {
	it = db.t.accessed(it)
	it.e().setAccess(lfuField | db.store.minute()<<8 | uint32(count))
	return it
}
