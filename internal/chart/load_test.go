package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/helm/engine"
)

// packedChart returns an archive of the small chart with an additional, empty entry.
func packedChart(t *testing.T, more tar.Header) io.Reader {
	t.Helper()
	return packedWith(t, more, "")
}

// packedWith is like packedChart, but the additional entry has content.
func packedWith(t *testing.T, more tar.Header, content string) *bytes.Buffer {
	t.Helper()
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	tw := tar.NewWriter(gz)
	write := func(header tar.Header, content string) {
		header.Mode, header.Size = 0o644, int64(len(content))
		if err := tw.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range small() {
		write(tar.Header{Name: "small/" + name, Typeflag: tar.TypeReg}, content)
	}
	write(more, content)
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return &packed
}

// Loading or unpacking an archive must not read or write files outside the chart.
func TestArchives_RejectPathsOutsideChart(t *testing.T) {
	for _, test := range []struct {
		name string
		more tar.Header
		want string
	}{
		{"a file", tar.Header{Name: "small/templates/more.yaml", Typeflag: tar.TypeReg}, ""},
		{"a folder", tar.Header{Name: "small/templates/more", Typeflag: tar.TypeDir}, ""},
		{"a path with ..", tar.Header{Name: "small/../../etc/passwd", Typeflag: tar.TypeReg}, "parent directory"},
		{"a path with .. inside the chart", tar.Header{Name: "small/templates/../../passwd", Typeflag: tar.TypeReg}, "parent directory"},
		{"an absolute path", tar.Header{Name: "small//etc/passwd", Typeflag: tar.TypeReg}, "absolute paths"},
		{"a Windows path", tar.Header{Name: `small\..\passwd`, Typeflag: tar.TypeReg}, "parent directory"},
		{"a symbolic link", tar.Header{Name: "small/templates/link.yaml", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}, "small/templates/link.yaml is a link"},
		{"a hard link", tar.Header{Name: "small/templates/link.yaml", Linkname: "small/Chart.yaml", Typeflag: tar.TypeLink}, "small/templates/link.yaml is a link"},
		{"a device", tar.Header{Name: "small/templates/zero", Typeflag: tar.TypeChar}, "a device"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, loadErr := LoadArchive(packedChart(t, test.more))
			_, unpackErr := ArchiveFiles(packedChart(t, test.more))
			for _, err := range []error{loadErr, unpackErr} {
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("got error %v, want %q", err, test.want)
				}
			}
		})
	}
}

// A copy of a chart must not write hooks or the configuration of a Git repository.
func TestArchiveFiles_RejectsGitRepositories(t *testing.T) {
	for name, refused := range map[string]bool{
		".git/hooks/post-checkout": true, "files/.GIT/config": true, ".Git": true, ".gitignore": false, "files/git/a": false,
	} {
		_, err := ArchiveFiles(packedChart(t, tar.Header{Name: "small/" + name, Typeflag: tar.TypeReg}))
		if refused != (err != nil && strings.Contains(err.Error(), "belongs to a Git repository")) {
			t.Errorf("%s: got error %v, want an error: %v", name, err, refused)
		}
	}
}

// A chart of a few kilobytes is rejected before it is loaded if its packed subcharts or
// its YAML would expand to gigabytes.
func TestLoadArchive_RejectsBombs(t *testing.T) {
	t.Parallel()
	file := func(name string) tar.Header { return tar.Header{Name: "small/" + name, Typeflag: tar.TypeReg} }
	zeros := strings.Repeat("\x00", 4<<20)
	large := packedWith(t, file("files/zeros"), zeros).String()
	nested := packedWith(t, file("charts/small.tgz"), packedWith(t, file("charts/small.tgz"), large).String()).String()
	for _, test := range []struct {
		name, path, content, want string
	}{
		{"a subchart of 4 MiB", "charts/small.tgz", large, ""},
		{"aliases in values.yaml", "charts/other/values.yaml", "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 1000) + "*a]", "the YAML is too large"},
		{"aliases in a CRD", "crds/a.yaml", "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 1000) + "*a]", "the YAML is too large"},
		{"a subchart that is not an archive", "charts/small.tgz", "zeros", "EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := LoadArchive(packedWith(t, file(test.path), test.content))
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
	t.Run("many subcharts", func(t *testing.T) {
		var files []*engine.BufferedFile
		for i := range 30 {
			files = append(files, &engine.BufferedFile{Name: fmt.Sprintf("charts/c%d.tgz", i), Data: []byte(large)})
		}
		if err := checkSize(files); !errors.Is(err, errChartTooLarge) {
			t.Errorf("got error %v, want %v", err, errChartTooLarge)
		}
		for i := range files {
			files[i].Data = []byte(nested)
		}
		if err := checkSize(files); !errors.Is(err, errChartTooLarge) {
			t.Errorf("nested archives: got error %v, want %v", err, errChartTooLarge)
		}
	})
}

func TestCheckPacked_AllowsExactlyTheLimit(t *testing.T) {
	packed := packedWith(t, tar.Header{Name: "small/files/zeros", Typeflag: tar.TypeReg}, strings.Repeat("\x00", 1<<10)).Bytes()
	var size int64
	if err := eachEntry(bytes.NewReader(packed), func(entry *tar.Header, _ io.Reader) error {
		size += entry.Size
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]error{size: nil, size - 1: errChartTooLarge} {
		left := limit
		if err := checkPacked(packed, &left); !errors.Is(err, want) {
			t.Errorf("%d bytes with a limit of %d: got error %v, want %v", size, limit, err, want)
		}
	}
}

// TestLoadDir_CopiesNoLargeFile counts the bytes that a load allocates. Charts of operators
// have CRDs of megabytes, and one operator can serve more than a hundred charts.
func TestLoadDir_CopiesNoLargeFile(t *testing.T) {
	const size = 8 << 20
	fsys := small().with("crds/large.yaml", strings.Repeat("# a line of a large file\n", size/25)).fs()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := LoadDir(fsys); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	// The file system returns one copy.
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 2*size {
		t.Errorf("the load of a file with %d bytes allocated %d bytes, want at most %d", size, allocated, 2*size)
	}
}
