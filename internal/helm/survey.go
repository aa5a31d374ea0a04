package helm

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// Trials renders a chart over and over without a cluster, as Render does, for
// who wants to know what objects it may make. What a template has rendered
// before is not read again, which is most of what a render costs.
type Trials struct {
	chart *Chart
	caps  *chartutil.Capabilities
	// read holds the texts of templates that were read, by their files, and why
	// some of them could not be.
	read map[string]map[string]error
}

// Trials returns trials of the chart. APIVersions are what
// .Capabilities.APIVersions has beside those of Kubernetes itself.
func (c *Chart) Trials(apiVersions []string) (*Trials, error) {
	caps, err := offlineCapabilities(librariesVersion, apiVersions)
	if err != nil {
		return nil, err
	}
	return &Trials{chart: c, caps: caps, read: map[string]map[string]error{}}, nil
}

// Render renders the chart for a release and values, and returns those objects
// and hooks that stand in no template's text of an earlier render. Errors are
// ErrInvalidValues and ErrRender.
func (t *Trials) Render(release, namespace string, values map[string]any) (objects, hooks []RenderedObject, err error) {
	files, name, err := t.files(release, namespace, values)
	if err != nil {
		return nil, nil, err
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		text := files[file]
		if path.Base(file) == "NOTES.txt" {
			continue
		}
		if before, known := t.read[file][text]; known {
			if before != nil {
				return nil, nil, before
			}
			continue
		}
		more, moreHooks, err := readFile(name, file, text)
		if t.read[file] == nil {
			t.read[file] = map[string]error{}
		}
		t.read[file][text] = err
		if err != nil {
			return nil, nil, err
		}
		objects, hooks = append(objects, more...), append(hooks, moreHooks...)
	}
	return objects, hooks, nil
}

// files renders the templates.
func (t *Trials) files(release, namespace string, values map[string]any) (files map[string]string, name string, err error) {
	in, err := t.chart.input(values)
	if err != nil {
		return nil, "", err
	}
	if needs := in.chart.Metadata.KubeVersion; needs != "" && !chartutil.IsCompatibleRange(needs, t.caps.KubeVersion.String()) {
		return nil, "", fmt.Errorf("%w: the chart needs Kubernetes %s, and this is %s", ErrRender, needs, t.caps.KubeVersion.String())
	}
	files, err = t.chart.render(context.Background(), in, offline, firstRevision(release, namespace), t.caps, nil)
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
