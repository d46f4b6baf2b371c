package sys

import "os"

// UpgradeSignal is nil: there is no such signal.
var UpgradeSignal os.Signal

// SocketPair fails.
func SocketPair() (a, b *os.File, err error) { return nil, nil, errNoPassing }
