package chart

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/testenv"
)

// A template that passes a constant to APIVersions.Has reads only that API.
func TestFeatures_ListAPIsPassedToHas(t *testing.T) {
	for template, want := range map[string]analysis.Features{
		`{{ if and (.Capabilities.APIVersions.Has "a/v1") .Values.on }}x{{ end }}`:                                    {APIs: []string{"a/v1"}},
		`{{ if and .Values.on (or (not ($.Capabilities.APIVersions.Has "a/v1")) (eq 1 2)) }}x{{ end }}`:               {APIs: []string{"a/v1"}},
		`{{ if ((.Capabilities.APIVersions.Has "a/v1")) }}x{{ end }}`:                                                 {APIs: []string{"a/v1"}},
		`{{ if .Capabilities.APIVersions.Has "a/v1" | not }}x{{ end }}`:                                               {APIs: []string{"a/v1"}},
		`{{ if (.Capabilities.APIVersions.Has "a/v1" | not) | and .Values.on }}x{{ end }}`:                            {APIs: []string{"a/v1"}},
		`{{ ternary "x" "y" (.Capabilities.APIVersions.Has "a/v1") }}`:                                                {APIs: []string{"a/v1"}},
		`{{ .Capabilities.APIVersions.Has "a/v1" | ternary "x" "y" }}`:                                                {APIs: []string{"a/v1"}},
		`{{ $has := .Capabilities.APIVersions.Has "a/v1" }}{{ $has }}`:                                                {APIs: []string{"a/v1"}},
		`{{ include "x" (dict "has" (.Capabilities.APIVersions.Has "a/v1")) }}`:                                       {APIs: []string{"a/v1"}},
		"{{ if .Capabilities.APIVersions.Has `a/v1` }}x{{ end }}":                                                     {APIs: []string{"a/v1"}},
		`{{ range .Values.l }}{{ with $.Capabilities.APIVersions.Has "a/v1" }}{{ . }}{{ end }}{{ end }}`:              {APIs: []string{"a/v1"}},
		`{{ if .Capabilities.APIVersions.Has "b/v1/B" }}{{ else if $.Capabilities.APIVersions.Has "a/v1" }}{{ end }}`: {APIs: []string{"a/v1", "b/v1/B"}},
		`{{ if .Capabilities.APIVersions.Has "a/v1" }}{{ .Capabilities.KubeVersion }}{{ end }}`:                       {KubeVersion: true, APIs: []string{"a/v1"}},
		`{{ if .root.Capabilities.APIVersions.Has "a/v1" }}x{{ end }}`:                                                {APIs: []string{"a/v1"}},
		// A chart reads all APIs if the analysis cannot determine the argument.
		`{{ if .Capabilities.APIVersions.Has (printf "%s/v1" .Values.group) }}x{{ end }}`: {APIVersions: true},
		`{{ if "a/v1" | .Capabilities.APIVersions.Has }}x{{ end }}`:                       {APIVersions: true},
		`{{ if (.Capabilities.APIVersions).Has "a/v1" }}x{{ end }}`:                       {APIVersions: true},
		`{{ $v := .Capabilities.APIVersions }}{{ $v.Has "a/v1" }}`:                        {APIVersions: true},
		`{{ has "a/v1" .Capabilities.APIVersions }}`:                                      {APIVersions: true},
	} {
		if diff := cmp.Diff(want, small().with("templates/x.yaml", template).load(t).Features); diff != "" {
			t.Errorf("%s (-want +got):\n%s", template, diff)
		}
	}
}

// discoveryOf returns the discovery of an API server that serves these group versions,
// each with the kind Thing.
func discoveryOf(kube string, versions ...string) *fakediscovery.FakeDiscovery {
	d := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}, FakedServerVersion: &version.Info{Major: "1", Minor: "36", GitVersion: kube}}
	for _, v := range versions {
		d.Resources = append(d.Resources, &metav1.APIResourceList{GroupVersion: v, APIResources: []metav1.APIResource{{Name: "things", Kind: "Thing"}}})
	}
	return d
}

