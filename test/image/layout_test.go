package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

var platforms = []string{"linux/amd64", "linux/arm64"}

// stub writes the smallest ELF binary for a machine.
func stub(t *testing.T, machine elf.Machine) string {
	t.Helper()
	header := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Ehsize: 64, Phentsize: 56, Shentsize: 64,
	}
	copy(header.Ident[:], elf.ELFMAG+string([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}))
	var data bytes.Buffer
	if err := binary.Write(&data, binary.LittleEndian, header); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "chartwright")
	if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func stubRelease(t *testing.T) release {
	t.Helper()
	return release{
		reference: "ghcr.io/chartwright/chartwright:v1.2.3",
		binaries:  map[string]string{"linux/amd64": stub(t, elf.EM_X86_64), "linux/arm64": stub(t, elf.EM_AARCH64)},
		version:   "v1.2.3", revision: "c0ffee", created: "2026-11-24T07:00:00+02:00",
	}
}

// write writes a layout and returns its folder.
func write(t *testing.T, r release) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "image")
	if err := r.write(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestLayout_PassesCheck(t *testing.T) {
	folder := write(t, stubRelease(t))
	lines, err := check(folder, platforms)
	if err != nil || len(lines) != 2 {
		t.Errorf("the layout has the platforms %q and the problems %v, want two platforms and no problems", lines, err)
	}
	index, err := readLayout(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if created := manifest.Annotations[labelPrefix+"created"]; created != "2026-11-24T05:00:00Z" {
		t.Errorf("the index was created at %q, want the time of the commit in UTC", created)
	}
}

// TestLayout_SameInputsSameBytes builds the image a second time in another folder, from
// binaries with other times and modes.
func TestLayout_SameInputsSameBytes(t *testing.T) {
	one, other := stubRelease(t), stubRelease(t)
	for _, path := range other.binaries {
		if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // the mode must differ
			t.Fatal(err)
		}
	}
	first := contents(t, write(t, one))
	if diff := cmp.Diff(first, contents(t, write(t, other))); diff != "" {
		t.Errorf("two builds differ (-first +second):\n%s", diff)
	}
	other.revision = "another"
	if cmp.Equal(first, contents(t, write(t, other))) {
		t.Error("builds of two commits are equal")
	}
}

// contents returns the files of a folder.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	if err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, folder)] = string(data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLayout_ErrorsNameFlag(t *testing.T) {
	for want, change := range map[string]func(*release){
		"--name":                 func(r *release) { r.reference = "a b" },
		"--created":              func(r *release) { r.created = "today" },
		"linux/amd64: open none": func(r *release) { r.binaries = map[string]string{"linux/amd64": "none"} },
	} {
		r := stubRelease(t)
		change(&r)
		if err := r.write(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want it to contain %q", err, want)
		}
	}
}

// TestCheck_ReportsProblem changes the image of one platform.
func TestCheck_ReportsProblem(t *testing.T) {
	r := stubRelease(t)
	wrongMachine := stubRelease(t)
	wrongMachine.binaries["linux/arm64"] = wrongMachine.binaries["linux/amd64"]
	for name, c := range map[string]struct {
		folder string
		want   string
	}{
		"platforms":  {write(t, release{reference: r.reference, binaries: map[string]string{"linux/amd64": r.binaries["linux/amd64"]}, version: "1"}), "platforms: got [linux/amd64], want [linux/amd64 linux/arm64]"},
		"no labels":  {write(t, release{reference: r.reference, binaries: r.binaries, version: "1"}), "labels: missing org.opencontainers.image.revision"},
		"machine":    {write(t, wrongMachine), "linux/arm64: binary: got machine EM_X86_64"},
		"root":       {changed(t, r, func(i *image) { i.config.User = "" }), `user: got "", want 65532:65532`},
		"entrypoint": {changed(t, r, func(i *image) { i.config.Entrypoint = []string{"/bin/sh"} }), `entrypoint: got ["/bin/sh"]`},
		"a shell":    {changed(t, r, func(i *image) { i.layers = append(i.layers, files{"bin/sh": {mode: 0o755, text: "#!"}}) }), "contents: got bin/sh"},
		"no binary":  {changed(t, r, func(i *image) { i.layers = nil }), "contents: missing [chartwright opt opt/chartwright]"},
		"size": {changed(t, r, func(i *image) {
			i.layers = append(i.layers, files{"large": {mode: 0o755, text: strings.Repeat(" ", maxSize)}})
		}), "size: got 83886144 bytes"},
	} {
		if _, err := check(c.folder, platforms); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want it to contain %q", name, err, c.want)
		}
	}
}

// changed writes a layout with a changed image for linux/amd64.
func changed(t *testing.T, r release, change func(*image)) string {
	t.Helper()
	i := operator(r.reference, r.binaries["linux/amd64"])
	change(&i)
	o := options{out: t.TempDir()}
	if err := os.Mkdir(o.layers(), 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := i.layerFiles(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	built, err := assemble(empty.Image, files)
	if err != nil {
		t.Fatal(err)
	}
	if built, err = configure(built, v1.ConfigFile{OS: "linux", Architecture: "amd64", Config: i.config}); err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: built, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}},
	})
	folder := filepath.Join(t.TempDir(), "image")
	if err := writeLayout(folder, r.reference, index); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestPush_RegistryHasLayout(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	folder := write(t, stubRelease(t))
	reference := strings.TrimPrefix(server.URL, "http://") + "/chartwright:v1.2.3"
	pushed, err := push(t.Context(), folder, reference)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := name.NewDigest(pushed)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []name.Reference{digest, digest.Tag("v1.2.3")} {
		index, err := remote.Index(by)
		if err != nil {
			t.Fatal(err)
		}
		if hash, err := index.Digest(); err != nil || hash.String() != digest.DigestStr() {
			t.Errorf("the registry has %s as %s (%v), want %s", by, hash, err, digest.DigestStr())
		}
	}
}
