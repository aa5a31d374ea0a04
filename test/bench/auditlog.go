package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// auditLog is the API server's log of requests. A line is in it by the time that
// its request is answered, or within moments.
type auditLog struct{ path string }

// end is where the log ends now, behind its last whole line.
func (l auditLog) end() (int64, error) {
	_, end, err := l.read(-1)
	return end, err
}

// read returns the whole lines since an offset, and where they end. A negative
// offset returns no line.
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
	// The rest of the last line is being written.
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	return text, offset + int64(len(text)), nil
}

// requests returns what users asked for since an offset, and where that ends.
func (l auditLog) requests(offset int64, users ...string) ([]request, int64, error) {
	text, end, err := l.read(offset)
	if err != nil {
		return nil, 0, err
	}
	found, err := parseRequests(text, users...)
	if err != nil {
		return nil, 0, fmt.Errorf("a line of the audit log: %w", err)
	}
	return found, end, nil
}
