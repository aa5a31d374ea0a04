package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/authoring/bundle"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// installed contains what the Operator Lifecycle Manager installs from a
// bundle.
type installed struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Install struct {
			Spec struct {
				Deployments []struct {
					Name string                `json:"name"`
					Spec appsv1.DeploymentSpec `json:"spec"`
				} `json:"deployments"`
				Permissions, ClusterPermissions []struct {
					Rules []rbacv1.PolicyRule `json:"rules"`
				}
			} `json:"spec"`
		} `json:"install"`
	} `json:"spec"`
}

// The test acts as the Operator Lifecycle Manager for one namespace: the
// operator has the bundle's permissions there, its clusterPermissions, and no
// others. With these, the bundle's examples become ready and can be deleted.
func TestBundle_InstallForOneNamespace(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	files := makeBundle(t)
	var csv installed
	if err := yaml.Unmarshal(files["manifests/chartwright.clusterserviceversion.yaml"], &csv); err != nil {
		t.Fatal(err)
	}
	install := csv.Spec.Install.Spec
	if len(install.Deployments) != 1 || len(install.Permissions) != 1 || len(install.ClusterPermissions) != 1 {
		t.Fatalf("%d deployments, %d permissions, %d clusterPermissions, want one of each", len(install.Deployments), len(install.Permissions), len(install.ClusterPermissions))
	}
	serverTakes(t, env, files, install.Deployments[0].Name, install.Deployments[0].Spec)

	env.NewOperator(harness.Options{Grants: &harness.Grants{
		InNamespace: install.Permissions[0].Rules, ClusterWide: install.ClusterPermissions[0].Rules,
	}}).Start()
	var examples []json.RawMessage
	if err := json.Unmarshal([]byte(csv.Metadata.Annotations["alm-examples"]), &examples); err != nil {
		t.Fatal(err)
	}
	var documents strings.Builder
	var names []string
	for _, example := range examples {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(example, &object); err != nil {
			t.Fatal(err)
		}
		// These kinds are cluster-scoped, and their releases are in another namespace.
		if object.Kind == "Config" || object.Kind == "ClusterAddon" {
			continue
		}
		gvk := object.GroupVersionKind()
		names = append(names, object.Kind+"."+gvk.Version+"."+gvk.Group+"/"+object.Name)
		documents.WriteString("---\n" + string(example) + "\n")
	}
	env.KubectlWith(documents.String(), "apply", "-f", "-")
	env.Kubectl(append([]string{"wait", "--for=condition=Ready", harness.Timeout}, names...)...)
	if list := env.Helm("list"); strings.Count(list, "deployed") != len(examples)-2 {
		t.Errorf("helm list shows\n%s", list)
	}
	env.KubectlWith(documents.String(), "delete", "-f", "-", harness.Timeout)
}

func makeBundle(t *testing.T) map[string][]byte {
	t.Helper()
	objects, err := bundle.Build(harness.Root("config", "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := catalog.FromFile(harness.Root("watches.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := bundle.Make(t.Context(), bundle.Input{
		Options: bundle.Options{Version: "1.2.3", Image: "chartwright:v1.2.3", Channels: []string{"stable"}},
		Name:    "chartwright", Folder: "bundle", Kinds: kinds, Objects: objects,
	})
	if err != nil {
		t.Fatal(err)
	}
	return made.Files
}

// serverTakes checks by dry run that the API server accepts the objects of the
// bundle, and the Deployment that OLM creates.
func serverTakes(t *testing.T, env *harness.Env, files map[string][]byte, name string, spec appsv1.DeploymentSpec) {
	t.Helper()
	deployment, err := yaml.Marshal(appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("deployment.yaml", deployment)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		// OLM's own kind.
		if dir, file := filepath.Split(path); dir == "manifests/" && !strings.HasSuffix(file, ".clusterserviceversion.yaml") {
			write(file, files[path])
		}
	}
	printed := env.Kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", folder)
	if taken := strings.Count(printed, "(server dry run)"); taken < len(files)-3 {
		t.Errorf("the API server accepted %d objects of %d files:\n%s", taken, len(files), printed)
	}
}
