package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/ssa"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// gitTool applies a manifest as a GitOps tool does.
type gitTool struct {
	name  string
	apply func(*harness.Env, *unstructured.Unstructured)
}

var gitTools = []gitTool{
	{"kubectl", func(env *harness.Env, cr *unstructured.Unstructured) {
		env.KubectlWith(asJSON(env, cr), "apply", "-f", "-")
	}},
	{"kubectl server-side", func(env *harness.Env, cr *unstructured.Unstructured) {
		env.KubectlWith(asJSON(env, cr), "apply", "--server-side", "-f", "-")
	}},
	// With the option ServerSideApply=true.
	{"Argo CD", func(env *harness.Env, cr *unstructured.Unstructured) {
		env.KubectlWith(asJSON(env, cr), "apply", "--server-side", "--force-conflicts", "--field-manager=argocd-controller", "-f", "-")
	}},
	{"Flux", applyByFlux},
}

// applyByFlux applies with Flux's own code and the options of its
// kustomize-controller.
func applyByFlux(env *harness.Env, cr *unstructured.Unstructured) {
	env.T().Helper()
	must := func(err error) {
		env.T().Helper()
		if err != nil {
			env.T().Fatal(err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", env.AdminKubeconfig())
	must(err)
	cluster, err := client.New(config, client.Options{})
	must(err)
	options := ssa.DefaultApplyOptions()
	options.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{corev1.LastAppliedConfigAnnotation},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "kustomize-controller", OperationType: metav1.ManagedFieldsOperationUpdate},
		},
		Exclusions: map[string]string{"kustomize.toolkit.fluxcd.io/ssa": "Merge"},
	}
	wanted := cr.DeepCopy()
	wanted.SetNamespace(env.Namespace)
	flux := ssa.NewResourceManager(cluster, nil, ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})
	_, err = flux.Apply(env.T().Context(), wanted, options)
	must(err)
}

func asJSON(env *harness.Env, object *unstructured.Unstructured) string {
	env.T().Helper()
	data, err := json.Marshal(object)
	if err != nil {
		env.T().Fatal(err)
	}
	return string(data)
}

// byCLI runs a command of kubectl chartwright for a custom resource.
func byCLI(env *harness.Env, kind harness.Kind, verb, name string) {
	env.T().Helper()
	user := env.NewUser(kind.On("get", "patch"))
	if printed := user.Chartwright(verb, kind.Resource()+"/"+name); printed.Code != 0 {
		env.T().Fatalf("kubectl chartwright %s exits with code %d: %s%s", verb, printed.Code, printed.Stdout, printed.Stderr)
	}
}

// TestGitTools_KeepWritesOfTheCLI: the tools do not change fields that are not
// in Git: the CLI's annotation, the finalizer and the status.
func TestGitTools_KeepWritesOfTheCLI(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	for _, tool := range gitTools {
		t.Run(tool.name, func(t *testing.T) {
			t.Parallel()
			env := env.For(t)
			name := nameFor(strings.ToLower(tool.name))
			inGit := func(message string) *unstructured.Unstructured {
				return harness.MakeCR(kind, name).Set("message", message).Obj()
			}
			web := inGit("one")
			tool.apply(env, web)
			env.WaitRevision(web, 1)

			byCLI(env, kind, "reconcile", name)
			byCLI(env, kind, "pause", name)
			env.WaitCondition(web, "Paused", metav1.ConditionTrue, "Paused")
			before := env.Get(web).Object["status"]
			tool.apply(env, inGit("one"))
			if live := env.Get(web); fmt.Sprint(live.Object["status"]) != fmt.Sprint(before) {
				t.Errorf("the status changed from %v to %v", before, live.Object["status"])
			}
			tool.apply(env, inGit("two"))
			live := env.Get(web)
			if message, _, _ := unstructured.NestedString(live.Object, "spec", "message"); message != "two" {
				t.Errorf("the manifest was not applied: the message is %q", message)
			}
			if a := live.GetAnnotations(); a[api.AnnotationPause] != "true" || a[api.AnnotationReconcile] == "" {
				t.Errorf("annotations are %v", a)
			}
			if !slices.Contains(live.GetFinalizers(), api.Finalizer) {
				t.Errorf("finalizers are %v", live.GetFinalizers())
			}
			env.WaitCondition(web, "Ready", metav1.ConditionFalse, "Paused")
			byCLI(env, kind, "resume", name)
			env.WaitRevision(web, 2)
		})
	}
}

