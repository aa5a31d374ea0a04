package helm

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	baseversion "k8s.io/component-base/version"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/chart/render"
)

// Offline is what a chart is rendered for where there is no cluster to ask.
// There, lookup finds nothing, and the API versions are those of Kubernetes
// itself.
type Offline struct {
	Release, Namespace string
	// Values are given to the chart, as to an action; a render may change them.
	Values map[string]any
	// APIVersions are what .Capabilities.APIVersions has besides.
	APIVersions []string
	// KubeVersion is .Capabilities.KubeVersion, as v1.36.0; empty is that of
	// the Kubernetes libraries in this binary.
	KubeVersion string
	// Unchecked renders values that the chart's schemas refuse, too.
	Unchecked bool
	// Upgrade renders revision 2 in the place of an install.
	Upgrade bool
	// Lookup answers the template function of that name; without it, lookup
	// finds nothing.
	Lookup render.Lookup
}

// Rendered is what a chart makes of values.
type Rendered struct {
	// Manifest holds the objects but for hooks, in the order in which they are
	// installed, as the release record has them.
	Manifest string
	Notes    string
	// Objects are those of the manifest, Hooks the others.
	Objects, Hooks []RenderedObject

	release *release.Release
}

// RecordSize returns how large the record of a rendered release would be, of
// MaxRecord bytes that it may have.
func RecordSize(r *Rendered) (int, error) {
	data, err := pack(r.release)
	return len(data), err
}

// HookManifest returns the hooks as they are written, with their templates, in
// the way of Manifest.
func (r *Rendered) HookManifest() string {
	var text strings.Builder
	for _, hook := range r.release.Hooks {
		fmt.Fprintf(&text, "---\n# Source: %s\n%s\n", hook.Path, hook.Manifest)
	}
	return text.String()
}

// RenderedObject is one object that a chart renders.
type RenderedObject struct {
	*unstructured.Unstructured
	// Source is the template that it came from, relative to the chart's folder.
	Source string
	// Events and DeletePolicies are a hook's, by Helm's words.
	Events, DeletePolicies []string
}

// Render renders the chart without a cluster, by Helm's own install. Errors are
// ErrInvalidValues, with every path that the chart's schemas refuse, and
// ErrRender.
func (c *Chart) Render(o Offline) (*Rendered, error) {
	in, err := c.unchecked(o.Values)
	if err == nil && !o.Unchecked {
		err = c.schemas.validate(in.chart, in.values)
	}
	if err != nil {
		return nil, err
	}
	capabilities, err := offlineCapabilities(cmp.Or(o.KubeVersion, librariesVersion), o.APIVersions)
	if err != nil {
		return nil, err
	}
	options := firstRevision(o.Release, o.Namespace)
	if o.Upgrade {
		options.Revision, options.IsInstall, options.IsUpgrade = 2, false, true
	}
	rendered, err := c.rendered(context.Background(), in, offline, options, capabilities, render.Options{Lookup: o.Lookup})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRender, err)
	}
	install := action.NewInstall(&action.Configuration{
		KubeClient: &kubefake.PrintingKubeClient{Out: io.Discard, LogOutput: io.Discard},
		Releases:   storage.Init(driver.NewMemory()),
		Log:        func(string, ...any) {},
	})
	install.ReleaseName, install.Namespace = o.Release, o.Namespace
	install.ClientOnly, install.DryRun, install.DryRunOption = true, true, "client"
	install.APIVersions = o.APIVersions
	install.SkipCRDs, install.SkipSchemaValidation, install.DisableOpenAPIValidation = true, true, true
	install.KubeVersion = &capabilities.KubeVersion
	rls, err := install.Run(rendered, o.Values)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRender, err)
	}
	return read(rls)
}

// offline renders where there is no operator.
var offline = render.New(render.Defaults())

// offlineCapabilities are what charts see of a cluster that is not there.
func offlineCapabilities(kubernetes string, apiVersions []string) (*chartutil.Capabilities, error) {
	version, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		return nil, fmt.Errorf("the version of Kubernetes %q: %w", kubernetes, err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	capabilities.APIVersions = append(capabilities.APIVersions, apiVersions...)
	return capabilities, nil
}

// librariesVersion is the version of Kubernetes whose client this binary has.
// Helm's own default is set where its command is built, and is v1.20 elsewhere,
// which is too old for many charts.
const librariesVersion = "v" + baseversion.DefaultKubeBinaryVersion + ".0"

// read takes the objects out of a release.
func read(rls *release.Release) (*Rendered, error) {
	rendered := &Rendered{Manifest: rls.Manifest, Notes: rls.Info.Notes, release: rls}
	name := ""
	if rls.Chart != nil {
		name = rls.Chart.Name()
	}
	parts := sourceLine.FindAllStringSubmatchIndex(rls.Manifest, -1)
	for i, at := range parts {
		end := len(rls.Manifest)
		if i+1 < len(parts) {
			end = parts[i+1][0]
		}
		objects, err := objectsOf(name, rls.Manifest[at[2]:at[3]], rls.Manifest[at[1]:end])
		if err != nil {
			return nil, err
		}
		rendered.Objects = append(rendered.Objects, objects...)
	}
	for _, hook := range rls.Hooks {
		objects, err := hookObjects(name, hook)
		if err != nil {
			return nil, err
		}
		rendered.Hooks = append(rendered.Hooks, objects...)
	}
	return rendered, nil
}

// sourceLine is what Helm writes before each object.
var sourceLine = regexp.MustCompile(`(?m)^---\n# Source: (.*)\n`)

// objectsOf decodes what one template of a chart has rendered for one object,
// which may be a list of several.
func objectsOf(chartName, source, text string) ([]RenderedObject, error) {
	source = strings.TrimPrefix(source, chartName+"/")
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRender, source, err)
	}
	if len(content) == 0 {
		return nil, nil
	}
	object := &unstructured.Unstructured{Object: content}
	if !object.IsList() {
		return []RenderedObject{{Unstructured: object, Source: source}}, nil
	}
	list, err := object.ToList()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRender, source, err)
	}
	objects := make([]RenderedObject, len(list.Items))
	for i := range list.Items {
		objects[i] = RenderedObject{Unstructured: &list.Items[i], Source: source}
	}
	return objects, nil
}

func hookObjects(chartName string, hook *release.Hook) ([]RenderedObject, error) {
	objects, err := objectsOf(chartName, hook.Path, hook.Manifest)
	for i := range objects {
		objects[i].Events, objects[i].DeletePolicies = words(hook.Events), words(hook.DeletePolicies)
	}
	return objects, err
}

func words[W ~string](of []W) []string {
	all := make([]string, len(of))
	for i, word := range of {
		all[i] = string(word)
	}
	return all
}

// CRDs returns the definitions of the folders crds/, those of subcharts too.
func (c *Chart) CRDs() ([]RenderedObject, error) { return definitions(c.chart) }
