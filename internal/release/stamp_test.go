package release

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

func TestStamp(t *testing.T) {
	owner := apply.Owner{GVK: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "A"}, Namespace: "apps", Name: "web", UID: "cr-uid", Operator: "op"}
	s := NewStamp(owner, Digests{Input: "i", Chart: "c", Values: "v"}, Marks{})
	rls := aRelease()
	rls.Labels["chartwright.dev/input-digest"] = "of an older revision"
	rls.Labels["chartwright.dev/held"] = "of an older revision"
	before := rls.Labels
	s.Mark(rls)
	rls.Info.Description = strings.Repeat("é", 300)
	secret := mustEncode(t, rls)
	s.Redact = func(text string) string { return text }
	s.Annotate(secret, rls, Inventory{})
	r, ok := FromMeta(secret)
	if !ok || !r.Genuine() {
		t.Fatalf("the record is not genuine: %+v", r)
	}
	for _, check := range []struct{ what, got, want string }{
		{"owner", r.Owner, "A.g/apps/web"},
		{"owner uid", string(r.OwnerUID), "cr-uid"},
		{"operator", r.Operator, "op"},
		{"input digest", r.InputDigest, "i"},
		{"chart digest", r.ChartDigest, "c"},
		{"values digest", secret.Labels[api.LabelValuesDigest], "v"},
		{"chart", r.Chart + "-" + r.ChartVersion + " " + r.AppVersion, "small-1.2.3 9"},
		{"a label of the user", secret.Labels["team"], "a"},
		{"an operator label that was not set", secret.Labels["chartwright.dev/held"], ""},
		{"the shared map", before["chartwright.dev/held"], "of an older revision"},
	} {
		if check.got != check.want {
			t.Errorf("%s: %q, want %q", check.what, check.got, check.want)
		}
	}
	if !utf8.ValidString(r.Description.Description) || len(r.Description.Description) > MaxDescription {
		t.Errorf("the description has %d bytes", len(r.Description.Description))
	}
	if other := NewStamp(owner, Digests{}, Marks{}); other.Action == s.Action || s.Action == "" {
		t.Error("two actions have one id")
	}
	s.Annotate(secret, &engine.Release{Info: &engine.Info{}}, Inventory{})
	if r, _ := FromMeta(secret); !r.Deployed.IsZero() || r.Chart != "" {
		t.Errorf("a release without a chart and a time: %+v", r.Description)
	}
}

func TestStamp_AnnotationContainsNoSecret(t *testing.T) {
	secret := &corev1.Secret{}
	// Truncation must not leave half of a secret.
	text := strings.Repeat("x", MaxDescription-len("…")-5) + canary
	rls := &engine.Release{Info: &engine.Info{Description: text}}
	Stamp{Redact: hideCanary}.Annotate(secret, rls, Inventory{})
	if got := secret.Annotations[AnnotationRelease]; strings.Contains(got, canary[:4]) || !strings.Contains(got, "x…") {
		t.Errorf("%s", got)
	}
}

const canary = "canary-77c1"

func hideCanary(text string) string { return strings.ReplaceAll(text, canary, "…") }
