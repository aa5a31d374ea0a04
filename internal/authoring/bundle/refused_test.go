package bundle_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/authoring/bundle"
)

const csv = "ClusterServiceVersion"

// without removes the objects of a kind.
func without(in *bundle.Input, kind string) {
	in.Objects = slices.DeleteFunc(in.Objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
}

// more adds an object.
func more(in *bundle.Input, apiVersion, kind, name string, fields map[string]any) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(object.Object, fields)
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetName(name)
	object.SetNamespace("chartwright-system")
	in.Objects = append(in.Objects, object)
}

const rbacV1 = "rbac.authorization.k8s.io/v1"

// TestMake_RejectsInvalidInput checks that errors contain the path of the field and the
// expected value.
func TestMake_RejectsInvalidInput(t *testing.T) {
	for name, test := range map[string]struct {
		change func(in *bundle.Input)
		want   string
	}{
		"no version":                    {func(in *bundle.Input) { in.Version = "" }, `version "": want a semantic version, such as 1.2.3`},
		"a version with a v":            {func(in *bundle.Input) { in.Version = "v1.2.3" }, `version "v1.2.3": want`},
		"the version 0.0.0":             {func(in *bundle.Input) { in.Version = "0.0.0" }, "version 0.0.0: OLM treats it as unset"},
		"a version with build metadata": {func(in *bundle.Input) { in.Version = "1.2.3+build" }, `chartwright.v1.2.3+build is not a valid name`},
		"replaces the same version":     {func(in *bundle.Input) { in.Replaces = "1.2.3" }, "version 1.2.3 cannot replace 1.2.3: want a lower version"},
		"replaces a name":               {func(in *bundle.Input) { in.Replaces = "chartwright.v1.0.0" }, `replaced version "chartwright.v1.0.0": want`},
		"no channel":                    {func(in *bundle.Input) { in.Channels = nil }, "no channel: want at least one"},
		"no image":                      {func(in *bundle.Input) { in.Image = "" }, "Deployment chartwright-controller-manager: the image of the container manager is the placeholder controller:latest: set --image"},
		"no base":                       {func(in *bundle.Input) { without(in, csv) }, "config/manifests has no ClusterServiceVersion"},
		"two bases":                     {func(in *bundle.Input) { more(in, "operators.coreos.com/v1alpha1", csv, "b", nil) }, "ClusterServiceVersion b: there is another one, chartwright.v0.0.0: a bundle can only contain one"},
		"no deployment":                 {func(in *bundle.Input) { without(in, "Deployment") }, "config/manifests has no Deployment"},
		"no CRD":                        {func(in *bundle.Input) { without(in, "CustomResourceDefinition") }, "config/manifests has no CustomResourceDefinition: add a kind with 'chartwright add'"},
		"no display name":               {func(in *bundle.Input) { set(*in, csv, "", "spec", "displayName") }, "spec.displayName: required"},
		"no provider":                   {func(in *bundle.Input) { set(*in, csv, map[string]any{}, "spec", "provider") }, "spec.provider.name: required"},
		"no email address":              {func(in *bundle.Input) { set(*in, csv, []any{map[string]any{"name": "A"}}, "spec", "maintainers") }, `spec.maintainers[0]: got "A" <>, want a name and an email address`},
		"an invalid URL": {func(in *bundle.Input) {
			set(*in, csv, []any{map[string]any{"name": "A", "url": "example"}}, "spec", "links")
		}, `spec.links[0]: got "A" "example", want a name and a URL`},
		"an icon without a type": {func(in *bundle.Input) { set(*in, csv, []any{map[string]any{"base64data": "AA=="}}, "spec", "icon") }, `spec.icon[0].mediatype: got "", want one of image/gif, image/jpeg, image/png, image/svg+xml`},
		"an invalid icon": {func(in *bundle.Input) {
			set(*in, csv, []any{map[string]any{"base64data": "%", "mediatype": "image/png"}}, "spec", "icon")
		}, "spec.icon[0].base64data: want an image in base64"},
		"a minKubeVersion of two numbers": {func(in *bundle.Input) { set(*in, csv, "1.29", "spec", "minKubeVersion") }, `spec.minKubeVersion: got "1.29", want three numbers`},
		"no install mode":                 {func(in *bundle.Input) { setModes(*in) }, "spec.installModes: no mode is supported"},
		"an unknown install mode": {func(in *bundle.Input) {
			set(*in, csv, []any{map[string]any{"type": "All", "supported": true}}, "spec", "installModes")
		}, `spec.installModes[0].type: got "All", want each of these at most once: OwnNamespace`},
		"install modes of a wrong type": {func(in *bundle.Input) { set(*in, csv, "all", "spec", "installModes") }, "ClusterServiceVersion: spec.installModes: unexpected type string"},
		"an unknown capability level":   {func(in *bundle.Input) { set(*in, csv, "Full", "metadata", "annotations", "capabilities") }, `metadata.annotations.capabilities: got "Full", want one of Basic Install, Seamless Upgrades`},
		"an unknown category":           {func(in *bundle.Input) { set(*in, csv, "Database, Charts", "metadata", "annotations", "categories") }, `metadata.annotations.categories: got "Charts", want some of`},
		"a binding to a missing role": {func(in *bundle.Input) {
			more(in, rbacV1, "RoleBinding", "delegates", map[string]any{
				"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:auth-delegator"},
				"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "chartwright-controller-manager"}},
			})
		}, "RoleBinding delegates binds the account chartwright-controller-manager to the ClusterRole system:auth-delegator, which is not in config/manifests"},
		"a field of a wrong type": {func(in *bundle.Input) { set(*in, "Deployment", "two", "spec", "replicas") }, "Deployment chartwright-controller-manager: "},
		"no WATCH_NAMESPACE": {func(in *bundle.Input) {
			in.Objects = slices.Concat(slices.DeleteFunc(in.Objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" }),
				slices.DeleteFunc(build(t, repository+"/config/default"), func(o *unstructured.Unstructured) bool { return o.GetKind() != "Deployment" }))
		}, "no container has WATCH_NAMESPACE from metadata.annotations['olm.targetNamespaces']"},
	} {
		t.Run(name, func(t *testing.T) {
			in := fresh(t)
			test.change(&in)
			_, err := bundle.Make(t.Context(), in)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v\nwant %s", err, test.want)
			}
			if err != nil && strings.Count(err.Error(), "\n") > 1 {
				t.Errorf("more than one problem:\n%v", err)
			}
		})
	}
}