func digest(t *testing.T, c *Capabilities, f analysis.Features) string {
	t.Helper()
	d, err := c.Digest(f)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The digest changes only with capabilities that the chart reads, because a new digest
// causes an upgrade of every release of the chart.
func TestCapabilitiesDigest_ChangesWithUsedCapabilities(t *testing.T) {
	before := []string{"v1", "a/v1", "b/v1"}
	for _, test := range []struct {
		name     string
		features analysis.Features
		// kube is the version of the server after the change, and after its API versions.
		kube    string
		after   []string
		changes bool
	}{
		{name: "nothing changes", features: analysis.Features{KubeVersion: true, APIVersions: true, APIs: []string{"a/v1"}}, kube: "v1.36.0", after: before},
		{name: "API versions in another order", features: analysis.Features{APIVersions: true}, kube: "v1.36.0", after: []string{"b/v1", "v1", "a/v1"}},
		{name: "an unread API version is added", features: analysis.Features{KubeVersion: true, APIs: []string{"a/v1", "d/v1"}}, kube: "v1.36.0", after: append(before, "c/v1")},
		{name: "an unread API version is removed", features: analysis.Features{APIs: []string{"a/v1"}}, kube: "v1.36.0", after: before[:2]},
		{name: "an API version is added", features: analysis.Features{APIs: []string{"a/v1", "c/v1"}}, kube: "v1.36.0", after: append(before, "c/v1"), changes: true},
		{name: "an API version is removed", features: analysis.Features{APIs: []string{"a/v1", "b/v1"}}, kube: "v1.36.0", after: before[:2], changes: true},
		{name: "a kind is added", features: analysis.Features{APIs: []string{"c/v1/Thing"}}, kube: "v1.36.0", after: append(before, "c/v1"), changes: true},
		{name: "an API version replaces another", features: analysis.Features{APIs: []string{"b/v1", "c/v1"}}, kube: "v1.36.0", after: []string{"v1", "a/v1", "c/v1"}, changes: true},
		{name: "an API version is added, and the chart reads all", features: analysis.Features{APIVersions: true}, kube: "v1.36.0", after: append(before, "c/v1"), changes: true},
		{name: "another Kubernetes version", features: analysis.Features{KubeVersion: true}, kube: "v1.36.1", after: before, changes: true},
		{name: "another Kubernetes version, and the chart reads only APIs", features: analysis.Features{APIVersions: true, APIs: []string{"a/v1"}}, kube: "v1.36.1", after: before},
		{name: "everything changes, and the chart reads nothing", kube: "v1.37.0", after: before[:1]},
		{name: "everything changes, and the chart uses only lookup", features: analysis.Features{Lookup: true, DeleteHooks: true}, kube: "v1.37.0", after: before[:1]},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := discoveryOf("v1.36.0", before...)
			c := NewCapabilities(d)
			was := digest(t, c, test.features)
			if (was == "") == test.features.Capabilities() {
				t.Errorf("got digest %q for features %+v", was, test.features)
			}
			*d = *discoveryOf(test.kube, test.after...)
			if digest(t, c, test.features) != was {
				t.Error("the digest changed before Refresh")
			}
			c.Refresh()
			if got := digest(t, c, test.features); (got != was) != test.changes {
				t.Errorf("digest changed: %v, want %v", got != was, test.changes)
			}
		})
	}
}

func TestCapabilities_ReadOncePerRefresh(t *testing.T) {
	d := discoveryOf("v1.36.0", "v1")
	c := NewCapabilities(d)
	for range 3 {
		digest(t, c, analysis.Features{APIVersions: true})
	}
	once := len(d.Actions())
	c.Refresh()
	digest(t, c, analysis.Features{})
	if got := len(d.Actions()); got != once {
		t.Errorf("got %d requests, %d of them for a chart that reads no capabilities", got, got-once)
	}
	digest(t, c, analysis.Features{KubeVersion: true})
	if got := len(d.Actions()); got != 2*once {
		t.Errorf("got %d requests, want twice %d", got, once)
	}
}

// While the API server does not return its API versions after Refresh, actions get the previous
// ones. A digest has the new ones.
func TestCapabilities_ReadDoesNotWaitForRefresh(t *testing.T) {
	d := discoveryOf("v1.36.0", "v1")
	c := NewCapabilities(d)
	all := analysis.Features{APIVersions: true, KubeVersion: true}
	before := digest(t, c, all)
	hangs, began := make(chan struct{}), make(chan struct{}, 9)
	d.FakedServerVersion = &version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.0"}
	d.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		began <- struct{}{}
		<-hangs
		return false, nil, nil
	})
	c.Refresh()
	read := make(chan string)
	go func() {
		for range 2 {
			if known, err := c.Read(); err == nil {
				read <- known.KubeVersion.Version
			}
		}
	}()
	for range 2 {
		if got := testenv.Receive(t, "the previous capabilities", read); got != "v1.36.0" {
			t.Errorf("read %s", got)
		}
	}
	testenv.Receive(t, "one reading", began)
	// It has begun before this change.
	c.Refresh()
	close(hangs)
	if digest(t, c, all) == before {
		t.Error("the digest is that before Refresh")
	}
	if known, err := c.Read(); err != nil || known.KubeVersion.Version != "v1.37.0" {
		t.Errorf("read %v, %v", known, err)
	}
}

func TestCapabilitiesDigest_ReturnsDiscoveryError(t *testing.T) {
	d := discoveryOf("v1.36.0", "v1")
	unavailable := errors.New("unavailable")
	d.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, unavailable })
	if _, err := NewCapabilities(d).Digest(analysis.Features{APIVersions: true}); !errors.Is(err, unavailable) {
		t.Errorf("got error %v, want %v", err, unavailable)
	}
}
