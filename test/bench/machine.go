package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// thisMachine describes the machine with information from /proc.
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

// field returns the first value of a key in lines of the form "key : value".
func field(text, key string) string {
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// versionOf returns the version of this repository's operator, or the command
// line of another operator.
func versionOf(ctx context.Context, bin, command string) string {
	if command != operatorCommand(bin) {
		return command
	}
	text, err := output(ctx, filepath.Join(bin, "chartwright"), "version")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(text)
}
