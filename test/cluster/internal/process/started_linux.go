package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Positions in /proc/PID/stat, counted from the field after the command name.
// The command name is in parentheses and may contain spaces and parentheses.
const (
	fieldState     = 0
	fieldStartTime = 19
)

// started returns the start time of a process, in clock ticks since boot, with
// the boot's ID as a prefix because the ticks restart at each boot.
func started(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, syscall.ESRCH) {
		return "", errGone
	}
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= fieldStartTime {
		return "", fmt.Errorf("/proc/%d/stat does not have the format of proc(5)", pid)
	}
	if state := fields[fieldState]; state == "Z" || state == "X" {
		return "", errGone
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[fieldStartTime], nil
}
