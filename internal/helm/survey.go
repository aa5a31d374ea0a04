package helm

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/releaseutil"

	"github.com/chartwright/chartwright/internal/chart/render"
)

// Survey renders a chart over and over without a cluster, as Render does, for
// who wants to know what objects it may make. What a template has rendered
// before is not read again, which is most of what a render costs.
type Survey struct {
	chart *Chart
	caps  *chartutil.Capabilities
	// read holds the texts of templates that were read, by their files, and why
	// some of them could not be.
	read map[string]map[string]error
}

// Survey returns one of the chart. APIVersions are what
// .Capabilities.APIVersions has beside those of Kubernetes itself.
func (c *Chart) Survey(apiVersions []string) (*Survey, error) {
	caps, err := offlineCapabilities(librariesVersion, apiVersions)
	if err != nil {
		return nil, err
	}
	return &Survey{chart: c, caps: caps, read: map[string]map[string]error{}}, nil
}

// Render renders the chart for a release and values, and returns those objects
// and hooks that stand in no template's text of an earlier render. Errors are
// ErrInvalidValues and ErrRender.
func (s *Survey) Render(release, namespace string, values map[string]any) (objects, hooks []RenderedObject, err error) {
	files, name, err := s.files(release, namespace, values)
	if err != nil {
		return nil, nil, err
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		text := files[file]
		if path.Base(file) == "NOTES.txt" {
			continue
		}
		if before, known := s.read[file][text]; known {
			if before != nil {
				return nil, nil, before
			}
			continue
		}
		more, moreHooks, err := readFile(name, file, text)
		if s.read[file] == nil {
			s.read[file] = map[string]error{}
		}
		s.read[file][text] = err
		if err != nil {
			return nil, nil, err
		}
		objects, hooks = append(objects, more...), append(hooks, moreHooks...)
	}
	return objects, hooks, nil
}

// files renders the templates.
func (s *Survey) files(release, namespace string, values map[string]any) (files map[string]string, name string, err error) {
	in, err := s.chart.input(values)
	if err != nil {
		return nil, "", err
	}
	if needs := in.chart.Metadata.KubeVersion; needs != "" && !chartutil.IsCompatibleRange(needs, s.caps.KubeVersion.String()) {
		return nil, "", fmt.Errorf("%w: the chart needs Kubernetes %s, and this is %s", ErrRender, needs, s.caps.KubeVersion.String())
	}
	files, err = s.chart.render(context.Background(), in, offline, firstRevision(release, namespace), s.caps, render.Options{})
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrRender, err)
	}
	return files, in.chart.Name(), nil
}

// readFile takes the objects out of what one template has rendered.
func readFile(chartName, file, text string) (objects, hooks []RenderedObject, err error) {
	events, manifests, err := releaseutil.SortManifests(map[string]string{file: text}, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRender, err)
	}
	for _, manifest := range manifests {
		more, err := objectsOf(chartName, file, manifest.Content)
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, more...)
	}
	for _, hook := range events {
		more, err := hookObjects(chartName, hook)
		if err != nil {
			return nil, nil, err
		}
		hooks = append(hooks, more...)
	}
	return objects, hooks, nil
}
