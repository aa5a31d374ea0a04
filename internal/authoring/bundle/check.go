package bundle

import (
	"encoding/base64"
	"net/mail"
	"net/url"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// What catalogs know, see https://olm.operatorframework.io and
// https://sdk.operatorframework.io.
var (
	modes        = []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"}
	capabilities = []string{"Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"}
	categories   = []string{
		"AI/Machine Learning", "Application Runtime", "Big Data", "Cloud Provider", "Database", "Developer Tools",
		"Drivers and plugins", "Integration & Delivery", "Logging & Tracing", "Modernization & Migration",
		"Monitoring", "Networking", "Observability", "OpenShift Optional", "Security", "Storage", "Streaming & Messaging",
	}
	iconTypes = []string{"image/gif", "image/jpeg", "image/png", "image/svg+xml"}
	// conventional begin the names of channels.
	conventional = []string{"candidate", "fast", "stable"}
)

// check finds what OLM, or a catalog such as OperatorHub, would refuse.
func (m *maker) check() {
	m.checkVersions()
	m.checkText()
	m.checkIcon()
	m.checkModes()
	m.checkAnnotations()
	m.checkExamples()
	m.requiref(len(m.deployments) > 0, "config/manifests has no Deployment: nothing would be installed")
	for _, channel := range m.Channels {
		m.advisef(slices.ContainsFunc(conventional, func(begin string) bool { return strings.HasPrefix(channel, begin) }),
			"the channel %s: by custom the names of channels begin with %s", channel, strings.Join(conventional, ", "))
	}
	m.advisef(m.DefaultChannel == "" || slices.Contains(m.Channels, m.DefaultChannel),
		"the default channel %s is none that this bundle is in: some other has to be", m.DefaultChannel)
}

func (m *maker) checkVersions() {
	version, err := semver.StrictNewVersion(m.Version)
	switch {
	case err != nil:
		m.problemf("the version %q: expected one of Semantic Versioning, such as 1.2.3", m.Version)
	case version.String() == "0.0.0":
		m.problemf("the version 0.0.0 is taken for none: choose a higher one")
	}
	name := csvName(m.Name, m.Version)
	if problems := validation.IsDNS1123Subdomain(name); err == nil && len(problems) > 0 {
		m.problemf("the version %q: %s cannot be a name: %s", m.Version, name, strings.Join(problems, "; "))
	}
	if m.Replaces != "" {
		before, err := semver.StrictNewVersion(m.Replaces)
		switch {
		case err != nil:
			m.problemf("the version %q that is replaced: expected one of Semantic Versioning, such as 1.2.2", m.Replaces)
		case version != nil && !before.LessThan(version):
			m.problemf("the version %s cannot replace %s, which is not lower", m.Version, m.Replaces)
		}
	}
	if m.spec.MinKubeVersion != "" {
		_, err := semver.StrictNewVersion(m.spec.MinKubeVersion)
		m.requiref(err == nil, "ClusterServiceVersion: spec.minKubeVersion: %q: expected three numbers, such as 1.29.0", m.spec.MinKubeVersion)
	}
}

func (m *maker) checkText() {
	m.requiref(m.spec.DisplayName != "", "ClusterServiceVersion: spec.displayName: missing: it is the operator's name for people")
	m.requiref(m.spec.Provider.Name != "", "ClusterServiceVersion: spec.provider.name: missing: it is who stands behind the operator")
	m.advisef(m.spec.Description != "", "ClusterServiceVersion: spec.description: it is what a catalog shows of the operator, in Markdown")
	m.advisef(len(m.spec.Maintainers) > 0, "ClusterServiceVersion: spec.maintainers: catalogs such as OperatorHub show whom to ask")
	for i, one := range m.spec.Maintainers {
		_, err := mail.ParseAddress(one.Email)
		m.requiref(err == nil && one.Name != "", "ClusterServiceVersion: spec.maintainers[%d]: %q <%s>: expected a name, and an email address", i, one.Name, one.Email)
	}
	for i, one := range m.spec.Links {
		at, err := url.ParseRequestURI(one.URL)
		m.requiref(err == nil && at.Host != "" && one.Name != "", "ClusterServiceVersion: spec.links[%d]: %q %q: expected a name, and a url such as https://example.com", i, one.Name, one.URL)
	}
}

func (m *maker) checkIcon() {
	if len(m.spec.Icon) == 0 {
		m.notef("ClusterServiceVersion: spec.icon: catalogs such as OperatorHub want one")
		return
	}
	m.requiref(len(m.spec.Icon) == 1, "ClusterServiceVersion: spec.icon: there are %d: expected one", len(m.spec.Icon))
	icon := m.spec.Icon[0]
	data, err := base64.StdEncoding.DecodeString(icon.Data)
	m.requiref(err == nil && len(data) > 0, "ClusterServiceVersion: spec.icon[0].base64data: expected a picture, in base64")
	m.requiref(slices.Contains(iconTypes, icon.MediaType), "ClusterServiceVersion: spec.icon[0].mediatype: %q: expected one of %s", icon.MediaType, strings.Join(iconTypes, ", "))
}

func (m *maker) checkModes() {
	supported := false
	seen := map[string]bool{}
	for i, mode := range m.spec.InstallModes {
		m.requiref(slices.Contains(modes, mode.Type) && !seen[mode.Type],
			"ClusterServiceVersion: spec.installModes[%d].type: %q: expected each once of %s", i, mode.Type, strings.Join(modes, ", "))
		seen[mode.Type] = true
		supported = supported || mode.Supported
	}
	m.requiref(supported, "ClusterServiceVersion: spec.installModes: none is supported: expected one at least of %s", strings.Join(modes, ", "))
	m.requiref(!m.supportsSomeNamespaces() || m.readsTargetNamespaces(),
		"ClusterServiceVersion: spec.installModes: the operator is said to be for a few namespaces, but no container has WATCH_NAMESPACE from metadata.annotations['olm.targetNamespaces'], which OLM fills in: "+
			"add it in config/manifests/kustomization.yaml, or support AllNamespaces alone")
}

// readsTargetNamespaces reports whether a container gets its namespaces from OLM.
func (m *maker) readsTargetNamespaces() bool {
	isTarget := func(env corev1.EnvVar) bool {
		return env.Name == "WATCH_NAMESPACE" && env.ValueFrom != nil && env.ValueFrom.FieldRef != nil &&
			env.ValueFrom.FieldRef.FieldPath == "metadata.annotations['olm.targetNamespaces']"
	}
	return slices.ContainsFunc(m.deployments, func(d typed[appsv1.Deployment]) bool {
		return slices.ContainsFunc(d.as.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return slices.ContainsFunc(c.Env, isTarget) })
	})
}

