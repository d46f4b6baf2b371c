package main

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// signalable gives a command a process group of its own, so that a signal reaches
// it alone.
func signalable(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// sendSignal sends Ctrl-Break, whatever sig is: Windows has nothing else to send.
func sendSignal(cmd *exec.Cmd, _ os.Signal) error {
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(cmd.Process.Pid))
}
