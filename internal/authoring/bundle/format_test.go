package bundle_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/authoring/bundle"
)

// bundled is a parsed bundle.
type bundled struct {
	csv         clusterServiceVersion
	examples    []map[string]any
	definitions map[string]apiextensionsv1.CustomResourceDefinition
	objects     []*unstructured.Unstructured
}

// strict parses a file and fails the test if it has unknown fields.
func strict(t *testing.T, name string, data []byte, to any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(data, to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// read parses the manifests of a bundle, and fails the test if they are invalid.
func read(t *testing.T, b *bundle.Bundle) bundled {
	t.Helper()
	found := bundled{definitions: map[string]apiextensionsv1.CustomResourceDefinition{}}
	for _, file := range slices.Sorted(maps.Keys(b.Files)) {
		if path.Dir(file) != "manifests" {
			continue
		}
		object := &unstructured.Unstructured{}
		strict(t, file, b.Files[file], &object.Object)
		switch object.GetKind() {
		case "ClusterServiceVersion":
			if found.csv.Metadata.Name != "" {
				t.Errorf("%s: a second ClusterServiceVersion", file)
			}
			strict(t, file, b.Files[file], &found.csv)
		case "CustomResourceDefinition":
			var definition apiextensionsv1.CustomResourceDefinition
			strict(t, file, b.Files[file], &definition)
			found.definitions[definition.Name] = definition
		default:
			found.objects = append(found.objects, object)
		}
	}
	if err := json.Unmarshal([]byte(found.csv.Metadata.Annotations["alm-examples"]), &found.examples); err != nil {
		t.Fatalf("alm-examples: %v", err)
	}
	return found
}

// checkFormat checks the requirements of OLM, catalogs and the scorecard for a bundle.
func checkFormat(t *testing.T, b *bundle.Bundle) bundled {
	t.Helper()
	found := read(t, b)
	metadataAgrees(t, b)
	found.isInstallable(t)
	found.kindsAreDescribed(t)
	found.scorecardPasses(t)
	scorecardIsConfigured(t, b.Files["tests/scorecard/config.yaml"])
	objectsAreSupported(t, found)
	isSmall(t, b)
	return found
}

func metadataAgrees(t *testing.T, b *bundle.Bundle) {
	t.Helper()
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	strict(t, "metadata/annotations.yaml", b.Files["metadata/annotations.yaml"], &metadata)
	labels := map[string]string{}
	copied := map[string]string{}
	for line := range strings.Lines(string(b.Dockerfile)) {
		line = strings.TrimSpace(line)
		if pair, ok := strings.CutPrefix(line, "LABEL "); ok {
			key, value, _ := strings.Cut(pair, "=")
			labels[key] = value
		}
		if pair, ok := strings.CutPrefix(line, "COPY "); ok {
			from, to, _ := strings.Cut(pair, " ")
			copied[strings.Trim(to, "/")] = from
		}
	}
	if diff := cmp.Diff(metadata.Annotations, labels); diff != "" {
		t.Errorf("metadata/annotations.yaml and the labels of the image differ (-annotations +labels):\n%s", diff)
	}
	for key, want := range map[string]string{
		"operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
		"operators.operatorframework.io.bundle.manifests.v1": "manifests/",
		"operators.operatorframework.io.bundle.metadata.v1":  "metadata/",
		"operators.operatorframework.io.test.mediatype.v1":   "scorecard+v1",
		"operators.operatorframework.io.test.config.v1":      "tests/scorecard/",
	} {
		if labels[key] != want {
			t.Errorf("%s is %q, want %q", key, labels[key], want)
		}
	}
	for _, key := range []string{"package.v1", "channels.v1", "channel.default.v1"} {
		if labels["operators.operatorframework.io.bundle."+key] == "" {
			t.Errorf("no %s", key)
		}
	}
	for file := range b.Files {
		if copied[path.Dir(file)] != "bundle/"+path.Dir(file) {
			t.Errorf("%s is not in the image:\n%s", file, b.Dockerfile)
		}
	}
}

// isInstallable checks names, versions, install modes, deployments and permissions.
func (b bundled) isInstallable(t *testing.T) {
	t.Helper()
	spec := b.csv.Spec
	if b.csv.APIVersion != "operators.coreos.com/v1alpha1" {
		t.Errorf("apiVersion %q", b.csv.APIVersion)
	}
	_, version, _ := strings.Cut(b.csv.Metadata.Name, ".v")
	if _, err := semver.StrictNewVersion(version); err != nil || version != spec.Version || len(validation.IsDNS1123Subdomain(b.csv.Metadata.Name)) > 0 {
		t.Errorf("the name %q, of version %q", b.csv.Metadata.Name, spec.Version)
	}
	if spec.DisplayName == "" || spec.Provider.Name == "" || len(spec.Icon) != 1 || len(spec.Icon[0].Data) == 0 || spec.Icon[0].MediaType == "" {
		t.Errorf("displayName %q, provider %q, %d icons", spec.DisplayName, spec.Provider.Name, len(spec.Icon))
	}
	modes := map[string]bool{}
	for _, mode := range spec.InstallModes {
		modes[mode.Type] = mode.Supported
	}
	if len(spec.InstallModes) != 4 || !maps.Equal(modes, map[string]bool{"OwnNamespace": true, "SingleNamespace": true, "MultiNamespace": true, "AllNamespaces": true}) {
		t.Errorf("install modes %v", spec.InstallModes)
	}
	if spec.Install.Strategy != "deployment" || len(spec.Install.Spec.Deployments) != 1 {
		t.Fatalf("strategy %q, %d deployments", spec.Install.Strategy, len(spec.Install.Spec.Deployments))
	}
	pod := spec.Install.Spec.Deployments[0].Spec.Template.Spec
	for _, container := range pod.Containers {
		if container.Image == "" || container.Image == bundle.Placeholder {
			t.Errorf("container %s has the image %q", container.Name, container.Image)
		}
		if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() {
			t.Errorf("container %s has no resource requests", container.Name)
		}
	}
	for _, given := range slices.Concat(spec.Install.Spec.Permissions, spec.Install.Spec.ClusterPermissions) {
		if given.ServiceAccountName != pod.ServiceAccountName || len(given.Rules) == 0 {
			t.Errorf("%d rules for the account %s, and the pods run as %s", len(given.Rules), given.ServiceAccountName, pod.ServiceAccountName)
		}
	}
	images := map[string]bool{}
	for _, image := range spec.RelatedImages {
		if image.Name == "" || image.Image == "" || images[image.Name] {
			t.Errorf("related image %+v", image)
		}
		images[image.Name] = true
	}
}

// kindsAreDescribed checks that each version of each CRD is owned and has an example, and
// that the fields of descriptors exist.
func (b bundled) kindsAreDescribed(t *testing.T) {
	t.Helper()
	var existing, described, shown []string
	for name, definition := range b.definitions {
		for _, version := range definition.Spec.Versions {
			existing = append(existing, name+" "+version.Name+" "+definition.Spec.Names.Kind)
		}
	}
	for _, owned := range b.csv.Spec.CustomResourceDefinitions.Owned {
		described = append(described, owned.Name+" "+owned.Version+" "+owned.Kind)
		version := b.version(t, owned)
		if owned.DisplayName == "" || owned.Description == "" {
			t.Errorf("%s: displayName %q, description %q", owned.Name, owned.DisplayName, owned.Description)
		}
		for field, descriptors := range map[string][]descriptor{"spec": owned.SpecDescriptors, "status": owned.StatusDescriptors} {
			paths := map[string]bool{}
			for _, d := range descriptors {
				if d.DisplayName == "" || paths[d.Path] {
					t.Errorf("%s: descriptor %+v", owned.Name, d)
				}
				paths[d.Path] = true
				leadsTo(t, owned.Name+": "+field+"."+d.Path, version.Schema.OpenAPIV3Schema.Properties[field], d)
			}
		}
	}
	for _, example := range b.examples {
		object := unstructured.Unstructured{Object: example}
		gvk := object.GroupVersionKind()
		for _, definition := range b.definitions {
			if definition.Spec.Group == gvk.Group && definition.Spec.Names.Kind == gvk.Kind {
				shown = append(shown, definition.Name+" "+gvk.Version+" "+gvk.Kind)
			}
		}
	}
	slices.Sort(existing)
	slices.Sort(described)
	slices.Sort(shown)
	if diff := cmp.Diff(existing, described); diff != "" || len(existing) == 0 {
		t.Errorf("owned CRDs differ from the CRDs in the bundle (-bundle +owned):\n%s", diff)
	}
	if diff := cmp.Diff(existing, slices.Compact(shown)); diff != "" || len(shown) != len(b.examples) {
		t.Errorf("examples differ from the owned CRDs (-owned +examples):\n%s", diff)
	}
}

func (b bundled) version(t *testing.T, owned crdDescription) apiextensionsv1.CustomResourceDefinitionVersion {
	t.Helper()
	for _, version := range b.definitions[owned.Name].Spec.Versions {
		if version.Name == owned.Version {
			return version
		}
	}
	t.Fatalf("%s has no version %s", owned.Name, owned.Version)
	return apiextensionsv1.CustomResourceDefinitionVersion{}
}

// capabilities maps the capabilities of consoles to the types of their fields, see
// https://github.com/openshift/console/blob/main/frontend/packages/operator-lifecycle-manager/src/components/descriptors/reference/reference.md.
var capabilities = map[string][]string{
	"urn:alm:descriptor:com.tectonic.ui:podCount":             {"integer"},
	"urn:alm:descriptor:com.tectonic.ui:resourceRequirements": {"object"},
	"urn:alm:descriptor:com.tectonic.ui:booleanSwitch":        {"boolean"},
	"urn:alm:descriptor:com.tectonic.ui:text":                 {"string", ""},
	"urn:alm:descriptor:com.tectonic.ui:number":               {"integer", "number"},
	"urn:alm:descriptor:com.tectonic.ui:password":             {"string"},
	"urn:alm:descriptor:com.tectonic.ui:imagePullPolicy":      {"string"},
	"urn:alm:descriptor:com.tectonic.ui:select:":              {"string", "integer", "number"},
	"urn:alm:descriptor:io.kubernetes:Secret":                 {"string"},
	"urn:alm:descriptor:io.kubernetes:ConfigMap":              {"string"},
	"urn:alm:descriptor:io.kubernetes:ServiceAccount":         {"string"},
	"urn:alm:descriptor:io.kubernetes.conditions":             {"array"},
	"urn:alm:descriptor:io.kubernetes.phase":                  {"string"},
	"urn:alm:descriptor:org.w3:link":                          {"string"},
	"urn:alm:descriptor:text":                                 {"string", "integer", "number", "boolean"},
}

func leadsTo(t *testing.T, what string, schema apiextensionsv1.JSONSchemaProps, d descriptor) {
	t.Helper()
	for name := range strings.SplitSeq(d.Path, ".") {
		field, exists := schema.Properties[name]
		if !exists {
			t.Errorf("%s: the field does not exist", what)
			return
		}
		schema = field
	}
	for _, capability := range d.XDescriptors {
		key := capability
		if prefix, value, isSelect := strings.Cut(capability, ":select:"); isSelect {
			key = prefix + ":select:"
			quoted, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(schema.Enum, func(one apiextensionsv1.JSON) bool {
				return string(one.Raw) == value || bytes.Equal(one.Raw, quoted)
			}) {
				t.Errorf("%s: the enum does not contain %s", what, value)
			}
		}
		if types, known := capabilities[key]; !known || !slices.Contains(types, schema.Type) {
			t.Errorf("%s, of type %q: %s", what, schema.Type, capability)
		}
	}
}

// scorecardPasses runs the checks of the scorecard.
func (b bundled) scorecardPasses(t *testing.T) {
	t.Helper()
	for _, example := range b.examples {
		object := unstructured.Unstructured{Object: example}
		spec, exists := example["spec"].(map[string]any)
		if !exists || len(spec) == 0 {
			t.Errorf("basic-check-spec: the example of %s has no spec", object.GetKind())
		}
		at := slices.IndexFunc(b.csv.Spec.CustomResourceDefinitions.Owned, func(o crdDescription) bool { return o.Kind == object.GetKind() })
		if at < 0 {
			continue
		}
		owned := b.csv.Spec.CustomResourceDefinitions.Owned[at]
		schema := b.version(t, owned).Schema.OpenAPIV3Schema.Properties["spec"]
		for field := range spec {
			if _, known := schema.Properties[field]; !known {
				t.Errorf("olm-crds-have-validation: %s: %s is not in the schema", object.GetKind(), field)
			}
			if !slices.ContainsFunc(owned.SpecDescriptors, func(d descriptor) bool { return d.Path == field }) {
				t.Errorf("olm-spec-descriptors: %s: %s has none", object.GetKind(), field)
			}
		}
		if len(owned.StatusDescriptors) == 0 {
			t.Errorf("olm-status-descriptors: %s has none", object.GetKind())
		}
		if len(owned.Resources) == 0 {
			t.Errorf("olm-crds-have-resources: %s has none", object.GetKind())
		}
	}
}

func scorecardIsConfigured(t *testing.T, data []byte) {
	t.Helper()
	var configuration scorecardConfiguration
	strict(t, "tests/scorecard/config.yaml", data, &configuration)
	if configuration.APIVersion != "scorecard.operatorframework.io/v1alpha3" || configuration.Kind != "Configuration" || configuration.Metadata.Name != "config" {
		t.Errorf("the scorecard's configuration is %s %s %s", configuration.APIVersion, configuration.Kind, configuration.Metadata.Name)
	}
	var tests []string
	for _, stage := range configuration.Stages {
		for _, test := range stage.Tests {
			if len(test.Entrypoint) != 2 || test.Entrypoint[0] != "scorecard-test" || test.Labels["test"] != test.Entrypoint[1]+"-test" ||
				!strings.HasPrefix(test.Image, "quay.io/operator-framework/scorecard-test:v") {
				t.Errorf("test %+v", test)
				continue
			}
			tests = append(tests, test.Labels["suite"]+" "+test.Entrypoint[1])
		}
	}
	slices.Sort(tests)
	if diff := cmp.Diff([]string{
		"basic basic-check-spec", "olm olm-bundle-validation", "olm olm-crds-have-resources", "olm olm-crds-have-validation",
		"olm olm-spec-descriptors", "olm olm-status-descriptors",
	}, tests); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
}

// objectsAreSupported checks the kinds of the other objects. OLM creates the namespace and
// the service accounts.
func objectsAreSupported(t *testing.T, b bundled) {
	t.Helper()
	for _, object := range b.objects {
		if !slices.Contains([]string{"ClusterRole", "ConfigMap", "Role", "Service", "PodDisruptionBudget", "PrometheusRule", "ServiceMonitor", "NetworkPolicy", "ClusterRoleBinding", "RoleBinding"}, object.GetKind()) {
			t.Errorf("unexpected %s %s", object.GetKind(), object.GetName())
		}
		if object.GetNamespace() != "" {
			t.Errorf("%s %s has the namespace %s, which OLM sets", object.GetKind(), object.GetName(), object.GetNamespace())
		}
	}
}

// isSmall checks that the bundle fits into a ConfigMap, into which OLM unpacks it.
func isSmall(t *testing.T, b *bundle.Bundle) {
	t.Helper()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	for _, data := range b.Files {
		if _, err := writer.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if packed.Len() > 1<<20 {
		t.Errorf("the bundle has %d bytes", packed.Len())
	}
}
