package helm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// faultyWorld is a world with a release that has two ConfigMaps, a Service, a claim, a hook, a
// CRD and a custom resource of that CRD.
type faultyWorld struct {
	*world
	mu sync.Mutex
	// one and two are the chart before and after the upgrade.
	one, two *chart.Chart
	// warnings are the reasons of the warnings that were reported.
	warnings []string
}

func newFaultyWorld(t *testing.T) *faultyWorld {
	w := &faultyWorld{world: newWorld(t)}
	w.one, w.two = w.chart("").load(t), w.chart(", part: {type: integer}").load(t)
	w.kinds = map[schema.GroupKind]schema.GroupVersionResource{
		{Kind: "Service"}:                            corev1.SchemeGroupVersion.WithResource("services"),
		{Kind: "PersistentVolumeClaim"}:              corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
		{Group: w.namespace + ".com", Kind: "Gauge"}: {Group: w.namespace + ".com", Version: "v1", Resource: "gauges"},
	}
	w.newMapper()
	t.Cleanup(w.cleanUp)
	return w
}

var crdResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// cleanUp deletes the CRD, and the Service, because the API server has few addresses.
func (w *faultyWorld) cleanUp() {
	ctx := context.WithoutCancel(w.Context())
	client, err := metadata.NewForConfig(apiServer.config)
	if err == nil {
		err = client.Resource(crdResource).Delete(ctx, "gauges."+w.namespace+".com", metav1.DeleteOptions{})
	}
	for _, err := range []error{err, w.plain.CoreV1().Services(w.namespace).Delete(ctx, "web", metav1.DeleteOptions{})} {
		if err != nil && !apierrors.IsNotFound(err) {
			w.Error(err)
		}
	}
}

