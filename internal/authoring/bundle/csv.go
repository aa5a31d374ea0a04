package bundle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
)

// Annotations of a ClusterServiceVersion.
const (
	annotationExamples  = "alm-examples"
	annotationImage     = "containerImage"
	annotationCreated   = "createdAt"
	annotationNamespace = "operatorframework.io/suggested-namespace"
)

// csvName returns the name of the ClusterServiceVersion of an operator's version.
func csvName(operator, version string) string { return operator + ".v" + version }

// clusterServiceVersion returns the base with the derived fields.
func (m *maker) clusterServiceVersion(ctx context.Context) (map[string]any, error) {
	csv := m.base.DeepCopy()
	csv.SetName(csvName(m.Name, m.Version))
	if csv.GetNamespace() == "" {
		// Other tools require a namespace. OLM replaces it.
		csv.SetNamespace("placeholder")
	}
	examples := m.examples(ctx)
	listed, err := json.MarshalIndent(examples.resources, "", "  ")
	if err != nil {
		return nil, err
	}
	m.annotate(csv, string(listed))

	m.dropUnsupported()
	permissions, cluster := m.permissions()
	install := map[string]any{"deployments": m.deploymentSpecs()}
	if len(permissions) > 0 {
		install["permissions"] = permissions
	}
	if len(cluster) > 0 {
		install["clusterPermissions"] = cluster
	}
	fields := map[string]any{
		"version":                   m.Version,
		"install":                   map[string]any{"strategy": "deployment", "spec": install},
		"customresourcedefinitions": m.customResourceDefinitions(examples),
		"relatedImages":             m.relatedImages(examples),
	}
	if m.Replaces != "" {
		fields["replaces"] = csvName(m.Name, m.Replaces)
	}
	plain, err := unstructuredOf(fields)
	if err != nil {
		return nil, err
	}
	for key, value := range plain {
		if err := unstructured.SetNestedField(csv.Object, value, "spec", key); err != nil {
			return nil, fmt.Errorf("ClusterServiceVersion: %w", err)
		}
	}
	return csv.Object, nil
}

// unstructuredOf converts structs to maps and lists.
func unstructuredOf(fields any) (plain map[string]any, err error) {
	data, err := json.Marshal(fields)
	if err == nil {
		err = json.Unmarshal(data, &plain)
	}
	return plain, err
}

func (m *maker) annotate(csv *unstructured.Unstructured, examples string) {
	annotations := csv.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationExamples] = examples
	for _, d := range m.deployments {
		for _, container := range d.as.Spec.Template.Spec.Containers {
			if container.Image == Placeholder && m.Image != "" {
				annotations[annotationImage] = m.Image
			}
		}
	}
	if !m.CreatedAt.IsZero() {
		annotations[annotationCreated] = m.CreatedAt.UTC().Format(time.RFC3339)
	}
	if annotations[annotationNamespace] == "" && m.namespace != "" {
		annotations[annotationNamespace] = m.namespace
	}
	csv.SetAnnotations(annotations)
}

// deploymentSpecs returns the deployments with their images replaced.
func (m *maker) deploymentSpecs() []any {
	specs := make([]any, 0, len(m.deployments))
	for _, d := range m.deployments {
		spec, _, _ := unstructured.NestedMap(d.source.Object, "spec")
		for _, key := range []string{"initContainers", "containers"} {
			containers, _, _ := unstructured.NestedSlice(spec, "template", "spec", key)
			if len(containers) == 0 {
				continue
			}
			for _, container := range containers {
				m.replaceImage(d.as.Name, container)
			}
			_ = unstructured.SetNestedSlice(spec, containers, "template", "spec", key)
		}
		entry := map[string]any{"name": d.as.Name, "spec": spec}
		if len(d.as.Labels) > 0 {
			entry["label"] = d.as.Labels
		}
		specs = append(specs, entry)
	}
	return specs
}

func (m *maker) replaceImage(deployment string, container any) {
	fields, ok := container.(map[string]any)
	if !ok || fields["image"] != Placeholder {
		return
	}
	m.requiref(m.Image != "", "Deployment %s: the image of the container %v is the placeholder %s: set --image", deployment, fields["name"], Placeholder)
	fields["image"] = m.Image
}

// supportsSomeNamespaces reports whether the operator can be limited to namespaces.
func (m *maker) supportsSomeNamespaces() bool {
	return slices.ContainsFunc(m.spec.InstallModes, func(mode installMode) bool { return mode.Supported && mode.Type != "AllNamespaces" })
}

