package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/operator/kindset"
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/testenv"
)

// leaves is a cluster with custom resources of the kind Leaf, whose chart renders a
// ConfigMap.
type leaves struct {
	client.Client
	t   *testing.T
	ctx context.Context
}

const leafKind = "Leaf.live.example.com"

// leafOf returns the kind with a version of its chart, and an additional template.
func leafOf(t *testing.T, version, template string) catalog.Kind {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"Chart.yaml":       "apiVersion: v2\nname: leaf\nversion: " + version + "\n",
		"kind.yaml":        "group: live.example.com\nversion: v1\nkind: Leaf\n",
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {version: \"{{ .Chart.Version }}\", color: \"{{ .Values.color }}\"}\n",
		"templates/b.yaml": template,
		"values.yaml":      "color: green\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kind, err := catalog.ReadFolder(dir, catalog.FolderDefaults{})
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

func newLeaves(t *testing.T, config *rest.Config) *leaves {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	t.Cleanup(cancel)
	definition, _, err := crd.Generate(leafOf(t, "1.0.0", ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, definition); err != nil {
		t.Fatal(err)
	}
	return &leaves{Client: c, t: t, ctx: ctx}
}

func leaf(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "live.example.com/v1", "kind": "Leaf", "metadata": map[string]any{"name": name, "namespace": "default"},
	}}
}

// create creates custom resources. The CRD may not be served yet.
func (l *leaves) create(names ...string) {
	l.t.Helper()
	for _, name := range names {
		l.wait("create "+name, func() error { return l.Create(l.ctx, leaf(name)) })
	}
}

func (l *leaves) wait(what string, try func() error) {
	l.t.Helper()
	var last error
	if err := wait.PollUntilContextCancel(l.ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	}); err != nil {
		l.t.Fatalf("%s: %v", what, last)
	}
}

// waitData waits until the ConfigMap of a release has a value.
func (l *leaves) waitData(name, key, want string) {
	l.t.Helper()
	l.wait(name, func() error {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("v1")
		object.SetKind("ConfigMap")
		if err := l.Get(l.ctx, client.ObjectKey{Namespace: "default", Name: name}, object); err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(object.Object, "data", key); got != want {
			return fmt.Errorf("%s is %q, want %q", key, got, want)
		}
		return nil
	})
}

// remove deletes a custom resource and waits until it is gone.
func (l *leaves) remove(name string) {
	l.t.Helper()
	if err := l.Delete(l.ctx, leaf(name)); err != nil {
		l.t.Fatal(err)
	}
	l.waitGone(name)
}

func (l *leaves) waitGone(name string) {
	l.t.Helper()
	l.wait(name+" to be gone", func() error {
		object := leaf(name)
		if err := l.Get(l.ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			return errors.Join(err, fmt.Errorf("it exists: %v", object.Object))
		}
		return nil
	})
}

// TestKinds_AddedReplacedAndRemoved changes the kinds of a running operator.
func TestKinds_AddedReplacedAndRemoved(t *testing.T) {
	env := testenv.Start(t)
	l := newLeaves(t, env.Config)
	options := Defaults()
	options.Kinds = []catalog.Kind{leafOf(t, "1.0.0", "")}
	set := kindset.New(nil)
	options.set = set
	ctx, registry, _ := runningWith(t, env.Config, options)

	l.create("one", "other")
	set.Put(kindset.Folder, "leaf", leafOf(t, "1.0.0", ""))
	waitState(ctx, t, registry, leafKind, readiness.Serving)
	l.waitData("one", "version", "1.0.0")
	l.waitData("other", "version", "1.0.0")
	set.Put(kindset.Folder, "leaf", leafOf(t, "1.1.0", ""))
	l.waitData("one", "version", "1.1.0")
	l.waitData("other", "version", "1.1.0")
	// Several changes at once, while the kind still stops.
	for i := range 5 {
		set.Put(kindset.Folder, "leaf", leafOf(t, fmt.Sprintf("1.2.%d", i), ""))
		if i%2 == 0 {
			set.Remove(kindset.Folder, "leaf")
		}
	}
	set.Put(kindset.Folder, "leaf", leafOf(t, "1.3.0", ""))
	l.waitData("one", "version", "1.3.0")

	set.Remove(kindset.Folder, "leaf")
	waitState(ctx, t, registry, leafKind, readiness.Removed)
	before := leaf("one")
	if err := l.Get(l.ctx, client.ObjectKeyFromObject(before), before); err != nil {
		t.Fatal(err)
	}
	edited := before.DeepCopy()
	if err := unstructured.SetNestedField(edited.Object, "red", "spec", "color"); err != nil {
		t.Fatal(err)
	}
	if err := l.Update(l.ctx, edited); err != nil {
		t.Fatal(err)
	}
	l.remove("other")
	after := leaf("one")
	if err := l.Get(l.ctx, client.ObjectKeyFromObject(after), after); err != nil {
		t.Fatal(err)
	}
	if after.GetResourceVersion() != edited.GetResourceVersion() {
		t.Errorf("a custom resource of a removed kind was changed: %v", after.Object)
	}
	l.waitData("one", "color", "green")

	set.Put(kindset.Folder, "leaf", leafOf(t, "1.3.0", ""))
	l.waitData("one", "color", "red")
	set.Remove(kindset.Folder, "leaf")
	waitState(ctx, t, registry, leafKind, readiness.Removed)
	l.remove("one")
	waitState(ctx, t, registry, leafKind, "")
}

