package wsframe

// A ProtocolError says how a peer violates the protocol. Nothing after the violation can
// be read.
type ProtocolError struct {
	// Code belongs into the Close frame that answers the violation.
	Code Code
	// Text says what the peer has sent, as in "control frame that is fragmented".
	Text string
}

func (e *ProtocolError) Error() string { return "websocket: the peer has sent a " + e.Text }

var (
	errOpcode          = &ProtocolError{CodeProtocolError, "frame with a reserved opcode"}
	errRSV             = &ProtocolError{CodeProtocolError, "frame with a reserved bit that no extension has defined"}
	errControlFragment = &ProtocolError{CodeProtocolError, "control frame that is fragmented"}
	errControlLength   = &ProtocolError{CodeProtocolError, "control frame of more than 125 bytes"}
	errLengthForm      = &ProtocolError{CodeProtocolError, "frame whose length is not in its shortest form"}
	errLengthSign      = &ProtocolError{CodeProtocolError, "frame whose length is over 2^63-1"}
	errUnmasked        = &ProtocolError{CodeProtocolError, "frame of a client without a mask"}
	errMasked          = &ProtocolError{CodeProtocolError, "frame of a server with a mask"}
	errNoMessage       = &ProtocolError{CodeProtocolError, "continuation frame without a message to continue"}
	errInMessage       = &ProtocolError{CodeProtocolError, "new message before the end of the one before"}
	errFrameSize       = &ProtocolError{CodeTooBig, "frame over the limit"}
	errCloseLength     = &ProtocolError{CodeProtocolError, "close frame with a payload of 1 byte"}
	errCloseCode       = &ProtocolError{CodeProtocolError, "close frame with a code that may not be sent"}
	errCloseReason     = &ProtocolError{CodeInvalidPayload, "close frame whose reason is not UTF-8"}
)