// owned describes one version of a CRD in a ClusterServiceVersion.
type owned struct {
	Name              string       `json:"name"`
	Version           string       `json:"version"`
	Kind              string       `json:"kind"`
	DisplayName       string       `json:"displayName,omitempty"`
	Description       string       `json:"description,omitempty"`
	Resources         []apiOf      `json:"resources,omitempty"`
	SpecDescriptors   []descriptor `json:"specDescriptors,omitempty"`
	StatusDescriptors []descriptor `json:"statusDescriptors,omitempty"`
}

// apiOf is a kind of the objects of a custom resource. OLM requires the field Name, which
// is not used for objects.
type apiOf struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// customResourceDefinitions describes the kinds. Fields in the base override derived ones,
// and required CRDs in the base are preserved.
func (m *maker) customResourceDefinitions(examples examples) map[string]any {
	written, _, _ := unstructured.NestedMap(m.base.Object, "spec", "customresourcedefinitions")
	list, _ := written["owned"].([]any)
	entries := []any{}
	for _, d := range m.definitions {
		kind := schema.GroupKind{Group: d.as.Spec.Group, Kind: d.as.Spec.Names.Kind}
		for _, version := range d.as.Spec.Versions {
			entry := owned{Name: d.as.Name, Version: version.Name, Kind: kind.Kind, DisplayName: words(kind.Kind), Resources: examples.kinds[kind]}
			if version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
				entry.Description = version.Schema.OpenAPIV3Schema.Description
				entry.SpecDescriptors = specDescriptors(version)
				entry.StatusDescriptors = statusDescriptors(version, m.served(kind))
			}
			entries = append(entries, overlay(entry, list))
		}
	}
	described := map[string]any{"owned": entries}
	if required := written["required"]; required != nil {
		described["required"] = required
	}
	return described
}

// overlay overrides a derived description with the fields in the base.
func overlay(entry owned, written []any) any {
	at := slices.IndexFunc(written, func(one any) bool {
		fields, _ := one.(map[string]any)
		return fields["name"] == entry.Name && fields["version"] == entry.Version
	})
	if at < 0 {
		return entry
	}
	// The conversion cannot fail: the fields are strings and lists.
	merged, _ := unstructuredOf(entry)
	by, _ := written[at].(map[string]any)
	maps.Copy(merged, by)
	return merged
}

// served returns the kind of the watches file with a group and kind, or nil.
func (m *maker) served(kind schema.GroupKind) *catalog.Kind {
	if i := slices.IndexFunc(m.Kinds, func(k catalog.Kind) bool { return k.GVK().GroupKind() == kind }); i >= 0 {
		return &m.Kinds[i]
	}
	return nil
}

// relatedImages returns the images in the base, of the operator, and of the objects of the
// examples.
func (m *maker) relatedImages(examples examples) []relatedImage {
	var images []relatedImage
	add := func(more ...relatedImage) {
		for _, image := range more {
			if !slices.ContainsFunc(images, func(known relatedImage) bool { return known.Image == image.Image }) {
				images = append(images, image)
			}
		}
	}
	add(m.spec.RelatedImages...)
	for _, d := range m.deployments {
		for _, container := range slices.Concat(d.as.Spec.Template.Spec.InitContainers, d.as.Spec.Template.Spec.Containers) {
			add(relatedImage{Name: container.Name, Image: m.imageOf(container)})
		}
	}
	add(examples.images...)
	return images
}

func (m *maker) imageOf(container corev1.Container) string {
	if container.Image == Placeholder {
		return cmp.Or(m.Image, container.Image)
	}
	return container.Image
}

// baseSpec contains the fields of the base's spec that are checked or used. Other fields
// are not changed.
type baseSpec struct {
	DisplayName string `json:"displayName"`
	Description string `json:"description"`
	Icon        []struct {
		Data      string `json:"base64data"`
		MediaType string `json:"mediatype"`
	} `json:"icon"`
	Maintainers []struct {
		Name  string `json:"name"`
		Email string `json:"email"`
	} `json:"maintainers"`
	Links          []link         `json:"links"`
	Provider       link           `json:"provider"`
	MinKubeVersion string         `json:"minKubeVersion"`
	InstallModes   []installMode  `json:"installModes"`
	RelatedImages  []relatedImage `json:"relatedImages"`
}

type link struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

type installMode struct {
	Type      string `json:"type"`
	Supported bool   `json:"supported"`
}

// relatedImage is an image that must be mirrored for clusters without access to its
// registry.
type relatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// readSpec reads the spec of the base.
func readSpec(base *unstructured.Unstructured) (baseSpec, error) {
	var read baseSpec
	data, err := json.Marshal(base.Object["spec"])
	if err == nil {
		err = json.Unmarshal(data, &read)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return read, fmt.Errorf("ClusterServiceVersion: spec.%s: unexpected type %s", wrong.Field, wrong.Value)
	}
	return read, err
}
