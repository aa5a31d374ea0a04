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

// Valid values in catalogs, see https://olm.operatorframework.io and
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
	// conventional lists the usual prefixes of channel names.
	conventional = []string{"candidate", "fast", "stable"}
)

// check adds the problems that OLM or a catalog such as OperatorHub would reject.
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
			"channel %s: names of channels usually start with %s", channel, strings.Join(conventional, ", "))
	}
	m.advisef(m.DefaultChannel == "" || slices.Contains(m.Channels, m.DefaultChannel),
		"the bundle is not in the default channel %s: another bundle of the package must be in that channel", m.DefaultChannel)
}

func (m *maker) checkVersions() {
	version, err := semver.StrictNewVersion(m.Version)
	switch {
	case err != nil:
		m.problemf("version %q: want a semantic version, such as 1.2.3", m.Version)
	case version.String() == "0.0.0":
		m.problemf("version 0.0.0: OLM treats it as unset: want a higher version")
	}
	name := csvName(m.Name, m.Version)
	if problems := validation.IsDNS1123Subdomain(name); err == nil && len(problems) > 0 {
		m.problemf("version %q: %s is not a valid name: %s", m.Version, name, strings.Join(problems, "; "))
	}
	if m.Replaces != "" {
		before, err := semver.StrictNewVersion(m.Replaces)
		switch {
		case err != nil:
			m.problemf("replaced version %q: want a semantic version, such as 1.2.2", m.Replaces)
		case version != nil && !before.LessThan(version):
			m.problemf("version %s cannot replace %s: want a lower version", m.Version, m.Replaces)
		}
	}
	if m.spec.MinKubeVersion != "" {
		_, err := semver.StrictNewVersion(m.spec.MinKubeVersion)
		m.requiref(err == nil, "ClusterServiceVersion: spec.minKubeVersion: got %q, want three numbers, such as 1.29.0", m.spec.MinKubeVersion)
	}
}

func (m *maker) checkText() {
	m.requiref(m.spec.DisplayName != "", "ClusterServiceVersion: spec.displayName: required: the name of the operator in catalogs")
	m.requiref(m.spec.Provider.Name != "", "ClusterServiceVersion: spec.provider.name: required: the provider of the operator")
	m.advisef(m.spec.Description != "", "ClusterServiceVersion: spec.description: recommended: the description in catalogs, in Markdown")
	m.advisef(len(m.spec.Maintainers) > 0, "ClusterServiceVersion: spec.maintainers: recommended: the contacts in catalogs such as OperatorHub")
	for i, one := range m.spec.Maintainers {
		_, err := mail.ParseAddress(one.Email)
		m.requiref(err == nil && one.Name != "", "ClusterServiceVersion: spec.maintainers[%d]: got %q <%s>, want a name and an email address", i, one.Name, one.Email)
	}
	for i, one := range m.spec.Links {
		at, err := url.ParseRequestURI(one.URL)
		m.requiref(err == nil && at.Host != "" && one.Name != "", "ClusterServiceVersion: spec.links[%d]: got %q %q, want a name and a URL, such as https://example.com", i, one.Name, one.URL)
	}
}

func (m *maker) checkIcon() {
	if len(m.spec.Icon) == 0 {
		m.notef("ClusterServiceVersion: spec.icon: recommended for catalogs such as OperatorHub")
		return
	}
	m.requiref(len(m.spec.Icon) == 1, "ClusterServiceVersion: spec.icon: got %d icons, want 1", len(m.spec.Icon))
	icon := m.spec.Icon[0]
	data, err := base64.StdEncoding.DecodeString(icon.Data)
	m.requiref(err == nil && len(data) > 0, "ClusterServiceVersion: spec.icon[0].base64data: want an image in base64")
	m.requiref(slices.Contains(iconTypes, icon.MediaType), "ClusterServiceVersion: spec.icon[0].mediatype: got %q, want one of %s", icon.MediaType, strings.Join(iconTypes, ", "))
}

func (m *maker) checkModes() {
	supported := false
	seen := map[string]bool{}
	for i, mode := range m.spec.InstallModes {
		m.requiref(slices.Contains(modes, mode.Type) && !seen[mode.Type],
			"ClusterServiceVersion: spec.installModes[%d].type: got %q, want each of these at most once: %s", i, mode.Type, strings.Join(modes, ", "))
		seen[mode.Type] = true
		supported = supported || mode.Supported
	}
	m.requiref(supported, "ClusterServiceVersion: spec.installModes: no mode is supported: want at least one of %s", strings.Join(modes, ", "))
	m.requiref(!m.supportsSomeNamespaces() || m.readsTargetNamespaces(),
		"ClusterServiceVersion: spec.installModes: a mode other than AllNamespaces is supported, but no container has WATCH_NAMESPACE from metadata.annotations['olm.targetNamespaces'], which OLM sets: "+
			"add the variable in config/manifests/kustomization.yaml, or only support AllNamespaces")
}

// readsTargetNamespaces reports whether a container reads the namespaces that OLM sets.
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
	m.requiref(!given || slices.Contains(capabilities, level), "ClusterServiceVersion: metadata.annotations.capabilities: got %q, want one of %s", level, strings.Join(capabilities, ", "))
	if list := annotations["categories"]; list != "" {
		for category := range strings.SplitSeq(list, ",") {
			category = strings.TrimSpace(category)
			m.requiref(slices.Contains(categories, category), "ClusterServiceVersion: metadata.annotations.categories: got %q, want some of %s", category, strings.Join(categories, ", "))
		}
	}
}

// checkExamples adds a note for each kind without a sample.
func (m *maker) checkExamples() {
	for _, d := range m.definitions {
		for _, version := range d.as.Spec.Versions {
			gvk := schema.GroupVersionKind{Group: d.as.Spec.Group, Version: version.Name, Kind: d.as.Spec.Names.Kind}
			shown := slices.ContainsFunc(m.samples, func(sample *unstructured.Unstructured) bool { return sample.GroupVersionKind() == gvk })
			m.advisef(shown || !version.Served || !version.Storage, "the kind %s has no sample of version %s, which consoles would show as an example", gvk.Kind, gvk.Version)
		}
	}
	m.requiref(len(m.definitions) > 0, "config/manifests has no CustomResourceDefinition: add a kind with 'chartwright add'")
}
