package main

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// options are the folders of the command build.
type options struct {
	bin, out, samples string
	// operator is an optional layout of the operator's image.
	operator string
}

// layers is the folder with the layers, which several images share.
func (o options) layers() string { return filepath.Join(o.out, "layers") }

// layer is the file of a layer.
func (o options) layer(key string) string { return filepath.Join(o.layers(), digest(key)+".tar") }

// image is an image to build.
type image struct {
	// reference is the name with the tag.
	reference string
	layers    []layer
	config    v1.Config
}

// layer is a part of a file system.
type layer interface {
	// key is the same as long as the content is the same.
	key() (string, error)
	// write writes a tar archive.
	write(ctx context.Context, o options, file string) error
}

// buildAll builds the images whose inputs changed, and removes old archives.
func buildAll(ctx context.Context, o options) error {
	if err := os.MkdirAll(o.layers(), 0o755); err != nil {
		return err
	}
	images, err := list(ctx, o)
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, image := range images {
		build := image.build
		if image.reference == operatorImage && o.operator != "" {
			build = image.copyFromLayout
		}
		file, err := build(ctx, o)
		if err != nil {
			return fmt.Errorf("image %s: %w", image.reference, err)
		}
		keep[file] = true
		for _, l := range image.layers {
			key, err := l.key()
			if err != nil {
				return err
			}
			keep[o.layer(key)] = true
		}
	}
	return removeOthers(keep, filepath.Join(o.out, "*.tar"), filepath.Join(o.layers(), "*"))
}

// removeOthers removes files that match the patterns and are not in the list.
func removeOthers(keep map[string]bool, patterns ...string) error {
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, file := range files {
			if keep[file] {
				continue
			}
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// build writes the archive of the image, unless it exists. The name of the file
// depends on all inputs.
func (i image) build(ctx context.Context, o options) (string, error) {
	keys := []string{fmt.Sprintf("%s %+v", i.reference, i.config)}
	for _, l := range i.layers {
		key, err := l.key()
		if err != nil {
			return "", err
		}
		keys = append(keys, key)
	}
	archive := i.archive(o, digest(keys...))
	if exists, err := isFile(archive); exists || err != nil {
		return archive, err
	}
	fmt.Printf("building the image %s ...\n", i.reference)
	files, err := i.layerFiles(ctx, o)
	if err != nil {
		return "", err
	}
	return archive, writeArchive(archive, i.reference, i.config, files)
}

// archive returns the path of an archive with these inputs.
func (i image) archive(o options, inputs string) string {
	base := strings.NewReplacer("/", "_", ":", "_").Replace(i.reference)
	return filepath.Join(o.out, base+"-"+inputs+".tar")
}

// copyFromLayout is like build, but takes the operator's image of this architecture
// from its layout.
func (i image) copyFromLayout(_ context.Context, o options) (string, error) {
	index, err := readLayout(o.operator)
	if err != nil {
		return "", err
	}
	platform := v1.Platform{OS: "linux", Architecture: architecture}
	found, err := partial.FindImages(index, match.Platforms(platform))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%s has %d images for %s, want one", o.operator, len(found), platform)
	}
	hash, err := found[0].Digest()
	if err != nil {
		return "", err
	}
	archive := i.archive(o, digest(hash.String()))
	if exists, err := isFile(archive); exists || err != nil {
		return archive, err
	}
	fmt.Printf("copying the image %s from %s ...\n", i.reference, o.operator)
	return archive, writeTarball(archive, i.reference, found[0])
}

// layerFiles returns the files of the layers. It creates those that do not exist.
func (i image) layerFiles(ctx context.Context, o options) ([]string, error) {
	files := make([]string, len(i.layers))
	for n, l := range i.layers {
		file, err := layerFile(ctx, o, l)
		if err != nil {
			return nil, err
		}
		files[n] = file
	}
	return files, nil
}

// layerFile returns the file of a layer. It creates the layer unless it exists.
func layerFile(ctx context.Context, o options, l layer) (string, error) {
	key, err := l.key()
	if err != nil {
		return "", err
	}
	file := o.layer(key)
	if exists, err := isFile(file); exists || err != nil {
		return file, err
	}
	if err := l.write(ctx, o, file+".new"); err != nil {
		return "", errors.Join(err, os.RemoveAll(file+".new"))
	}
	return file, os.Rename(file+".new", file)
}

// writeArchive writes an image archive, as `docker load` and `ctr images import`
// read it.
func writeArchive(archive, reference string, config v1.Config, files []string) error {
	// Archives of this size are read about as often as they are written.
	result, err := assemble(empty.Image, files, tarball.WithCompressionLevel(gzip.BestSpeed))
	if err != nil {
		return err
	}
	if result, err = configure(result, v1.ConfigFile{OS: "linux", Architecture: architecture, Config: config}); err != nil {
		return err
	}
	return writeTarball(archive, reference, result)
}

func writeTarball(archive, reference string, image v1.Image) error {
	tag, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return err
	}
	if err := tarball.WriteToFile(archive+".new", tag, image); err != nil {
		return errors.Join(err, os.RemoveAll(archive+".new"))
	}
	return os.Rename(archive+".new", archive)
}

// assemble appends layers to an image.
func assemble(result v1.Image, files []string, options ...tarball.LayerOption) (v1.Image, error) {
	for _, file := range files {
		l, err := tarball.LayerFromFile(file, options...)
		if err != nil {
			return nil, err
		}
		if result, err = mutate.AppendLayers(result, l); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// configure sets the configuration of an image, except for its layers.
func configure(result v1.Image, config v1.ConfigFile) (v1.Image, error) {
	content, err := result.ConfigFile()
	if err != nil {
		return nil, err
	}
	content = content.DeepCopy()
	content.OS, content.Architecture, content.Config, content.Created = config.OS, config.Architecture, config.Config, config.Created
	return mutate.ConfigFile(result, content)
}

func digest(keys ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(keys, "\n"))))[:12]
}

func isFile(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