func TestMake_AddsNotes(t *testing.T) {
	for name, test := range map[string]struct {
		change func(in *bundle.Input)
		want   string
	}{
		"an unusual channel name":              {func(in *bundle.Input) { in.Channels = []string{"alpha"} }, "channel alpha: names of channels usually start with candidate, fast, stable"},
		"a default channel without the bundle": {func(in *bundle.Input) { in.DefaultChannel = "fast" }, "the bundle is not in the default channel fast"},
		"an object that OLM does not support": {func(in *bundle.Input) { more(in, "batch/v1", "CronJob", "tidy", nil) },
			"CronJob tidy is not in the bundle: OLM does not support the kind CronJob"},
		"no icon":          {func(in *bundle.Input) { set(*in, csv, []any{}, "spec", "icon") }, "spec.icon: recommended for catalogs such as OperatorHub"},
		"no description":   {func(in *bundle.Input) { set(*in, csv, "", "spec", "description") }, "spec.description: recommended"},
		"a missing sample": {func(in *bundle.Input) { without(in, "PodSet") }, "the kind PodSet has no sample of version v1alpha1"},
		"an invalid sample": {func(in *bundle.Input) { set(*in, "PodSet", "many", "spec", "replicas") },
			"sample PodSet default/podset-sample: its objects are not listed: "},
	} {
		t.Run(name, func(t *testing.T) {
			in := fresh(t)
			test.change(&in)
			b := makeBundle(t, in)
			if len(b.Notes) != 1 || !strings.Contains(b.Notes[0], test.want) {
				t.Errorf("notes %q\nwant %s", b.Notes, test.want)
			}
		})
	}
}

