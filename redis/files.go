package redis

import (
	"fmt"
	"math"

	"github.com/rondo-go/rondo/internal/sys"
)

// ReservedFiles is the number of the process's file descriptors that the server
// leaves free for other uses than clients.
const ReservedFiles = 32

// clientsThatFit returns the number of clients for which there are descriptors,
// and whether maxclients is within it.
func (c *config) clientsThatFit() (n int, ok bool) {
	limit, known := sys.OpenFiles()
	if !known {
		return c.maxClients, true
	}
	n = int(min(limit, math.MaxInt)) - ReservedFiles
	return n, n >= c.maxClients
}

// fitMaxClients lowers maxclients to the number of clients for which there are
// descriptors.
func (s *Server) fitMaxClients() error {
	n, ok := s.config.clientsThatFit()
	if ok {
		return nil
	}
	wanted := uint64(s.config.maxClients) + ReservedFiles
	if n <= 0 {
		return fmt.Errorf("redis: your current 'ulimit -n' of %d is not enough for the server to start. "+
			"Please increase your open file limit to at least %d", n+ReservedFiles, wanted)
	}
	s.log().Warn(fmt.Sprintf("You requested maxclients of %d requiring at least %d max file descriptors.", s.config.maxClients, wanted))
	s.log().Warn(fmt.Sprintf("Current maximum open files is %d. maxclients has been reduced to %d to compensate for low ulimit. "+
		"If you need higher maxclients increase 'ulimit -n'.", n+ReservedFiles, n))
	s.config.maxClients = n
	return nil
}
