package scaffold

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// checksumsFile is the file in the folder of the charts with a checksum of each file that
// add has copied there. It is not part of any chart. Its format is that of sha256sum.
const checksumsFile = "checksums.txt"

const checksumsHeader = "# Checksums of the files that \"chartwright add\" has copied to this folder. They show which copies you have edited.\n"

// checksums are the checksums of copied files, by their paths relative to the folder of
// the charts, with slashes.
type checksums map[string]string

// checksum returns the checksum of a file. It ignores different line endings, because Git
// can change them in a checkout.
func checksum(data []byte) string {
	sum := sha256.Sum256(unixLines(data))
	return hex.EncodeToString(sum[:])
}

// readChecksums returns the planned checksums of a folder of charts.
func (p *Plan) readChecksums(charts string) (checksums, error) {
	data, err := p.read(filepath.Join(charts, checksumsFile))
	if err != nil {
		return nil, err
	}
	sums := checksums{}
	for line := range strings.Lines(string(data)) {
		sum, name, found := strings.Cut(strings.TrimRight(line, "\r\n"), "  ")
		if found && !strings.HasPrefix(line, "#") {
			sums[name] = sum
		}
	}
	return sums, nil
}

// writeChecksums plans the checksums of a folder of charts if those of a chart change.
func (p *Plan) writeChecksums(charts string, sums checksums, chart string, files map[string][]byte) error {
	before := maps.Clone(sums)
	sums.set(chart, files)
	if maps.Equal(before, sums) {
		return nil
	}
	path := filepath.Join(charts, checksumsFile)
	if len(sums) == 0 {
		if before, err := p.read(path); err != nil || before == nil {
			return err
		}
		return p.write(path, nil)
	}
	var text strings.Builder
	text.WriteString(checksumsHeader)
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&text, "%s  %s\n", sums[name], name)
	}
	return p.write(path, []byte(text.String()))
}

// of returns the checksums of a chart by the paths relative to its folder.
func (c checksums) of(chart string) checksums {
	found := checksums{}
	for path, sum := range c {
		if name, below := strings.CutPrefix(path, chart+"/"); below {
			found[name] = sum
		}
	}
	return found
}

// set replaces the checksums of a chart by those of the given files. No files remove
// them.
func (c checksums) set(chart string, files map[string][]byte) {
	maps.DeleteFunc(c, func(path, _ string) bool { return strings.HasPrefix(path, chart+"/") })
	for name, data := range files {
		// The format has no line breaks in names. A file without a checksum counts as
		// edited.
		if !strings.ContainsAny(name, "\r\n") {
			c[chart+"/"+name] = checksum(data)
		}
	}
}
