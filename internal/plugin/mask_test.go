package plugin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func decoded(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

const canary = "canary-7f3"

func TestMask(t *testing.T) {
	secret := func(rest string) string { return "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n" + rest }
	for name, test := range map[string]struct {
		before, after         string
		wantBefore, wantAfter string
	}{
		"no Secret": {
			before: "apiVersion: v1\nkind: ConfigMap\ndata: {a: plain}", after: "apiVersion: v1\nkind: ConfigMap\ndata: {a: other}",
			wantBefore: "apiVersion: v1\nkind: ConfigMap\ndata: {a: plain}", wantAfter: "apiVersion: v1\nkind: ConfigMap\ndata: {a: other}",
		},
		"another group's Secret": {
			before: "apiVersion: example.com/v1\nkind: Secret\ndata: {a: plain}", after: "apiVersion: example.com/v1\nkind: Secret\ndata: {a: plain}",
			wantBefore: "apiVersion: example.com/v1\nkind: Secret\ndata: {a: plain}", wantAfter: "apiVersion: example.com/v1\nkind: Secret\ndata: {a: plain}",
		},
		"equal, changed, gone and new": {
			before: secret("data: {same: canary-7f3, other: canary-7f3, gone: canary-7f3}"), after: secret("data: {same: canary-7f3, other: canary-7f3-2, new: canary-7f3}"),
			wantBefore: secret("data: {same: '***', other: '*** (before)', gone: '*** (before)'}"), wantAfter: secret("data: {same: '***', other: '*** (after)', new: '*** (after)'}"),
		},
		"stringData": {
			before: secret("stringData: {a: canary-7f3}"), after: secret("stringData: {a: canary-7f3}"),
			wantBefore: secret("stringData: {a: '***'}"), wantAfter: secret("stringData: {a: '***'}"),
		},
		"made":    {after: secret("data: {a: canary-7f3}"), wantAfter: secret("data: {a: '*** (after)'}")},
		"removed": {before: secret("data: {a: canary-7f3}"), wantBefore: secret("data: {a: '*** (before)'}")},
		"null": {
			before: secret("data:"), after: secret("data: {a: canary-7f3}"),
			wantBefore: secret("data:"), wantAfter: secret("data: {a: '*** (after)'}"),
		},
		"no map": {
			before: secret("data: canary-7f3"), after: secret("data: {a: [canary-7f3]}"),
			wantBefore: secret("data: '*** (before)'"), wantAfter: secret("data: {a: '*** (after)'}"),
		},
		"becomes another kind": {
			before: "apiVersion: v1\nkind: Secret\ndata: {a: canary-7f3}", after: "apiVersion: v1\nkind: ConfigMap\ndata: {a: canary-7f3}",
			wantBefore: "apiVersion: v1\nkind: Secret\ndata: {a: '***'}", wantAfter: "apiVersion: v1\nkind: ConfigMap\ndata: {a: '***'}",
		},
		"as kubectl apply keeps it": {
			before: secret("type: Opaque"), after: "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: canary-7f3, b: c}}",
			wantBefore: secret("type: Opaque"),
			wantAfter:  "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: '*** (after)', b: c}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := decoded(t, test.before), decoded(t, test.after)
			shownBefore, shownAfter := mask(before, after)
			if diff := cmp.Diff(decoded(t, test.wantBefore), shownBefore); diff != "" {
				t.Errorf("before (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(decoded(t, test.wantAfter), shownAfter); diff != "" {
				t.Errorf("after (-want +got):\n%s", diff)
			}
			if shown := fmt.Sprint(shownBefore, shownAfter); strings.Contains(shown, canary) {
				t.Errorf("it tells the secret: %s", shown)
			}
			if diff := cmp.Diff([]*unstructured.Unstructured{decoded(t, test.before), decoded(t, test.after)}, []*unstructured.Unstructured{before, after}); diff != "" {
				t.Errorf("what was given is changed (-want +got):\n%s", diff)
			}
		})
	}
}
