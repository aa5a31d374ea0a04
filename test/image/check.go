package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/spf13/cobra"
)

// maxSize is the limit for the contents of the image of one platform.
const maxSize = 80 << 20

// machines are the machines of ELF binaries by architectures.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

func newCheck() *cobra.Command {
	var folder string
	var platforms []string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the operator's image in a layout: platforms, user, command, labels, size, and that it contains only the binary",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lines, err := check(folder, platforms)
			for _, line := range lines {
				fmt.Fprintln(cmd.OutOrStdout(), line) //nolint:errcheck // stdout is closed only at the end
			}
			return err
		},
	}
	cmd.Flags().StringVar(&folder, "layout", "dist/image", "`folder` of the layout")
	cmd.Flags().StringSliceVar(&platforms, "platform", nil, "`platforms` that the image must have")
	return cmd
}

// check returns a line for each platform in a layout. The error has a line for each
// problem.
func check(folder string, platforms []string) ([]string, error) {
	index, err := readLayout(folder)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var lines, found []string
	var problems []error
	for _, descriptor := range manifest.Manifests {
		image, err := index.Image(descriptor.Digest)
		if err != nil {
			return nil, err
		}
		platform := descriptor.Platform.String()
		found = append(found, platform)
		i := inspection{platform: descriptor.Platform}
		if err := i.inspect(image); err != nil {
			return nil, fmt.Errorf("%s: %w", platform, err)
		}
		for _, problem := range i.problems {
			problems = append(problems, fmt.Errorf("%s: %s", platform, problem))
		}
		lines = append(lines, fmt.Sprintf("%-12s %s, %.1f MiB, to download %.1f MiB, user %s, only /chartwright", platform,
			descriptor.Digest, mebibytes(i.size), mebibytes(i.download), i.config.User))
	}
	slices.Sort(platforms)
	slices.Sort(found)
	if !slices.Equal(found, platforms) {
		problems = append(problems, fmt.Errorf("platforms: got %v, want %v", found, platforms))
	}
	return lines, errors.Join(problems...)
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// inspection is the check of the image of one platform.
type inspection struct {
	platform *v1.Platform
	config   v1.Config
	// size is that of the contents, and download that of the compressed layers.
	size, download int64
	problems       []string
}

func (i *inspection) expectf(fulfilled bool, format string, args ...any) {
	if !fulfilled {
		i.problems = append(i.problems, fmt.Sprintf(format, args...))
	}
}

func (i *inspection) inspect(image v1.Image) error {
	file, err := image.ConfigFile()
	if err != nil {
		return err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	for _, layer := range manifest.Layers {
		i.download += layer.Size
	}
	i.config = file.Config
	i.expectf(file.OS == i.platform.OS && file.Architecture == i.platform.Architecture, "configuration: got platform %s/%s", file.OS, file.Architecture)
	i.expectf(i.config.User == "65532:65532", "user: got %q, want 65532:65532", i.config.User)
	i.expectf(slices.Equal(i.config.Entrypoint, []string{"/chartwright"}), "entrypoint: got %q, want /chartwright", i.config.Entrypoint)
	i.expectf(slices.Equal(i.config.Cmd, []string{"run"}), "command: got %q, want run", i.config.Cmd)
	i.expectf(i.config.WorkingDir == "/opt/chartwright", "working folder: got %q, want /opt/chartwright", i.config.WorkingDir)
	for _, label := range []string{"title", "description", "source", "url", "documentation", "licenses", "version", "revision", "created"} {
		i.expectf(i.config.Labels[labelPrefix+label] != "", "labels: missing %s", labelPrefix+label)
	}
	return i.contents(image)
}

// allowed are the entries of the image: the binary, and the working folder, where images
// of projects have their charts. In particular, there is no shell.
var allowed = map[string]byte{"chartwright": tar.TypeReg, "opt": tar.TypeDir, "opt/chartwright": tar.TypeDir}

// contents checks all files.
func (i *inspection) contents(image v1.Image) error {
	content := mutate.Extract(image)
	defer content.Close() //nolint:errcheck // it is only read
	missing := maps.Clone(allowed)
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name := strings.Trim(header.Name, "/")
		kind, known := allowed[name]
		i.expectf(known && kind == header.Typeflag, "contents: got %s, want only the binary and its working folder", name)
		i.expectf(header.Uid == 0 && header.Gid == 0 && header.Mode == 0o755, "contents: %s: got mode %o of %d:%d, want 755 of 0:0", name, header.Mode, header.Uid, header.Gid)
		delete(missing, name)
		i.size += header.Size
		if name == "chartwright" {
			if err := i.binary(reader); err != nil {
				return err
			}
		}
	}
	i.expectf(len(missing) == 0, "contents: missing %v", slices.Sorted(maps.Keys(missing)))
	i.expectf(i.size <= maxSize, "size: got %d bytes, want at most %d", i.size, maxSize)
	return nil
}

// binary checks that the binary is static, because the image has no libraries, and is
// for the platform.
func (i *inspection) binary(from io.Reader) error {
	data, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("/chartwright: %w", err)
	}
	want, known := machines[i.platform.Architecture]
	i.expectf(known && file.Machine == want, "binary: got machine %s, want %s", file.Machine, i.platform.Architecture)
	i.expectf(!slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), "binary: it needs libraries, want a static binary")
	return nil
}
