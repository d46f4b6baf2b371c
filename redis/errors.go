package redis

// Error replies of several commands. Replies of only one command stand in its
// code.
const (
	errSyntax      = "ERR syntax error"
	errWrongType   = "WRONGTYPE Operation against a key holding the wrong kind of value"
	errNotInteger  = "ERR value is not an integer or out of range"
	errNotFloat    = "ERR value is not a valid float"
	errOverflow    = "ERR increment or decrement would overflow"
	errNoSuchKey   = "ERR no such key"
	errDBIndex     = "ERR DB index is out of range"
	errNoAuth      = "NOAUTH Authentication required."
	errWrongPass   = "WRONGPASS invalid username-password pair or user is disabled."
	errOOM         = "OOM command not allowed when used memory > 'maxmemory'."
	errExecAbort   = "EXECABORT Transaction discarded because of previous errors."
	errMaxClients  = "ERR max number of clients reached"
	errStringLimit = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
)
