package helm

import (
	"strings"
	"testing"
)

// Helm converts annotation values to strings before it looks for hooks. A number must
// not make other annotations unreadable.
func TestBuild_ConvertsAnnotationsAndLabelsToStrings(t *testing.T) {
	list := build(t, newTestBuilder(t), `apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  annotations: {helm.sh/resource-policy: keep, number: 5, large: 9007199254740993, fraction: 1.10, truth: yes, none: , text: "07"}
  labels: {version: 1.5, on: true}
`)
	equal(t, "the annotations", map[string]string{
		"helm.sh/resource-policy": "keep", "number": "5", "large": "9007199254740993", "fraction": "1.1", "truth": "true", "none": "", "text": "07",
	}, object(list[0]).GetAnnotations())
	equal(t, "the labels", map[string]string{"version": "1.5", "true": "true"}, object(list[0]).GetLabels())
}

// Helm detects hooks by the document.
func TestBuild_DetectsHooksByDocument(t *testing.T) {
	const item = "- {apiVersion: v1, kind: ConfigMap, metadata: {name: a%s}}\n"
	for _, test := range []struct {
		name, manifest string
		want           bool
	}{
		{"a hook", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {helm.sh/hook: pre-install}}\n", true},
		{"a hook with a number as weight", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: 5}}\n", true},
		{"a list of hooks", "apiVersion: v1\nkind: List\nmetadata: {annotations: {helm.sh/hook: pre-install}}\nitems:\n" + strings.ReplaceAll(item, "%s", ""), true},
		{"a list with an item that is annotated", "apiVersion: v1\nkind: List\nitems:\n" + strings.ReplaceAll(item, "%s", ", annotations: {helm.sh/hook: pre-install}"), false},
		{"an object", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			list := build(t, newTestBuilder(t), test.manifest)
			if len(list) != 1 || isHook(list[0]) != test.want {
				t.Errorf("%d objects, hook: %v", len(list), !test.want)
			}
		})
	}
}

// The deletion of a hook must not delete objects of the release.
func TestHook_DoesNotDeleteObjectsOfRelease(t *testing.T) {
	for name, hook := range map[string]string{
		"a number as weight": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hook\n  annotations: {helm.sh/hook: pre-upgrade, helm.sh/hook-weight: 5}\n",
		"a list of hooks":    "apiVersion: v1\nkind: List\nmetadata:\n  annotations: {helm.sh/hook: pre-upgrade}\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: hook}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := mapsChart().with("templates/hook.yaml", hook).load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
			before := w.uid("a")
			for _, digest := range []string{"two", "three"} {
				w.must(w.helm.Upgrade(t.Context(), w.request(c, digest, valuesOf("a="+digest))))
				if after := w.uid("a"); after != before {
					t.Errorf("the ConfigMap was recreated: its UID was %s and is %s", before, after)
				}
				equal(t, "the hooks", []string{"hook"}, w.hooksMade())
			}
			w.must(w.helm.Uninstall(t.Context(), w.request(c, "", nil)))
			equal(t, "the objects", []string{}, w.configMaps())
		})
	}
}

// One annotation with an invalid value must not hide the keep policy.
func TestKeepPolicy_WithInvalidOtherAnnotation(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().with("templates/kept.yaml", "{{ if .Values.maps }}\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  annotations: {helm.sh/resource-policy: keep, number: 5}\n{{ end }}").load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	before := w.uid("kept")
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", nil)))
	if w.uid("kept") != before {
		t.Error("it was recreated")
	}
}

// The install fails before the first write.
func TestInstall_RejectsAnnotationsThatAreNotStrings(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().with("templates/bad.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bad\n  labels: {app: [web]}\n").load(t)
	err := w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1")))
	want := "ConfigMap " + w.namespace + "/bad: metadata.labels[app]: expected a string"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
	equal(t, "the revisions", []string{}, w.statuses())
	equal(t, "the objects", []string{}, w.configMaps())
}
