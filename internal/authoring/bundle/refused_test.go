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

// without takes the objects of a kind away.
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

// TestRefused: what OLM would refuse is told by the path of the field, and with
// what is expected.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(in *bundle.Input)
		want   string
	}{
		"no version":           {func(in *bundle.Input) { in.Version = "" }, `the version "": expected one of Semantic Versioning, such as 1.2.3`},
		"a version with a v":   {func(in *bundle.Input) { in.Version = "v1.2.3" }, `the version "v1.2.3": expected`},
		"no version at all":    {func(in *bundle.Input) { in.Version = "0.0.0" }, "the version 0.0.0 is taken for none"},
		"a version in a name":  {func(in *bundle.Input) { in.Version = "1.2.3+build" }, `chartwright.v1.2.3+build cannot be a name`},
		"replaces a later one": {func(in *bundle.Input) { in.Replaces = "1.2.3" }, "the version 1.2.3 cannot replace 1.2.3, which is not lower"},
		"replaces no version":  {func(in *bundle.Input) { in.Replaces = "chartwright.v1.0.0" }, `the version "chartwright.v1.0.0" that is replaced: expected`},
		"no channel":           {func(in *bundle.Input) { in.Channels = nil }, "no channel is given"},
		"no image":             {func(in *bundle.Input) { in.Image = "" }, "Deployment chartwright-controller-manager: the image of the container manager is controller:latest, which stands for another: say by --image which"},
		"no base":              {func(in *bundle.Input) { without(in, csv) }, "config/manifests has no ClusterServiceVersion"},
		"two bases":            {func(in *bundle.Input) { more(in, "operators.coreos.com/v1alpha1", csv, "b", nil) }, "ClusterServiceVersion b: there is another, chartwright.v0.0.0: a bundle has one"},
		"no deployment":        {func(in *bundle.Input) { without(in, "Deployment") }, "config/manifests has no Deployment"},
		"no definition":        {func(in *bundle.Input) { without(in, "CustomResourceDefinition") }, "config/manifests has no CustomResourceDefinition: make a kind by 'chartwright add'"},
		"no name for people":   {func(in *bundle.Input) { set(*in, csv, "", "spec", "displayName") }, "spec.displayName: missing"},
		"nobody behind it":     {func(in *bundle.Input) { set(*in, csv, map[string]any{}, "spec", "provider") }, "spec.provider.name: missing"},
		"no address":           {func(in *bundle.Input) { set(*in, csv, []any{map[string]any{"name": "A"}}, "spec", "maintainers") }, `spec.maintainers[0]: "A" <>: expected a name, and an email address`},
		"no url": {func(in *bundle.Input) {
			set(*in, csv, []any{map[string]any{"name": "A", "url": "example"}}, "spec", "links")
		}, `spec.links[0]: "A" "example": expected a name, and a url`},
		"a picture of no type": {func(in *bundle.Input) { set(*in, csv, []any{map[string]any{"base64data": "AA=="}}, "spec", "icon") }, `spec.icon[0].mediatype: "": expected one of image/gif, image/jpeg, image/png, image/svg+xml`},
		"no picture": {func(in *bundle.Input) {
			set(*in, csv, []any{map[string]any{"base64data": "%", "mediatype": "image/png"}}, "spec", "icon")
		}, "spec.icon[0].base64data: expected a picture, in base64"},
		"a version of no three": {func(in *bundle.Input) { set(*in, csv, "1.29", "spec", "minKubeVersion") }, `spec.minKubeVersion: "1.29": expected three numbers`},
		"no mode":               {func(in *bundle.Input) { setModes(*in) }, "spec.installModes: none is supported"},
		"a mode of none": {func(in *bundle.Input) {
			set(*in, csv, []any{map[string]any{"type": "All", "supported": true}}, "spec", "installModes")
		}, `spec.installModes[0].type: "All": expected each once of OwnNamespace`},
		"modes of another type": {func(in *bundle.Input) { set(*in, csv, "all", "spec", "installModes") }, "ClusterServiceVersion: spec.installModes: a string is none of what is expected there"},
		"a level of none":       {func(in *bundle.Input) { set(*in, csv, "Full", "metadata", "annotations", "capabilities") }, `metadata.annotations.capabilities: "Full": expected one of Basic Install, Seamless Upgrades`},
		"a category of none":    {func(in *bundle.Input) { set(*in, csv, "Database, Charts", "metadata", "annotations", "categories") }, `metadata.annotations.categories: "Charts": expected some of`},
		"rights of no rules": {func(in *bundle.Input) {
			more(in, rbacV1, "RoleBinding", "delegates", map[string]any{
				"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:auth-delegator"},
				"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "chartwright-controller-manager"}},
			})
		}, "RoleBinding delegates gives the account chartwright-controller-manager the ClusterRole system:auth-delegator, which config/manifests has not"},
		"a field of no object": {func(in *bundle.Input) { set(*in, "Deployment", "two", "spec", "replicas") }, "Deployment chartwright-controller-manager: "},
		"not told of namespaces": {func(in *bundle.Input) {
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

// TestNoted: what is taken, and may not be what was meant.
func TestNoted(t *testing.T) {
	for name, test := range map[string]struct {
		change func(in *bundle.Input)
		want   string
	}{
		"a channel of another name": {func(in *bundle.Input) { in.Channels = []string{"alpha"} }, "the channel alpha: by custom the names of channels begin with candidate, fast, stable"},
		"a channel it is not in":    {func(in *bundle.Input) { in.DefaultChannel = "fast" }, "the default channel fast is none that this bundle is in"},
		"an object that OLM does not take": {func(in *bundle.Input) { more(in, "batch/v1", "CronJob", "tidy", nil) },
			"CronJob tidy is left out: OLM takes no CronJob beside an operator"},
		"no icon":        {func(in *bundle.Input) { set(*in, csv, []any{}, "spec", "icon") }, "spec.icon: catalogs such as OperatorHub want one"},
		"no description": {func(in *bundle.Input) { set(*in, csv, "", "spec", "description") }, "spec.description: it is what a catalog shows"},
		"a sample gone":  {func(in *bundle.Input) { without(in, "PodSet") }, "the kind PodSet has no sample of version v1alpha1"},
		"a sample that is refused": {func(in *bundle.Input) { set(*in, "PodSet", "many", "spec", "replicas") },
			"the sample PodSet default/podset-sample: what it is made of is not listed: "},
	} {
		t.Run(name, func(t *testing.T) {
			in := fresh(t)
			test.change(&in)
			b := made(t, in)
			if len(b.Notes) != 1 || !strings.Contains(b.Notes[0], test.want) {
				t.Errorf("notes %q\nwant %s", b.Notes, test.want)
			}
		})
	}
}

// TestObjectsBesideTheOperator: those that OLM takes are files, in no namespace
// and by the names that they have elsewhere; the operator's own are none.
func TestObjectsBesideTheOperator(t *testing.T) {
	in := fresh(t)
	more(&in, "v1", "Service", "metrics", map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(8443)}}}})
	more(&in, "v1", "ServiceAccount", "another", nil)
	more(&in, "batch/v1", "CronJob", "tidy", nil)
	b := made(t, in)
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
		data, there := b.Files[file]
		if there != (has != "") || !strings.Contains(string(data), has) || strings.Contains(string(data), "namespace:") {
			t.Errorf("%s: there %v, %s", file, there, data)
		}
	}
}

// TestBaseGoesThrough: what a person writes goes before what follows, and what
// bundles of ours do not have stays.
func TestBaseGoesThrough(t *testing.T) {
	in := fresh(t)
	set(in, csv, map[string]any{
		"owned":    []any{map[string]any{"name": "podsets.app.example.com", "version": "v1alpha1", "displayName": "Set of pods"}},
		"required": []any{map[string]any{"name": "certificates.cert-manager.io", "version": "v1", "kind": "Certificate"}},
	}, "spec", "customresourcedefinitions")
	set(in, csv, []any{map[string]any{"name": "extra", "image": "example.com/extra:v1"}}, "spec", "relatedImages")
	set(in, csv, "elsewhere", "metadata", "annotations", "operatorframework.io/suggested-namespace")
	found := read(t, made(t, in))
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
		t.Errorf("the namespace %q is suggested", got)
	}
}
