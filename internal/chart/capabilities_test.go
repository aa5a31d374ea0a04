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
)

// Every way of asking for one API that is worth telling from asking for all.
func TestFeaturesOfAPIs(t *testing.T) {
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
		// Where it is not sure which one, it is all of them.
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

// serving is an API server of these versions, each with a kind Thing.
func serving(kube string, versions ...string) *fakediscovery.FakeDiscovery {
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

// The digest of what a chart looks at changes when that does, and only then:
// each change is an upgrade of every release of the chart.
func TestCapabilitiesDigest(t *testing.T) {
	before := []string{"v1", "a/v1", "b/v1"}
	for _, test := range []struct {
		name     string
		features analysis.Features
		// after is what the server serves then.
		kube    string
		after   []string
		changes bool
	}{
		{name: "nothing changes", features: analysis.Features{KubeVersion: true, APIVersions: true, APIs: []string{"a/v1"}}, kube: "v1.36.0", after: before},
		{name: "another order", features: analysis.Features{APIVersions: true}, kube: "v1.36.0", after: []string{"b/v1", "v1", "a/v1"}},
		{name: "one more, that is not asked for", features: analysis.Features{KubeVersion: true, APIs: []string{"a/v1", "d/v1"}}, kube: "v1.36.0", after: append(before, "c/v1")},
		{name: "one less, that is not asked for", features: analysis.Features{APIs: []string{"a/v1"}}, kube: "v1.36.0", after: before[:2]},
		{name: "one appears", features: analysis.Features{APIs: []string{"a/v1", "c/v1"}}, kube: "v1.36.0", after: append(before, "c/v1"), changes: true},
		{name: "one goes", features: analysis.Features{APIs: []string{"a/v1", "b/v1"}}, kube: "v1.36.0", after: before[:2], changes: true},
		{name: "a kind appears", features: analysis.Features{APIs: []string{"c/v1/Thing"}}, kube: "v1.36.0", after: append(before, "c/v1"), changes: true},
		{name: "one takes another's place", features: analysis.Features{APIs: []string{"b/v1", "c/v1"}}, kube: "v1.36.0", after: []string{"v1", "a/v1", "c/v1"}, changes: true},
		{name: "one more, and all are looked at", features: analysis.Features{APIVersions: true}, kube: "v1.36.0", after: append(before, "c/v1"), changes: true},
		{name: "another server", features: analysis.Features{KubeVersion: true}, kube: "v1.36.1", after: before, changes: true},
		{name: "another server, which is not looked at", features: analysis.Features{APIVersions: true, APIs: []string{"a/v1"}}, kube: "v1.36.1", after: before},
		{name: "all changes, and none of it is looked at", kube: "v1.37.0", after: before[:1]},
		{name: "all changes, and only the cluster is looked at", features: analysis.Features{Lookup: true, DeleteHooks: true}, kube: "v1.37.0", after: before[:1]},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := serving("v1.36.0", before...)
			c := NewCapabilities(d)
			was := digest(t, c, test.features)
			if (was == "") == test.features.Capabilities() {
				t.Errorf("the digest is %q", was)
			}
			*d = *serving(test.kube, test.after...)
			if digest(t, c, test.features) != was {
				t.Error("it changed before anybody asked to look anew")
			}
			c.Refresh()
			if got := digest(t, c, test.features); (got != was) != test.changes {
				t.Errorf("changed: %v", got != was)
			}
		})
	}
}

func TestCapabilitiesAreReadOnce(t *testing.T) {
	d := serving("v1.36.0", "v1")
	c := NewCapabilities(d)
	for range 3 {
		digest(t, c, analysis.Features{APIVersions: true})
	}
	once := len(d.Actions())
	c.Refresh()
	digest(t, c, analysis.Features{})
	if got := len(d.Actions()); got != once {
		t.Errorf("%d requests, %d of them for a chart that looks at nothing", got, got-once)
	}
	digest(t, c, analysis.Features{KubeVersion: true})
	if got := len(d.Actions()); got != 2*once {
		t.Errorf("%d requests, want twice %d", got, once)
	}
}

func TestCapabilitiesOfAServerThatIsAway(t *testing.T) {
	d := serving("v1.36.0", "v1")
	away := errors.New("away")
	d.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, away })
	if _, err := NewCapabilities(d).Digest(analysis.Features{APIVersions: true}); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
}
