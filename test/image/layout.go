package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/spf13/cobra"
)

// release is the image of the operator for several platforms.
type release struct {
	reference string
	// binaries are the paths of the static binaries, by platforms such as linux/amd64.
	binaries          map[string]string
	version, revision string
	// created is the optional time of the commit, so that the same sources produce the
	// same image.
	created string
}

func newLayout() *cobra.Command {
	var r release
	var out string
	cmd := &cobra.Command{
		Use:   "layout",
		Short: "Write the operator's image for several platforms as an OCI image layout",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return r.write(cmd.Context(), out) },
	}
	flags := cmd.Flags()
	flags.StringVar(&out, "out", "dist/image", "`folder` of the layout, which is replaced")
	flags.StringVar(&r.reference, "name", "", "`name` of the image, with a tag")
	flags.StringToStringVar(&r.binaries, "binary", nil, "`platform=path` of a binary; repeat it for each platform")
	flags.StringVar(&r.version, "version", "", "`version` for the labels")
	flags.StringVar(&r.revision, "revision", "", "`commit` for the labels")
	flags.StringVar(&r.created, "created", "", "`time` for the labels, such as 2006-01-02T15:04:05Z")
	for _, required := range []string{"name", "binary", "version"} {
		if err := cmd.MarkFlagRequired(required); err != nil {
			panic(err)
		}
	}
	return cmd
}

// labelPrefix is that of the standard labels of images.
const labelPrefix = "org.opencontainers.image."

// labels returns the labels of the image, which are also the annotations of its index.
func (r release) labels(created time.Time) map[string]string {
	const project = "https://github.com/chartwright/chartwright"
	labels := map[string]string{
		"title": "chartwright", "description": "Operator that turns Helm charts into Kubernetes kinds",
		"url": project, "source": project, "documentation": project + "/tree/main/docs", "licenses": "Apache-2.0", "version": r.version,
	}
	if r.revision != "" {
		labels["revision"] = r.revision
	}
	if !created.IsZero() {
		labels["created"] = created.Format(time.RFC3339)
	}
	prefixed := map[string]string{}
	for name, value := range labels {
		prefixed[labelPrefix+name] = value
	}
	return prefixed
}

// write replaces the layout in a folder.
func (r release) write(ctx context.Context, folder string) error {
	if _, err := name.NewTag(r.reference); err != nil {
		return fmt.Errorf("--name: %w", err)
	}
	var created time.Time
	if r.created != "" {
		parsed, err := time.Parse(time.RFC3339, r.created)
		if err != nil {
			return fmt.Errorf("--created: %w", err)
		}
		created = parsed.UTC()
	}
	scratch, err := os.MkdirTemp("", "chartwright-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // a leftover does no harm
	labels := r.labels(created)
	var index v1.ImageIndex = empty.Index
	for _, name := range slices.Sorted(maps.Keys(r.binaries)) {
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return err
		}
		built, err := r.build(ctx, options{out: scratch}, platform, labels, created)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: built, Descriptor: v1.Descriptor{Platform: platform}})
	}
	annotated, isIndex := mutate.Annotations(index, labels).(v1.ImageIndex)
	if !isIndex {
		return errors.New("the annotated index is not an index")
	}
	return writeLayout(folder, r.reference, annotated)
}

// build returns the image of one platform.
func (r release) build(ctx context.Context, o options, platform *v1.Platform, labels map[string]string, created time.Time) (v1.Image, error) {
	image := operator(r.reference, r.binaries[platform.String()])
	if err := os.MkdirAll(o.layers(), 0o700); err != nil {
		return nil, err
	}
	files, err := image.layerFiles(ctx, o)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	result, err := assemble(base, files, tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	config := image.config
	config.Labels = labels
	return configure(result, v1.ConfigFile{OS: platform.OS, Architecture: platform.Architecture, Config: config, Created: v1.Time{Time: created}})
}

// writeLayout writes a layout with one index. Container engines read the name of the
// image from the annotations.
func writeLayout(folder, reference string, index v1.ImageIndex) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	_, tag, _ := strings.Cut(reference[strings.LastIndex(reference, "/")+1:], ":")
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		labelPrefix + "ref.name": tag, "io.containerd.image.name": reference,
	}))
}

// readLayout returns the index of the image in a layout.
func readLayout(folder string) (v1.ImageIndex, error) {
	outer, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, fmt.Errorf("%s: want an OCI image layout, as `make image` writes it: %w", folder, err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 || !manifest.Manifests[0].MediaType.IsIndex() {
		return nil, fmt.Errorf("%s: want a layout with one index of platforms", folder)
	}
	return outer.ImageIndex(manifest.Manifests[0].Digest)
}

func newPush() *cobra.Command {
	var folder string
	cmd := &cobra.Command{
		Use:   "push NAME",
		Short: "Push a layout to a registry, with the login of docker, podman or the environment",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pushed, err := push(cmd.Context(), folder, args[0])
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), pushed) //nolint:errcheck // stdout is closed only at the end
			}
			return err
		},
	}
	cmd.Flags().StringVar(&folder, "layout", "dist/image", "`folder` of the layout")
	return cmd
}

// push pushes a layout and returns its name with the digest.
func push(ctx context.Context, folder, reference string) (string, error) {
	tag, err := name.NewTag(reference)
	if err != nil {
		return "", err
	}
	index, err := readLayout(folder)
	if err != nil {
		return "", err
	}
	hash, err := index.Digest()
	if err != nil {
		return "", err
	}
	if err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", err
	}
	return tag.Name() + "@" + hash.String(), nil
}