// TestMake_OtherObjectsAreFiles checks that the objects that OLM supports are files without
// a namespace, and that the roles and accounts of the operator are not.
func TestMake_OtherObjectsAreFiles(t *testing.T) {
	in := fresh(t)
	more(&in, "v1", "Service", "metrics", map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(8443)}}}})
	more(&in, "v1", "ServiceAccount", "another", nil)
	more(&in, "batch/v1", "CronJob", "tidy", nil)
	b := makeBundle(t, in)
	files := map[string]string{
		"manifests/metrics_v1_service.yaml":                                                              "port: 8443",
		"manifests/tidy_batch_v1_cronjob.yaml":                                                           "",
		"manifests/another_v1_serviceaccount.yaml":                                                       "name: another",
		"manifests/chartwright-podset-viewer-role_rbac.authorization.k8s.io_v1_clusterrole.yaml":         "aggregate-to-view",
		"manifests/chartwright-manager-role_rbac.authorization.k8s.io_v1_clusterrole.yaml":               "",
		"manifests/chartwright-manager-rolebinding_rbac.authorization.k8s.io_v1_clusterrolebinding.yaml": "",
		"manifests/chartwright-leader-election-role_rbac.authorization.k8s.io_v1_role.yaml":              "",
		"manifests/chartwright-controller-manager_v1_serviceaccount.yaml":                                "",
	}
	for file, has := range files {
		data, exists := b.Files[file]
		if exists != (has != "") || !strings.Contains(string(data), has) || strings.Contains(string(data), "namespace:") {
			t.Errorf("%s: exists %v, %s", file, exists, data)
		}
	}
}

// TestMake_BaseOverridesDerivedFields also checks that other fields of the base are
// preserved.
func TestMake_BaseOverridesDerivedFields(t *testing.T) {
	in := fresh(t)
	set(in, csv, map[string]any{
		"owned":    []any{map[string]any{"name": "podsets.app.example.com", "version": "v1alpha1", "displayName": "Set of pods"}},
		"required": []any{map[string]any{"name": "certificates.cert-manager.io", "version": "v1", "kind": "Certificate"}},
	}, "spec", "customresourcedefinitions")
	set(in, csv, []any{map[string]any{"name": "extra", "image": "example.com/extra:v1"}}, "spec", "relatedImages")
	set(in, csv, "elsewhere", "metadata", "annotations", "operatorframework.io/suggested-namespace")
	found := read(t, makeBundle(t, in))
	spec := found.csv.Spec
	for _, owned := range spec.CustomResourceDefinitions.Owned {
		if owned.Kind == "PodSet" && (owned.DisplayName != "Set of pods" || len(owned.SpecDescriptors) == 0) {
			t.Errorf("PodSet is described as %+v", owned)
		}
	}
	if len(spec.CustomResourceDefinitions.Owned) != len(in.Kinds) || len(spec.CustomResourceDefinitions.Required) != 1 {
		t.Errorf("%d owned, %d required", len(spec.CustomResourceDefinitions.Owned), len(spec.CustomResourceDefinitions.Required))
	}
	if spec.RelatedImages[0].Name != "extra" || len(spec.RelatedImages) < 3 {
		t.Errorf("related images %v", spec.RelatedImages)
	}
	if got := found.csv.Metadata.Annotations["operatorframework.io/suggested-namespace"]; got != "elsewhere" {
		t.Errorf("suggested namespace %q", got)
	}
}