func (m *maker) checkAnnotations() {
	annotations := m.base.GetAnnotations()
	level, given := annotations["capabilities"]
	m.requiref(!given || slices.Contains(capabilities, level), "ClusterServiceVersion: metadata.annotations.capabilities: %q: expected one of %s", level, strings.Join(capabilities, ", "))
	if list := annotations["categories"]; list != "" {
		for category := range strings.SplitSeq(list, ",") {
			category = strings.TrimSpace(category)
			m.requiref(slices.Contains(categories, category), "ClusterServiceVersion: metadata.annotations.categories: %q: expected some of %s", category, strings.Join(categories, ", "))
		}
	}
}

// checkExamples reports kinds without an example.
func (m *maker) checkExamples() {
	for _, d := range m.definitions {
		for _, version := range d.as.Spec.Versions {
			gvk := schema.GroupVersionKind{Group: d.as.Spec.Group, Version: version.Name, Kind: d.as.Spec.Names.Kind}
			shown := slices.ContainsFunc(m.samples, func(sample *unstructured.Unstructured) bool { return sample.GroupVersionKind() == gvk })
			m.advisef(shown || !version.Served || !version.Storage, "the kind %s has no sample of version %s, so that nobody is shown one", gvk.Kind, gvk.Version)
		}
	}
	m.requiref(len(m.definitions) > 0, "config/manifests has no CustomResourceDefinition: make a kind by 'chartwright add'")
}