// TestKinds_RemovedWithVersionAndCRD: the version of a removed kind goes, and then its CRD.
func TestKinds_RemovedWithVersionAndCRD(t *testing.T) {
	env := testenv.Start(t)
	l := newLeaves(t, env.Config)
	options := Defaults()
	options.Kinds = []catalog.Kind{leafOf(t, "1.0.0", "")}
	set := kindset.New(nil)
	options.set = set
	ctx, registry, _ := runningWith(t, env.Config, options)
	set.Put(kindset.Folder, "leaf", leafOf(t, "1.0.0", ""))
	l.create("one", "other")
	l.waitData("one", "version", "1.0.0")
	l.waitData("other", "version", "1.0.0")
	set.Remove(kindset.Folder, "leaf")
	waitState(ctx, t, registry, leafKind, readiness.Removed)

	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := l.Get(l.ctx, client.ObjectKey{Name: crd.Name(options.Kinds[0])}, definition); err != nil {
		t.Fatal(err)
	}
	newer := definition.Spec.Versions[0].DeepCopy()
	newer.Name, definition.Spec.Versions[0].Storage, definition.Spec.Versions[0].Served = "v2", false, false
	definition.Spec.Versions = append(definition.Spec.Versions, *newer)
	if err := l.Update(l.ctx, definition); err != nil {
		t.Fatal(err)
	}
	inVersion2 := func(name string) *unstructured.Unstructured {
		object := leaf(name)
		object.SetAPIVersion("live.example.com/v2")
		return object
	}
	l.wait("the deletion", func() error { return l.Delete(l.ctx, inVersion2("one")) })
	l.wait("one to be gone", func() error {
		object := inVersion2("one")
		if err := l.Get(l.ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			return errors.Join(err, fmt.Errorf("it exists: %v", object.GetFinalizers()))
		}
		return nil
	})

	waitState(ctx, t, registry, leafKind, readiness.Removed)
	object := inVersion2("other")
	if err := l.Get(l.ctx, client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	// The deletion of the CRD changes the custom resource, too.
	noFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := errors.Join(l.Delete(l.ctx, definition), l.Patch(l.ctx, object, noFinalizers)); err != nil {
		t.Fatal(err)
	}
	waitState(ctx, t, registry, leafKind, "")
}

// TestKinds_RemovedWhileOperatorWasStopped: deletions are carried out from the release
// records. Hooks do not run, because the account that must run them is unknown.
func TestKinds_RemovedWhileOperatorWasStopped(t *testing.T) {
	const hook = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-hook, annotations: {helm.sh/hook: pre-delete}}\n"
	env := testenv.Start(t)
	l := newLeaves(t, env.Config)
	options := Defaults()
	options.Kinds = []catalog.Kind{leafOf(t, "1.0.0", "")}
	_, _, stop := runningWith(t, env.Config, options)
	l.create("plain")
	l.waitData("plain", "version", "1.0.0")
	stop()
	options.Kinds = []catalog.Kind{leafOf(t, "1.0.0", hook)}
	options.Kinds[0].Rollout.Paused = true
	_, _, stop = runningWith(t, env.Config, options)
	l.create("hooked")
	l.waitData("hooked", "version", "1.0.0")
	l.wait("hooked to be deployed", func() error {
		object := leaf("hooked")
		err := l.Get(l.ctx, client.ObjectKeyFromObject(object), object)
		if status, _, _ := unstructured.NestedString(object.Object, "status", "release", "status"); status != "deployed" {
			return errors.Join(err, fmt.Errorf("status %q", status))
		}
		return err
	})
	stop()

	// The operator was stopped during the uninstall of all releases of the kind.
	records := &corev1.SecretList{}
	if err := l.List(l.ctx, records, client.MatchingLabels{release.LabelOwner: release.OwnerHelm, release.LabelStatus: api.StatusDeployed}); err != nil {
		t.Fatal(err)
	}
	for i := range records.Items {
		records.Items[i].Labels[release.LabelStatus] = api.StatusUninstalling
		if err := l.Update(l.ctx, &records.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	options.Kinds, options.set = options.Kinds[:1], kindset.New(nil)
	ctx, registry, _ := runningWith(t, env.Config, options)
	waitState(ctx, t, registry, leafKind, readiness.Removed)
	l.remove("plain")
	l.wait("the ConfigMap to be gone", func() error {
		object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
		if err := l.Get(l.ctx, client.ObjectKey{Namespace: "default", Name: "plain"}, object); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it exists: %w", err)
		}
		return nil
	})
	if err := l.Delete(l.ctx, leaf("hooked")); err != nil {
		t.Fatal(err)
	}
	l.wait("the refused hook", func() error {
		object := leaf("hooked")
		err := l.Get(l.ctx, client.ObjectKeyFromObject(object), object)
		if text := fmt.Sprint(object.Object["status"]); !strings.Contains(text, "the release has delete hooks, but the operator no longer knows which account runs them") {
			return errors.Join(err, errors.New(text))
		}
		return err
	})
	l.wait("the annotation", func() error {
		object := leaf("hooked")
		if err := l.Get(l.ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		object.SetAnnotations(map[string]string{api.AnnotationUninstallDisableHooks: "true"})
		return l.Update(l.ctx, object)
	})
	l.waitGone("hooked")
	waitState(ctx, t, registry, leafKind, "")
}
