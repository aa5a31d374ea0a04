package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticks per second are the unit of time in /proc. The kernel reports 100 to all
// programs, whatever its own frequency is.
const ticks = 100

const procFolder = "/proc"

// usage is what a process has used so far.
type usage struct {
	// cpu is the time of all its threads, in user and in system mode.
	cpu time.Duration
	// rss and peak are bytes, peak the most since clearPeak.
	rss, peak int64
}

// readUsage reads what a process has used.
func readUsage(pid int) (usage, error) {
	var u usage
	folder := filepath.Join(procFolder, strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return u, fmt.Errorf("read the CPU time of process %d, which requires Linux: %w", pid, err)
	}
	if u.cpu, err = parseStat(stat); err != nil {
		return u, fmt.Errorf("%s/stat: %w", folder, err)
	}
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return u, err
	}
	if u.rss, err = parseStatus(status, "VmRSS"); err != nil {
		return u, fmt.Errorf("%s/status: %w", folder, err)
	}
	if u.peak, err = parseStatus(status, "VmHWM"); err != nil {
		return u, fmt.Errorf("%s/status: %w", folder, err)
	}
	return u, nil
}

// clearPeak resets the peak of a process to its current memory.
func clearPeak(pid int) error {
	return os.WriteFile(filepath.Join(procFolder, strconv.Itoa(pid), "clear_refs"), []byte("5"), 0o600)
}

// parseStat returns the CPU time in the text of /proc/PID/stat.
func parseStat(text []byte) (time.Duration, error) {
	// The second field is the program's name in parentheses, which may contain
	// any characters.
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return 0, errors.New("no program name")
	}
	// The rest begins with the third field; utime and stime are fields 14 and
	// 15.
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("%d fields after the name, want more than 12", len(fields))
	}
	var sum int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * (time.Second / ticks), nil
}

// parseStatus returns a size in the text of /proc/PID/status, in bytes.
func parseStatus(text []byte, key string) (int64, error) {
	for line := range strings.Lines(string(text)) {
		name, value, found := strings.Cut(line, ":")
		if !found || name != key {
			continue
		}
		number, unit, _ := strings.Cut(strings.TrimSpace(value), " ")
		if unit != "kB" {
			return 0, fmt.Errorf("unit of %s is %q, want kB", key, unit)
		}
		n, err := strconv.ParseInt(number, 10, 64)
		return n << 10, err
	}
	return 0, fmt.Errorf("no %s", key)
}
