package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// imageField matches an image in a rendered manifest.
var imageField = regexp.MustCompile(`(?m)^\s*(?:- )?image: ["']?([^\s"'$]+)["']?\s*$`)

// references returns the images that a chart uses for a sample with changes in
// its spec. The operator renders the chart, so the names are those of the tests.
func references(ctx context.Context, o options, sample string, change func(spec map[string]any)) ([]string, error) {
	raw, err := os.ReadFile(filepath.Join(o.samples, sample+".yaml"))
	if err != nil {
		return nil, err
	}
	var resource map[string]any
	if err := yaml.Unmarshal(raw, &resource); err != nil {
		return nil, fmt.Errorf("sample %s: %w", sample, err)
	}
	spec, isMap := resource["spec"].(map[string]any)
	if !isMap {
		return nil, fmt.Errorf("sample %s: .spec: want a map", sample)
	}
	change(spec)
	if raw, err = yaml.Marshal(resource); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, o.program("chartwright"), "render", "-f", "-") //nolint:gosec // the program of this repository
	cmd.Stdin = bytes.NewReader(raw)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot render the sample %s: %w: %s", sample, err, stderr.String())
	}
	found := map[string]bool{}
	for _, match := range imageField.FindAllStringSubmatch(string(out), -1) {
		found[match[1]] = true
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the chart uses no image for the sample %s", sample)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// repository returns an image reference without tag and digest.
func repository(reference string) string {
	reference, _, _ = strings.Cut(reference, "@")
	if i := strings.LastIndex(reference, ":"); i > strings.LastIndex(reference, "/") {
		reference = reference[:i]
	}
	return reference
}

// majorVersion returns the major version in the tag of an image reference.
func majorVersion(reference string) string {
	tag := strings.TrimPrefix(reference[len(repository(reference)):], ":")
	major, _, _ := strings.Cut(tag, ".")
	major, _, _ = strings.Cut(major, "-")
	major, _, _ = strings.Cut(major, "@")
	return major
}
