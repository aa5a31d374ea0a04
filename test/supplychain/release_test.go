package supplychain

import (
	"context"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var (
	systems       = []string{"linux", "darwin", "windows"}
	architectures = []string{"amd64", "arm64"}
)

// configuration is the part of .goreleaser.yaml that the tests check.
type configuration struct {
	Builds []struct {
		ID, Main                                            string
		Goos, Goarch, Goamd64, Goarm64, Env, Flags, Ldflags []string
		ModTimestamp                                        string `json:"mod_timestamp"`
	}
	Archives []struct{ IDs []string }
	SBOMs    []struct {
		Cmd, Artifacts string
		IDs, Args      []string
	}
	Checksum struct {
		NameTemplate string `json:"name_template"`
	}
	Signs []struct {
		Artifacts, Cmd string
	}
	Krews         []struct{ IDs []string }
	HomebrewCasks []struct{ IDs []string } `json:"homebrew_casks"`
}

// releaseConfiguration returns .goreleaser.yaml.
func releaseConfiguration(t *testing.T) configuration {
	t.Helper()
	data, err := os.ReadFile(path.Join(root, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config configuration
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	return config
}

// toolchain returns the version of Go in go.mod.
func toolchain(t *testing.T) string {
	t.Helper()
	modules, err := os.ReadFile(path.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^go (1\.\d+\.\d+)$`).FindSubmatch(modules)
	if found == nil {
		t.Fatal("go.mod names no patch version of Go")
	}
	return string(found[1])
}

// run runs a command in the root folder and returns its output.
func run(ctx context.Context, t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = root
	// The go command reports downloads to stderr.
	var stderr strings.Builder
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, output, stderr.String())
	}
	return string(output)
}

// TestRelease_IsComplete: the release has the program and the plugin for each platform, the
// program with Helm 4 for that of the image, the checksums of all files with a signature, an SBOM for each program, and the files
// for krew and Homebrew.
func TestRelease_IsComplete(t *testing.T) {
	config := releaseConfiguration(t)
	programs := []string{"chartwright", "chartwright-helm4", "kubectl-chartwright"}
	var built, archived []string
	for _, build := range config.Builds {
		built = append(built, build.ID)
		systems := systems
		if build.ID == "chartwright-helm4" {
			systems = []string{"linux"}
		}
		if !slices.Equal(build.Goos, systems) || !slices.Equal(build.Goarch, architectures) {
			t.Errorf("%s: built for %v on %v, want %v on %v", build.ID, build.Goos, build.Goarch, systems, architectures)
		}
	}
	for _, archive := range config.Archives {
		archived = append(archived, archive.IDs...)
	}
	if diff := cmp.Diff([][]string{programs, programs}, [][]string{built, archived}); diff != "" {
		t.Errorf("programs and archives (-want +got):\n%s", diff)
	}
	var described []string
	for _, sbom := range config.SBOMs {
		if sbom.Artifacts == "binary" {
			described = append(described, sbom.IDs...)
		}
	}
	if !slices.Equal(described, programs[:2]) {
		t.Errorf("SBOMs: %+v, want one of each binary", config.SBOMs)
	}
	if config.Checksum.NameTemplate != "SHA256SUMS" || len(config.Signs) != 1 || config.Signs[0].Artifacts != "checksum" || config.Signs[0].Cmd != "cosign" {
		t.Errorf("checksums %+v, signatures %+v, want a signature of SHA256SUMS by cosign", config.Checksum, config.Signs)
	}
	if len(config.Krews) != 1 || !slices.Equal(config.Krews[0].IDs, programs[2:]) {
		t.Errorf("krew: %+v, want a manifest of the plugin", config.Krews)
	}
	if len(config.HomebrewCasks) != 1 || !slices.Equal(config.HomebrewCasks[0].IDs, programs[:1]) {
		t.Errorf("Homebrew: %+v, want a cask of the program", config.HomebrewCasks)
	}
}

// TestRelease_BuildsAreReproducible: "make verify-reproducible" compares the bytes of
// two builds, which takes minutes. This test checks the settings it relies on, and that
// the Makefile and GoReleaser have the same.
func TestRelease_BuildsAreReproducible(t *testing.T) {
	version := strings.NewReplacer("{{ .Version }}", "9.9.9", "{{ .FullCommit }}", "c0ffee")
	config := releaseConfiguration(t)
	for _, build := range config.Builds {
		helm := "HELM=3"
		if slices.Contains(build.Flags, "-tags=helm4") {
			helm = "HELM=4"
		}
		settings := slices.Concat([]string{
			"GOTOOLCHAIN=go" + toolchain(t), "GOAMD64=" + build.Goamd64[0], "GOARM64=" + build.Goarm64[0],
			"-ldflags '" + version.Replace(strings.Join(build.Ldflags, " ")) + "'", build.Main,
		}, build.Flags, build.Env[1:])
		printed := run(t.Context(), t, "make", "--no-print-directory", "--dry-run", "dist/linux-amd64/chartwright", "dist/linux-arm64/chartwright",
			"release", "VERSION=v9.9.9", "COMMIT=c0ffee", helm)
		builds, releases := 0, 0
		for line := range strings.Lines(printed) {
			switch {
			case strings.Contains(line, "goreleaser release"):
				releases++
				if !strings.Contains(line, settings[0]+" ") {
					t.Errorf("another toolchain than that of go.mod: %s", line)
				}
			case strings.Contains(line, "go build") && strings.Contains(line, "./cmd/chartwright"):
				builds++
				for _, setting := range settings {
					if !strings.Contains(line+" ", setting) {
						t.Errorf("%s: no %s in %s", build.ID, setting, line)
					}
				}
			}
		}
		if builds != 2 || releases != 1 {
			t.Errorf("%s: %d binaries are built and %d releases made, want 2 and 1:\n%s", build.ID, builds, releases, printed)
		}
	}
	for _, build := range config.Builds {
		if !slices.Contains(build.Flags, "-trimpath") || !slices.Contains(build.Flags, "-buildvcs=false") || !slices.Contains(build.Env, "CGO_ENABLED=0") ||
			build.ModTimestamp != "{{ .CommitTimestamp }}" {
			t.Errorf("%s is not reproducible: flags %v, env %v, mod_timestamp %s", build.ID, build.Flags, build.Env, build.ModTimestamp)
		}
	}
	for _, sbom := range config.SBOMs {
		if sbom.Cmd != "cyclonedx-gomod" || !slices.Contains(sbom.Args, "-noserial") || !slices.Contains(sbom.Args, "-notimestamp") {
			t.Errorf("the SBOM contains a time: %s %v", sbom.Cmd, sbom.Args)
		}
	}
}
