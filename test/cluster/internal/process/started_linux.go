package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Positions in /proc/PID/stat, counted from the field after the command name,
// which is in parentheses and may itself contain spaces and parentheses.
const (
	fieldState     = 0
	fieldStartTime = 19
)

// started reads when a process began, in clock ticks since boot, and prefixes
// the boot's own id because ticks start again at every boot.
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
		return "", fmt.Errorf("/proc/%d/stat is not in the form that proc(5) describes", pid)
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