// Flux keeps the change only if it was written with another field manager or
// Git has the annotation that selects Merge.
func TestFlux_RevertsWritesOfKubectl(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	for _, test := range []struct {
		name  string
		merge bool
		flags []string
		kept  bool
	}{
		{name: "by-default"},
		{name: "as-the-cli", flags: []string{"--field-manager=" + api.FieldManagerCLI}, kept: true},
		{name: "as-flux-says", flags: []string{"--field-manager=flux-client-side-apply"}, kept: true},
		{name: "with-merge", merge: true, kept: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			env := env.For(t)
			web := harness.MakeCR(kind, test.name).Set("message", "one")
			if test.merge {
				web.Annotate("kustomize.toolkit.fluxcd.io/ssa", "Merge")
			}
			applyByFlux(env, web.Obj())
			env.WaitRevision(web.Obj(), 1)
			env.Kubectl(append([]string{"annotate", kind.Resource(), test.name, "chartwright.dev/pause=true"}, test.flags...)...)
			env.WaitCondition(web.Obj(), "Paused", metav1.ConditionTrue, "Paused")
			applyByFlux(env, web.Obj())
			live := env.Get(web.Obj())
			if _, kept := live.GetAnnotations()[api.AnnotationPause]; kept != test.kept {
				t.Errorf("annotations are %v, want the pause: %v", live.GetAnnotations(), test.kept)
			}
			if !slices.Contains(live.GetFinalizers(), api.Finalizer) {
				t.Errorf("finalizers are %v", live.GetFinalizers())
			}
		})
	}
}

// Argo CD with Replace=true removes annotations. The operator restores its
// finalizer.
func TestGitTools_ReplaceRemovesAnnotations(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	web := harness.MakeCR(kind, "web").Set("message", "one").Obj()
	env.Create(web)
	env.WaitRevision(web, 1)
	byCLI(env, kind, "pause", "web")
	env.WaitCondition(web, "Paused", metav1.ConditionTrue, "Paused")
	env.KubectlWith(asJSON(env, harness.MakeCR(kind, "web").Set("message", "two").Obj()), "replace", "-f", "-")
	env.WaitRevision(web, 2)
	live := env.Get(web)
	if _, there := live.GetAnnotations()[api.AnnotationPause]; there {
		t.Error("the pause annotation is still set, contrary to docs/guides/gitops.md")
	}
	if !slices.Contains(live.GetFinalizers(), api.Finalizer) {
		t.Errorf("finalizers are %v", live.GetFinalizers())
	}
}

// addFinalizers checks that finalizers in Git, with client-side apply, replace all
// others, and that the operator restores its own. With server-side apply they are
// added.
func addFinalizers(env *harness.Env, kind harness.Kind, operator *harness.Operator, tool gitTool) {
	t := env.T()
	t.Helper()
	web := harness.MakeCR(kind, nameFor(strings.ToLower(tool.name))).Set("message", "one").Obj()
	tool.apply(env, web)
	env.WaitReady(web)
	// Flux does not write if only finalizers differ.
	message := map[bool]string{true: "two", false: "one"}[tool.name == "Flux"]
	inGit := harness.MakeCR(kind, web.GetName()).Set("message", message).Obj()
	inGit.SetFinalizers([]string{"test.chartwright.dev/hold"})
	if err := operator.WhileFrozen(func() {
		tool.apply(env, inGit)
		taken := !slices.Contains(env.Get(web).GetFinalizers(), api.Finalizer)
		if wanted := tool.name == "kubectl"; taken != wanted {
			t.Errorf("finalizers are %v", env.Get(web).GetFinalizers())
		}
	}); err != nil {
		t.Fatal(err)
	}
	env.Wait("both finalizers", func(context.Context) error {
		if finalizers := env.Get(web).GetFinalizers(); len(finalizers) != 2 || !slices.Contains(finalizers, api.Finalizer) {
			return fmt.Errorf("finalizers are %v", finalizers)
		}
		return nil
	})
}

// By default, Argo CD deletes in the foreground: everything is deleted, the
// custom resource last.
func TestGitTools_ForegroundDeletion(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	web := harness.MakePodSet("web").Replicas(2).Obj()
	env.Create(web)
	env.WaitReady(web)
	owners := env.Get(harness.Deployment("web")).GetOwnerReferences()
	if len(owners) != 1 || owners[0].Kind != "PodSet" {
		t.Fatalf("owners of the object are %v", owners)
	}
	env.Kubectl("delete", "podset", "web", "--cascade=foreground", "--wait=false")
	env.WaitGone(web, harness.Deployment("web"))
	env.WaitEvent(web, "Uninstalled")
	env.ExpectRevisions("web", "")
}
