package wsframe

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// A Code says why a connection is closed.
type Code uint16

// The codes of RFC 6455, 7.4.1, and of IANA's registry.
const (
	CodeNormal            Code = 1000
	CodeGoingAway         Code = 1001
	CodeProtocolError     Code = 1002
	CodeUnsupportedData   Code = 1003
	CodeNoStatus          Code = 1005 // never sent: the Close frame had no code
	CodeAbnormal          Code = 1006 // never sent: the connection ended without a Close frame
	CodeInvalidPayload    Code = 1007
	CodePolicyViolation   Code = 1008
	CodeTooBig            Code = 1009
	CodeExtensionRequired Code = 1010
	CodeInternalError     Code = 1011
	CodeServiceRestart    Code = 1012
	CodeTryAgainLater     Code = 1013
	CodeBadGateway        Code = 1014
	CodeTLSHandshake      Code = 1015 // never sent: the TLS handshake failed
)

// MaxReason is the length of the longest reason.
const MaxReason = MaxControl - 2

// MaySend reports whether c may stand in a Close frame: it is one of the codes above that
// are sent, or one of 3000 to 4999, which belong to libraries and applications.
func (c Code) MaySend() bool {
	switch {
	case c >= 3000:
		return c <= 4999
	case c == CodeNoStatus || c == CodeAbnormal || c == 1004:
		return false
	}
	return c >= CodeNormal && c <= CodeBadGateway
}

// String returns the code and its name.
func (c Code) String() string {
	names := [...]string{"normal closure", "going away", "protocol error", "unsupported data", "", "no status", "abnormal closure",
		"invalid payload", "policy violation", "message too big", "extension required", "internal error", "service restart",
		"try again later", "bad gateway", "TLS handshake"}
	if i := int(c) - int(CodeNormal); i >= 0 && i < len(names) && names[i] != "" {
		return fmt.Sprintf("%d (%s)", uint16(c), names[i])
	}
	return fmt.Sprintf("%d", uint16(c))
}

// ReadClose reads the payload of a Close frame. An empty one has the code CodeNoStatus.
// reason aliases payload.
func ReadClose(payload []byte) (code Code, reason []byte, err error) {
	switch len(payload) {
	case 0:
		return CodeNoStatus, nil, nil
	case 1:
		return 0, nil, errCloseLength
	}
	code, reason = Code(binary.BigEndian.Uint16(payload)), payload[2:]
	switch {
	case !code.MaySend():
		return 0, nil, errCloseCode
	case !utf8.Valid(reason):
		return 0, nil, errCloseReason
	}
	return code, reason, nil
}

// AppendClose appends the payload of a Close frame: nothing for CodeNoStatus. A reason of
// more than MaxReason bytes is cut, between two characters; one that is not UTF-8 is left
// out. AppendClose panics if the code may not be sent.
func AppendClose(b []byte, code Code, reason string) []byte {
	if code == CodeNoStatus {
		return b
	}
	if !code.MaySend() {
		panic("wsframe: AppendClose: code " + code.String() + " may not be sent: want 1000 to 1003, 1007 to 1014 or 3000 to 4999")
	}
	b = binary.BigEndian.AppendUint16(b, uint16(code))
	if !utf8.ValidString(reason) {
		return b
	}
	if len(reason) > MaxReason {
		end := MaxReason
		for !utf8.RuneStart(reason[end]) {
			end--
		}
		reason = reason[:end]
	}
	return append(b, reason...)
}
