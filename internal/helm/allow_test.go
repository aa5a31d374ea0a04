package helm

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/watches"
)

// rendered returns an object as the builder does.
func rendered(gvk schema.GroupVersionKind, scope meta.RESTScope, namespace, name string) *resource.Info {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	o.SetNamespace(namespace)
	o.SetName(name)
	return &resource.Info{
		Mapping: &meta.RESTMapping{GroupVersionKind: gvk, Scope: scope}, Namespace: namespace, Name: name, Object: o,
	}
}

func TestAllow(t *testing.T) {
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	clusterRole := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	namespace := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	const role = "ClusterRole.rbac.authorization.k8s.io"

	own := rendered(configMap, meta.RESTScopeNamespace, "apps", "own")
	foreign := rendered(configMap, meta.RESTScopeNamespace, "other", "foreign")
	admin := rendered(clusterRole, meta.RESTScopeRoot, "", "admin")
	room := rendered(namespace, meta.RESTScopeRoot, "", "room")
	const (
		foreignRefused = "ConfigMap other/foreign is outside the release's namespace apps (allow.otherNamespaces is false)"
		adminRefused   = "ClusterRole admin is cluster-scoped (allow.clusterScoped does not hold " + role + ")"
		roomRefused    = "Namespace room is cluster-scoped (allow.clusterScoped does not hold Namespace)"
	)
	for _, test := range []struct {
		name    string
		allow   watches.Allow
		objects engine.ResourceList
		want    string
	}{
		{name: "nothing"},
		{name: "its own", objects: engine.ResourceList{own}},
		{name: "another namespace", objects: engine.ResourceList{own, foreign}, want: foreignRefused},
		{name: "another namespace, allowed", allow: watches.Allow{OtherNamespaces: true}, objects: engine.ResourceList{own, foreign}},
		{name: "cluster-scoped", objects: engine.ResourceList{admin}, want: adminRefused},
		{name: "cluster-scoped, allowed", allow: watches.Allow{ClusterScoped: []string{role}}, objects: engine.ResourceList{admin}},
		{name: "cluster-scoped, of the core", objects: engine.ResourceList{room}, want: roomRefused},
		{name: "cluster-scoped, of the core, allowed", allow: watches.Allow{ClusterScoped: []string{"Namespace"}}, objects: engine.ResourceList{room}},
		{name: "another kind is allowed", allow: watches.Allow{ClusterScoped: []string{"Namespace", "ClusterRole"}}, objects: engine.ResourceList{room, admin}, want: adminRefused},
		{name: "other namespaces are not the cluster", allow: watches.Allow{OtherNamespaces: true}, objects: engine.ResourceList{foreign, admin}, want: adminRefused},
		{name: "the cluster is not other namespaces", allow: watches.Allow{ClusterScoped: []string{role, "ConfigMap"}}, objects: engine.ResourceList{foreign, admin}, want: foreignRefused},
		{name: "everything is allowed", allow: watches.Allow{Everything: true}, objects: engine.ResourceList{admin, own, foreign, room}},
		{name: "all forbidden objects are listed", objects: engine.ResourceList{admin, own, foreign, room}, want: adminRefused + "; " + foreignRefused + "; " + roomRefused},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := allow{Allow: test.allow}.check("apps", test.objects)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrNotAllowed) || err.Error() != ErrNotAllowed.Error()+": "+test.want {
				t.Errorf("got %v, want\n%s", err, test.want)
			}
		})
	}
}

// No allow block permits a chart to write the Secret of the signing key, or to refer to
// it.
func TestAllow_RejectsSigningKey(t *testing.T) {
	t.Parallel()
	gvk := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	}
	naming := func(info *resource.Info, value any, path ...string) *resource.Info {
		content, _ := info.Object.(*unstructured.Unstructured)
		if err := unstructured.SetNestedField(content.Object, value, path...); err != nil {
			t.Fatal(err)
		}
		return info
	}
	const key = "op-signing-key"
	everything := allow{Allow: watches.Allow{Everything: true}, signingKey: types.NamespacedName{Namespace: "system", Name: key}}
	volumes := []any{map[string]any{"name": "v", "secret": map[string]any{"secretName": key}}}
	rules := []any{map[string]any{"resources": []any{"secrets"}, "resourceNames": []any{key}}}
	for name, test := range map[string]struct {
		object  *resource.Info
		refused bool
	}{
		"the Secret itself":             {rendered(gvk("", "Secret"), meta.RESTScopeNamespace, "system", key), true},
		"a pod that mounts it":          {naming(rendered(gvk("", "Pod"), meta.RESTScopeNamespace, "system", "web"), volumes, "spec", "volumes"), true},
		"a map key":                     {naming(rendered(gvk("", "ConfigMap"), meta.RESTScopeNamespace, "system", "web"), "x", "data", key), true},
		"a ClusterRole that allows it":  {naming(rendered(gvk("rbac.authorization.k8s.io", "ClusterRole"), meta.RESTScopeRoot, "", "web"), rules, "rules"), true},
		"the name in another namespace": {rendered(gvk("", "Secret"), meta.RESTScopeNamespace, "apps", key), false},
		"another Secret":                {rendered(gvk("", "Secret"), meta.RESTScopeNamespace, "system", "web"), false},
	} {
		err := everything.check("apps", engine.ResourceList{test.object})
		if refused := errors.Is(err, ErrNotAllowed); refused != test.refused || !refused && err != nil {
			t.Errorf("%s: got %v, want refused %v", name, err, test.refused)
		}
	}
}
