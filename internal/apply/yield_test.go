package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chartwright/chartwright/internal/apply"
)

// An injector sets a field of a list item or of the object. It keeps the value if the chart has
// nothing for it, or the options ignore it.
func TestApply_YieldsToInjectors(t *testing.T) {
	const (
		webhooks = `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: NAME}, webhooks: [
			{name: other.example.com, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {service: {name: a, namespace: b}}},
			{name: web.example.com, admissionReviewVersions: [v1], sideEffects: None, timeoutSeconds: 5, clientConfig: {CA service: {name: a, namespace: b}}}]}`
		injected = `{"webhooks": [{"name": "other.example.com", "clientConfig": {"caBundle": "Zm9v"}}, {"name": "web.example.com", "clientConfig": {"caBundle": "Zm9v"}}]}`
		slow     = `{"webhooks": [{"name": "web.example.com", "timeoutSeconds": 9}]}`
	)
	webhook := func(ca string) string { return strings.Replace(webhooks, "CA", ca, 1) }
	ignore := func(pointers ...string) (paths [][]string) {
		for _, pointer := range pointers {
			paths = append(paths, strings.Split(pointer, "/"))
		}
		return paths
	}
	for name, test := range map[string]struct {
		object  string
		patch   string
		manager string
		ignored [][]string
		// want is the value of the injected field after the next apply, at the path.
		path []any
		want string
	}{
		"omitted":                         {webhook(""), injected, "injector", nil, []any{"webhooks", 1, "clientConfig", "caBundle"}, "Zm9v"},
		"empty":                           {webhook(`caBundle: "",`), injected, "injector", nil, []any{"webhooks", 1, "clientConfig", "caBundle"}, "Zm9v"},
		"null":                            {webhook(`caBundle: null,`), injected, "injector", nil, []any{"webhooks", 1, "clientConfig", "caBundle"}, "Zm9v"},
		"a placeholder":                   {webhook(`caBundle: Cg==,`), injected, "injector", nil, []any{"webhooks", 1, "clientConfig", "caBundle"}, "Zm9v"},
		"a Job with kubectl":              {webhook(`caBundle: Cg==,`), injected, "kubectl-patch", nil, []any{"webhooks", 1, "clientConfig", "caBundle"}, "Zm9v"},
		"a person":                        {`{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {token: ""}}`, `{"data": {"token": "abc"}}`, "kubectl-edit", nil, []any{"data", "token"}, ""},
		"another certificate":             {webhook(`caBundle: YmFy,`), injected, "injector", nil, []any{"webhooks", 1, "clientConfig", "caBundle"}, "YmFy"},
		"ignored by name":                 {webhook(`caBundle: YmFy,`), injected, "kubectl-edit", ignore("webhooks/name=web.example.com/clientConfig/caBundle"), []any{"webhooks", 1, "clientConfig", "caBundle"}, "Zm9v"},
		"ignored by index":                {webhook(`caBundle: YmFy,`), injected, "injector", ignore("webhooks/1/clientConfig/caBundle"), []any{"webhooks", 1, "clientConfig", "caBundle"}, "Zm9v"},
		"ignored above":                   {webhook(`caBundle: YmFy,`), injected, "injector", ignore("webhooks/1/clientConfig"), []any{"webhooks", 1, "clientConfig", "caBundle"}, "Zm9v"},
		"another field ignored":           {webhook(`caBundle: YmFy,`), injected, "injector", ignore("webhooks/0/clientConfig", "webhooks/1/timeoutSeconds", "webhooks/7/a", "a/b"), []any{"webhooks", 1, "clientConfig", "caBundle"}, "YmFy"},
		"a number":                        {webhook(`caBundle: "",`), slow, "injector", nil, []any{"webhooks", 1, "timeoutSeconds"}, "5"},
		"a number that is ignored":        {webhook(`caBundle: "",`), slow, "injector", ignore("webhooks/1/timeoutSeconds"), []any{"webhooks", 1, "timeoutSeconds"}, "9"},
		"a field without a list":          {`{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {token: "", size: big}}`, `{"data": {"token": "abc", "size": "small"}}`, "injector", nil, []any{"data", "token"}, "abc"},
		"another field of the object":     {`{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {token: "", size: big}}`, `{"data": {"token": "abc", "size": "small"}}`, "injector", nil, []any{"data", "size"}, "big"},
		"a parent of the field":           {strings.Replace(webhooks, "clientConfig: {CA service: {name: a, namespace: b}}", "clientConfig: {service: {name: a, namespace: b}}, namespaceSelector: null", 1), `{"webhooks": [{"name": "web.example.com", "namespaceSelector": {"matchLabels": {"a": "b"}}}]}`, "injector", nil, []any{"webhooks", 1, "namespaceSelector", "matchLabels", "a"}, "b"},
		"an empty list means a deny rule": {`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: NAME}, spec: {podSelector: {}, policyTypes: [Ingress], ingress: []}}`, `{"spec": {"ingress": [{}]}}`, "injector", nil, []any{"spec", "ingress"}, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			of := namespace(t)
			o := object(t, of, strings.Replace(test.object, "NAME", of.Namespace, 1))
			mustApply(t, o)
			all := apiServer.client.Dynamic.Resource(o.Mapping.Resource)
			var client dynamic.ResourceInterface = all
			if o.Mapping.Scope.Name() == meta.RESTScopeNameNamespace {
				client = all.Namespace(of.Namespace)
			}
			t.Cleanup(func() { _ = client.Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}) })
			if _, err := client.Patch(t.Context(), o.GetName(), types.StrategicMergePatchType, []byte(test.patch), metav1.PatchOptions{FieldManager: test.manager}); err != nil {
				t.Fatal(err)
			}
			check := func(what string) {
				t.Helper()
				live, err := client.Get(t.Context(), o.GetName(), metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprint(valueAt(live, test.path)); got != test.want {
					t.Errorf("%s: %v is %s, want %s", what, test.path, got, test.want)
				}
			}
			for _, what := range []string{"the next apply", "another one"} {
				options := over(t, o)
				options.Ignored = test.ignored
				if _, err := apiServer.client.Apply(t.Context(), o, options); err != nil {
					t.Fatal(err)
				}
				check(what)
			}
			planned := apiServer.client
			planned.Plan = func(w apply.Write) {
				if got := fmt.Sprint(valueAt(w.After, test.path)); got != test.want {
					data, _ := json.Marshal(w.After)
					t.Errorf("a plan: %v is %s, want %s: %s", test.path, got, test.want, data)
				}
			}
			options := over(t, o)
			options.Ignored = test.ignored
			if _, err := planned.Apply(t.Context(), o, options); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// valueAt returns the value at a path of keys and indexes, or nil.
func valueAt(object *unstructured.Unstructured, path []any) any {
	var at any = object.Object
	for _, step := range path {
		switch step := step.(type) {
		case string:
			fields, _ := at.(map[string]any)
			at = fields[step]
		case int:
			list, _ := at.([]any)
			if len(list) <= step {
				return nil
			}
			at = list[step]
		}
	}
	return at
}
