package supplychain

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// snapshot is a folder that "make release-snapshot" has written.
type snapshot struct {
	dir             string
	version, commit string
}

// TestSnapshot checks the files of a release: they are complete, their checksums are
// right, they are for the platform in their name, and those for this platform run.
func TestSnapshot(t *testing.T) {
	dir := os.Getenv("CHARTWRIGHT_RELEASE")
	if dir == "" {
		t.Skip("CHARTWRIGHT_RELEASE names no folder with the files of a release: part of make check-long (release-snapshot)")
	}
	var built struct{ Version, Commit string }
	if err := json.Unmarshal(read(t, dir, "metadata.json"), &built); err != nil {
		t.Fatal(err)
	}
	s := snapshot{dir, built.Version, built.Commit}
	sums := s.verifyChecksums(t)
	t.Run("Files", func(t *testing.T) { s.verifyFiles(t, sums) })
	for name := range sums {
		if !strings.HasSuffix(name, ".json") {
			t.Run(name, func(t *testing.T) { s.verifyArchive(t, name) })
		}
	}
	t.Run("krew", func(t *testing.T) {
		s.verifyDigests(t, sums, "krew/chartwright.yaml", "kubectl-chartwright_", systems...)
	})
	t.Run("Homebrew", func(t *testing.T) {
		s.verifyDigests(t, sums, "homebrew/Casks/chartwright.rb", "chartwright_", "linux", "darwin")
	})
}

// verifyChecksums compares each file with its checksum, prints its size, and returns the
// checksums by file.
func (s snapshot) verifyChecksums(t *testing.T) map[string]string {
	t.Helper()
	sums := map[string]string{}
	for line := range strings.Lines(string(read(t, s.dir, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		content := read(t, s.dir, name)
		if found := sha256.Sum256(content); hex.EncodeToString(found[:]) != sums[name] {
			t.Errorf("%s: the checksum differs", name)
		}
		t.Logf("%6.1f MB  %s", float64(len(content))/1e6, name)
	}
	return sums
}

// verifyFiles compares the names with those of a complete release.
func (s snapshot) verifyFiles(t *testing.T, sums map[string]string) {
	var want []string
	for _, system := range systems {
		ending := ".tar.gz"
		if system == "windows" {
			ending = ".zip"
		}
		for _, architecture := range architectures {
			platform := "_" + s.version + "_" + system + "_" + architecture
			want = append(want, "chartwright"+platform+ending, "kubectl-chartwright"+platform+ending, "chartwright"+platform+".cdx.json")
			if system == "linux" {
				want = append(want, "chartwright"+platform+"-helm4"+ending, "chartwright"+platform+"-helm4.cdx.json")
			}
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(sums))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// verifyArchive checks that an archive has one program for the platform in its name, and
// runs the program if the platform is this one.
func (s snapshot) verifyArchive(t *testing.T, name string) {
	program, platform, _ := strings.Cut(name, "_"+s.version+"_")
	platform, ending, _ := strings.Cut(platform, ".")
	platform, isHelm4 := strings.CutSuffix(platform, "-helm4")
	system, architecture, _ := strings.Cut(platform, "_")
	if ending == "zip" {
		program += ".exe"
	}
	files := unpack(t, read(t, s.dir, name), ending)
	if diff := cmp.Diff([]string{"LICENSE", "README.md", program}, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	info, err := buildinfo.Read(bytes.NewReader(files[program]))
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{"GOOS": system, "GOARCH": architecture, "-trimpath": "true", "CGO_ENABLED": "0"}
	helm := "HELM=3"
	if isHelm4 {
		helm, settings["-tags"] = "HELM=4", "helm4"
	}
	for _, setting := range info.Settings {
		if want, ok := settings[setting.Key]; ok && want == setting.Value {
			delete(settings, setting.Key)
		}
	}
	if info.GoVersion != "go"+toolchain(t) || len(settings) > 0 {
		t.Errorf("built with %s, want go%s, and without %v:\n%s", info.GoVersion, toolchain(t), settings, info)
	}
	if system != runtime.GOOS || architecture != runtime.GOARCH {
		return
	}
	executable := filepath.Join(t.TempDir(), program)
	if err := os.WriteFile(executable, files[program], 0o755); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), executable, "version").CombinedOutput()
	t.Logf("$ %s version\n%s", program, output)
	if program == "chartwright" {
		t.Run("Project", func(t *testing.T) { verifyProject(t, executable) })
	}
	if prefix := "chartwright v" + s.version + " (commit " + s.commit + ", "; err != nil || !strings.HasPrefix(string(output), prefix) {
		t.Errorf("%s version: %v, want the output to start with %s", program, err, prefix)
	}
	// The image has the binary that the Makefile builds.
	other := "dist/" + system + "-" + architecture + "/chartwright"
	run(t.Context(), t, "make", "--no-print-directory", other, helm, "VERSION=v"+s.version, "COMMIT="+s.commit)
	if !bytes.Equal(files[program], read(t, root, other)) {
		t.Errorf("%s differs from %s", program, other)
	}
}

// verifyProject follows the quickstart with the program, kubectl, make and what each system
// has.
func verifyProject(t *testing.T, executable string) {
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-run", "^TestQuickstart$", "./cmd/chartwright")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CHARTWRIGHT_BINARY="+executable)
	output, err := cmd.CombinedOutput()
	t.Logf("%s", output)
	if err != nil || bytes.Contains(output, []byte("--- SKIP")) {
		t.Errorf("TestQuickstart did not pass: %v", err)
	}
}

// verifyDigests checks that a file of a package manager names the archives of a program
// with their checksums.
func (s snapshot) verifyDigests(t *testing.T, sums map[string]string, file, program string, systems ...string) {
	content := string(read(t, s.dir, file))
	found := regexp.MustCompile(`\b[0-9a-f]{64}\b`).FindAllString(content, -1)
	var want []string
	for name, sum := range sums {
		isArchive := strings.HasSuffix(name, ".zip") || strings.HasSuffix(name, ".tar.gz") && !strings.Contains(name, "-helm4.")
		if isArchive && strings.HasPrefix(name, program) && slices.ContainsFunc(systems, func(system string) bool { return strings.Contains(name, "_"+system+"_") }) {
			want = append(want, sum)
		}
	}
	slices.Sort(found)
	slices.Sort(want)
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("%s: checksums (-want +got):\n%s\n%s", file, diff, content)
	}
}

// read returns the content of a file.
func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(path.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// unpack returns the files of an archive.
func unpack(t *testing.T, archive []byte, ending string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	add := func(name string, content io.Reader, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if files[name], err = io.ReadAll(content); err != nil {
			t.Fatal(err)
		}
	}
	if ending == "zip" {
		archived, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archived.File {
			content, err := file.Open()
			add(file.Name, content, err)
		}
		return files
	}
	uncompressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for archived := tar.NewReader(uncompressed); ; {
		header, err := archived.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		add(header.Name, archived, nil)
	}
}
