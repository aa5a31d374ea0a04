package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// auditLog is the API server's audit log. An entry is written when its request
// completes, or shortly after.
type auditLog struct{ path string }

// end returns the offset after the last complete entry.
func (l auditLog) end() (int64, error) {
	_, end, err := l.read(-1)
	return end, err
}

// read returns the complete entries after an offset, and the offset after them.
// For a negative offset it returns no entries.
func (l auditLog) read(offset int64) ([]byte, int64, error) {
	file, err := os.Open(l.path)
	if err != nil {
		return nil, 0, fmt.Errorf("read the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if offset < 0 {
		end, err := file.Seek(0, io.SeekEnd)
		return nil, end, err
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, 0, err
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, 0, fmt.Errorf("read the audit log: %w", err)
	}
	// The rest of the last entry is still being written.
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	return text, offset + int64(len(text)), nil
}

// requests returns the requests of users after an offset, and the offset after
// the last entry.
func (l auditLog) requests(offset int64, users ...string) ([]request, int64, error) {
	text, end, err := l.read(offset)
	if err != nil {
		return nil, 0, err
	}
	found, err := parseRequests(text, users...)
	if err != nil {
		return nil, 0, fmt.Errorf("audit log entry: %w", err)
	}
	return found, end, nil
}
