package download

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
)

// Checksums contains the SHA-512 of each file, by its path on the server.
type Checksums map[string]string

// checksumLength is the number of hexadecimal digits of a SHA-512.
const checksumLength = 128

// ReadChecksums reads a file in the format of sha512sum, with comments.
func ReadChecksums(name string) (Checksums, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	sums := Checksums{}
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		sum, path, _ := strings.Cut(line, "  ")
		if !isChecksum(sum) || path == "" {
			return nil, fmt.Errorf("%s:%d: got %q, want a SHA-512, two spaces and a path", name, number, line)
		}
		sums[path] = sum
	}
	return sums, lines.Err()
}

func isChecksum(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) == checksumLength
}

// Pin returns the lines of a checksum file for the programs on all platforms, from
// the checksums that the server publishes with its files.
func (r Release) Pin(ctx context.Context, platforms, programs []string) (string, error) {
	var lines strings.Builder
	for _, platform := range platforms {
		r.Platform = platform
		for _, program := range programs {
			path := r.path(program)
			body, _, err := r.open(ctx, path+".sha512")
			if err != nil {
				return "", err
			}
			published, err := io.ReadAll(io.LimitReader(body, 1024))
			if err = firstError(err, body.Close()); err != nil {
				return "", fmt.Errorf("%s.sha512: %w", path, err)
			}
			sum := strings.TrimSpace(string(published))
			if !isChecksum(sum) {
				return "", fmt.Errorf("%s.sha512: got %q, want a SHA-512", path, sum)
			}
			fmt.Fprintf(&lines, "%s  %s\n", sum, path)
		}
	}
	return lines.String(), nil
}
