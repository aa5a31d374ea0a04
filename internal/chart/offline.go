package chart

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	baseversion "k8s.io/component-base/version"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// CRDFolder returns the objects in the folders crds/ of a chart and its subcharts: CRDs, and
// others, which Helm creates there, too.
func CRDFolder(c *engine.Chart) (crds, others []RenderedObject, _ error) {
	for _, file := range c.CRDObjects() {
		source := strings.TrimPrefix(file.Filename, c.Name()+"/")
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(file.File.Data), 4096)
		for {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(&object.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", source, err)
			}
			switch found := (RenderedObject{Unstructured: object, Source: source}); {
			case len(object.Object) == 0:
			case object.GetKind() == "CustomResourceDefinition":
				crds = append(crds, found)
			default:
				others = append(others, found)
			}
		}
	}
	return crds, others, nil
}

// Offline holds the inputs of a render without a cluster.
type Offline struct {
	Release, Namespace string
	// Values are the values of the release. A render can change them.
	Values  map[string]any
	Numbers values.Numbers
	// APIVersions are added to the API versions of Kubernetes in
	// .Capabilities.APIVersions.
	APIVersions []string
	// KubeVersion is .Capabilities.KubeVersion, such as v1.36.0. If it is empty, it is
	// the version of the Kubernetes libraries in this binary.
	KubeVersion string
	// Unchecked skips the validation of the values.
	Unchecked bool
	// Upgrade renders an upgrade to revision 2 instead of an install.
	Upgrade bool
	// Lookup implements the template function lookup. If it is nil, lookup finds
	// nothing.
	Lookup render.Lookup
	// Reused holds results of template functions for several renders. If it is nil, each
	// call has its own.
	Reused *render.Reused
}

// Rendered is a rendered chart.
type Rendered struct {
	// Manifest is the manifest of the release record: all objects except hooks, in the
	// order of their installation.
	Manifest string
	Notes    string
	// Objects are the objects in the manifest.
	Objects, Hooks []RenderedObject

	Release *engine.Release
}

// HookManifest returns the hooks in the format of Manifest.
func (r *Rendered) HookManifest() string {
	var text strings.Builder
	for _, hook := range r.Release.Hooks {
		fmt.Fprintf(&text, "---\n# Source: %s\n%s\n", hook.Path, hook.Manifest)
	}
	return text.String()
}

// RenderedObject is one object that a chart renders.
type RenderedObject struct {
	*unstructured.Unstructured
	// Source is the path of its template, relative to the chart's folder.
	Source string
	// Events and DeletePolicies are the events and delete policies of a hook.
	Events, DeletePolicies []string
}

// Render renders the chart without a cluster, by Helm's own install. Errors wrap
// ErrInvalidValues, with every invalid path, or ErrRender.
func (c *Chart) Render(o Offline) (*Rendered, error) {
	in, err := c.prepare(o)
	if err != nil {
		return nil, err
	}
	capabilities, err := o.capabilities()
	if err != nil {
		return nil, err
	}
	options := FirstRevision(o.Release, o.Namespace)
	if o.Upgrade {
		options.Revision, options.IsInstall, options.IsUpgrade = 2, false, true
	}
	rendered, err := c.ExecuteTemplates(context.Background(), in, offline, options, capabilities, render.Options{Lookup: o.Lookup, Reused: o.Reused})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRender, err)
	}
	rls, err := DryRun(rendered, o.Release, o.Namespace, o.Values, capabilities.KubeVersion, o.APIVersions)
	if err != nil {
		return nil, err
	}
	return ReadRelease(rls)
}

// DryRun returns the release of a chart whose templates were executed by
// ExecuteTemplates. It uses Helm's own install without a cluster. The error wraps
// ErrRender.
func DryRun(executed *engine.Chart, name, namespace string, values map[string]any, kubernetes engine.KubeVersion, apiVersions []string) (*engine.Release, error) {
	install := engine.NewInstall(engine.NewConfiguration(engine.Config{}))
	engine.DryRunClient(install)
	install.ReleaseName, install.Namespace = name, namespace
	install.APIVersions, install.KubeVersion = apiVersions, &kubernetes
	install.SkipCRDs, install.SkipSchemaValidation, install.DisableOpenAPIValidation = true, true, true
	rls, err := install.Run(executed, values)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRender, err)
	}
	return rls, nil
}

// offline is the renderer of the commands, which run without an operator.
var offline = render.New(render.Defaults())

// capabilities returns .Capabilities for a render without a cluster.
func (o Offline) capabilities() (*engine.Capabilities, error) {
	kubernetes := cmp.Or(o.KubeVersion, librariesVersion)
	version, err := engine.ParseKubeVersion(kubernetes)
	if err != nil {
		return nil, fmt.Errorf("parse Kubernetes version %q: %w", kubernetes, err)
	}
	capabilities := engine.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	capabilities.APIVersions = append(capabilities.APIVersions, o.APIVersions...)
	return capabilities, nil
}

// librariesVersion is the version of the Kubernetes libraries in this binary. Helm's own
// default is v1.20 in all binaries but its own, which is too old for many charts.
const librariesVersion = "v" + baseversion.DefaultKubeBinaryVersion + ".0"

// ReadRelease decodes the objects of a release.
func ReadRelease(rls *engine.Release) (*Rendered, error) {
	rendered := &Rendered{Manifest: rls.Manifest, Notes: rls.Info.Notes, Release: rls}
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
		objects, err := ObjectsOf(name, rls.Manifest[at[2]:at[3]], rls.Manifest[at[1]:end])
		if err != nil {
			return nil, err
		}
		rendered.Objects = append(rendered.Objects, objects...)
	}
	var err error
	rendered.Hooks, err = hookObjects(name, rls.Hooks)
	return rendered, err
}

// sourceLine matches the lines that Helm writes before each object.
var sourceLine = regexp.MustCompile(`(?m)^---\n# Source: (.*)\n`)

// ObjectsOf decodes one YAML document that a template has rendered. If it is a list, the
// result contains the items.
func ObjectsOf(chartName, source, text string) ([]RenderedObject, error) {
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

func hookObjects(chartName string, hooks []*engine.Hook) ([]RenderedObject, error) {
	var all []RenderedObject
	for _, hook := range hooks {
		objects, err := ObjectsOf(chartName, hook.Path, hook.Manifest)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			object.Events, object.DeletePolicies = words(hook.Events), words(hook.DeletePolicies)
			all = append(all, object)
		}
	}
	return all, nil
}

func words[W ~string](of []W) []string {
	all := make([]string, len(of))
	for i, word := range of {
		all[i] = string(word)
	}
	return all
}

// CRDs returns the CRDs in the folders crds/ of the chart and its subcharts.
func (c *Chart) CRDs() ([]RenderedObject, error) {
	crds, _, err := CRDFolder(c.chart)
	return crds, err
}

// CRDFolder returns all objects in the folders crds/ of the chart and its subcharts.
func (c *Chart) CRDFolder() (crds, others []RenderedObject, err error) { return CRDFolder(c.chart) }