// chart returns the chart, with more fields in its CRD.
func (w *faultyWorld) chart(more string) files {
	group := w.namespace + ".com"
	marked := `labels: {value: "v{{ .Values.maps.a }}"}}`
	return mapsChart().
		with("crds/gauge.yaml", `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.`+group+`}
spec:
  group: `+group+`
  scope: Namespaced
  names: {kind: Gauge, plural: gauges}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {level: {type: integer}`+more+`}}}}}}]
`).
		with("templates/gauge.yaml", "apiVersion: "+group+"/v1\nkind: Gauge\nmetadata: {name: web, "+marked+"\nspec: {level: {{ .Values.maps.a }}}\n").
		with("templates/service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: web, "+marked+"\nspec: {selector: {app: 'v{{ .Values.maps.a }}'}, ports: [{port: 80}]}\n").
		with("templates/claim.yaml", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, "+marked+"\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n").
		with("templates/hook.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations: {helm.sh/hook: 'pre-install,pre-upgrade,pre-rollback,pre-delete'}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}}\n")
}

// ask returns a request of the chart.
func (w *faultyWorld) ask(c *chart.Chart, digest string, values map[string]any) Request {
	r := w.request(c, digest, values)
	r.CRDs, r.FormerManagers = watches.CRDsReplace, []string{"helm"}
	r.Notifier = warnFunc(func(reason, _ string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.warnings = append(w.warnings, reason)
	})
	return r
}

func (w *faultyWorld) first() Request  { return w.ask(w.one, "one", valuesOf("a=1", "b=1")) }
func (w *faultyWorld) second() Request { return w.ask(w.two, "two", valuesOf("a=2", "c=2")) }

// back is the request for a rollback to revision 1.
func (w *faultyWorld) back() Request {
	r := w.second()
	r.Marks = backTo(1, 2)
	return r
}

// verify is the request to apply all objects again.
func (w *faultyWorld) verify() Request {
	r := w.first()
	r.Marks = release.Marks{Reconcile: "request"}
	return r
}

// faultyVerb is an action with the state before it.
type faultyVerb struct {
	name     string
	before   func(*faultyWorld)
	request  func(*faultyWorld) Request
	deleting bool
}

var faultyVerbs = []faultyVerb{
	{"install", func(*faultyWorld) {}, (*faultyWorld).first, false},
	{"upgrade", (*faultyWorld).install, (*faultyWorld).second, false},
	{"rollback", func(w *faultyWorld) { w.install(); w.must(w.helm.Upgrade(w.Context(), w.second())) }, (*faultyWorld).back, false},
	{"uninstall", (*faultyWorld).install, (*faultyWorld).first, true},
	{"repair", (*faultyWorld).drift, (*faultyWorld).first, false},
	{"verification", (*faultyWorld).install, (*faultyWorld).verify, false},
	{"adoption", (*faultyWorld).installByCLI, (*faultyWorld).first, false},
}

func (w *faultyWorld) install() { w.Helper(); w.must(w.helm.Install(w.Context(), w.first())) }

// drift installs the release, and has a user delete one object and change two.
func (w *faultyWorld) drift() {
	w.Helper()
	w.install()
	core := w.plain.CoreV1()
	w.must(core.ConfigMaps(w.namespace).Delete(w.Context(), "a", metav1.DeleteOptions{}))
	_, err := core.ConfigMaps(w.namespace).Patch(w.Context(), "b", "application/merge-patch+json", []byte(`{"data": {"value": "9"}}`), metav1.PatchOptions{})
	w.must(err)
	_, err = core.PersistentVolumeClaims(w.namespace).Patch(w.Context(), "data", "application/merge-patch+json", []byte(`{"metadata": {"labels": {"value": "v9"}}}`), metav1.PatchOptions{})
	w.must(err)
}

// installByCLI installs the release with Helm itself.
func (w *faultyWorld) installByCLI() {
	w.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	dir := w.TempDir()
	flags.Namespace, flags.CacheDir = &w.namespace, &dir
	flags.WrapConfigFn = func(*rest.Config) *rest.Config { return rest.CopyConfig(apiServer.config) }
	config, err := engine.NewCLIConfiguration(flags, w.namespace)
	w.must(err)
	install := engine.NewInstall(config)
	install.ReleaseName, install.Namespace, install.DisableHooks, install.SkipCRDs = "web", w.namespace, true, true
	// Reading the schemas of all kinds takes seconds.
	install.DisableOpenAPIValidation = true
	crd := &apiextensionsv1.CustomResourceDefinition{}
	w.must(yaml.Unmarshal([]byte(w.chart("")["crds/gauge.yaml"]), crd))
	client, err := apiextensions.NewForConfig(apiServer.config)
	w.must(err)
	_, err = client.ApiextensionsV1().CustomResourceDefinitions().Create(w.Context(), crd, metav1.CreateOptions{})
	w.must(err)
	w.must(w.waitServed(schema.GroupVersion{Group: crd.Spec.Group, Version: "v1"}))
	_, err = install.Run(w.one.Clone(), valuesOf("a=1", "b=1"))
	w.must(err)
}

// finishJob acts as the controller of Jobs.
func (w *faultyWorld) finishJob() {
	jobs := w.plain.BatchV1().Jobs(w.namespace)
	job, err := jobs.Get(w.Context(), "migrate", metav1.GetOptions{})
	if err != nil {
		w.Error(err)
		return
	}
	now := metav1.Now()
	done := func(kind batchv1.JobConditionType) batchv1.JobCondition {
		return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now}
	}
	job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{done(batchv1.JobSuccessCriteriaMet), done(batchv1.JobComplete)}}
	if _, err := jobs.UpdateStatus(w.Context(), job, metav1.UpdateOptions{}); err != nil {
		w.Error(err)
	}
}

// uids returns the UIDs of all objects of the kinds of the release.
func (w *faultyWorld) uids() map[string]string {
	w.Helper()
	uids := map[string]string{}
	for _, o := range w.all() {
		uids[o.name] = string(o.UID)
	}
	return uids
}

type namedMetadata struct {
	name string
	metav1.PartialObjectMetadata
}

func (w *faultyWorld) all() []namedMetadata {
	w.Helper()
	var all []namedMetadata
	for _, resource := range slices.AppendSeq([]schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("configmaps")}, maps.Values(w.kinds)) {
		for _, o := range w.list(resource) {
			all = append(all, namedMetadata{resource.Resource + "/" + o.Name, o})
		}
	}
	return all
}

// describe describes the objects, and whether they are those that existed before.
func (w *faultyWorld) describe(before map[string]string) []string {
	w.Helper()
	var described []string
	for _, o := range w.all() {
		if o.Name == "kube-root-ca.crt" || o.Name == "stranger" {
			continue
		}
		since := "created"
		if before[o.name] != "" {
			since = "replaced"
		}
		if before[o.name] == string(o.UID) {
			since = "the same"
		}
		described = append(described, fmt.Sprintf("%s %s %s, owned %t, referring %t, deleted %t", o.name, since, o.Labels["value"], o.Labels[api.LabelOwnerUID] != "", len(o.OwnerReferences) > 0, o.DeletionTimestamp != nil))
	}
	slices.Sort(described)
	return described
}
