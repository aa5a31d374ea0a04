package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// thisMachine describes the machine, as far as /proc tells.
func thisMachine() Machine {
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join(procFolder, file))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	m := Machine{CPUs: runtime.NumCPU(), CPU: field(read("cpuinfo"), "model name"), Kernel: read("sys/kernel/osrelease")}
	if load := strings.Fields(read("loadavg")); len(load) > 0 {
		m.LoadAvg = load[0]
	}
	if memory, err := parseStatus([]byte(read("meminfo")), "MemTotal"); err == nil {
		m.Memory = memory
	}
	return m
}

// field returns the first value of a key, where lines are "key : value".
func field(text, key string) string {
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// versionOf returns what the operator calls itself; what another one does, its
// command line tells.
func versionOf(ctx context.Context, bin, line string) string {
	if line != ownLine(bin) {
		return line
	}
	text, err := output(ctx, filepath.Join(bin, "chartwright"), "version")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(text)
}
