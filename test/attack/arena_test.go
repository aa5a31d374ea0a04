package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// arena is an operator of four kinds, two attackers and their victim.
type arena struct {
	t *testing.T
	// own is an admin in the namespace of the operator's account, which the names of
	// the account and of the tenants' namespaces contain.
	own *harness.Env
	// admin is an admin in the attackers' namespace.
	admin *harness.Env
	// editor has the role edit and can write custom resources; author can only
	// write custom resources. Their namespace sorts before the victim's, so
	// that it is served first.
	editor, author *harness.Env
	// victim is an editor of another namespace.
	victim *harness.Env

	// plain is a kind whose entry allows nothing. clustered has cluster-scoped
	// objects, sourced has valuesFrom and observe, accounted has a ServiceAccount,
	// and reading has a Secret in valuesFrom, and many parts.
	plain, clustered, sourced, accounted, reading harness.Kind

	account  harness.Account
	operator *harness.Operator
	// memory is the operator's memory limit in bytes.
	memory int64
	// probes is the number of custom resources that the victim has created.
	probes *atomic.Int64
}

const (
	editorUser = "attacker:editor"
	authorUser = "attacker:author"
	victimUser = "victim:editor"
)

// newArena starts the operator with the memory limit of config/manager, and creates
// the tenants.
func newArena(t *testing.T) *arena {
	t.Helper()
	return newArenaWith(t, 1)
}

// newArenaWith is newArena with a fraction of the memory limit, for attacks whose size
// is the same fraction.
func newArenaWith(t *testing.T, fraction int64) *arena {
	t.Helper()
	env := harness.New(t)
	a := &arena{
		t: t, own: env,
		plain: env.NewKind("Plain"), clustered: env.NewKind("Clustered"),
		sourced: env.NewKind("Sourced"), accounted: env.NewKind("Accounted"), reading: env.NewKind("Reading"),
		account: env.NewAccount(), memory: env.ManagerMemory() / fraction, probes: new(atomic.Int64),
	}
	for _, kind := range []harness.Kind{a.plain, a.clustered, a.sourced, a.accounted, a.reading} {
		env.InstallCRD(kind)
	}
	kinds := env.EditKinds()
	a.admin = env.In(env.NewNamespace("a-attacker"))
	a.admin.Bind(editorUser, "edit", kinds)
	a.admin.Bind(authorUser, kinds)
	a.editor, a.author = a.admin.As(editorUser), a.admin.As(authorUser)
	others := env.In(env.NewNamespace("b-victim"))
	others.Bind(victimUser, "edit", kinds)
	a.victim = others.As(victimUser)
	a.waitAllowed(kinds)
	a.operator = env.NewOperator(harness.Options{
		Watches:       env.Watches(a.entries("open")...),
		Account:       a.account,
		AllNamespaces: true,
		Memory:        a.memory,
	}).Start()
	return a
}

// entries returns entries for the kinds with charts of testdata.
func (a *arena) entries(open string) []harness.Entry {
	// The values only add fields to a ConfigMap that the chart renders anyway.
	known := []any{map[string]any{"template": "templates/configmap.yaml"}}
	return []harness.Entry{
		harness.MakeEntry(a.plain, chart(open)).With("rbac", known),
		harness.MakeEntry(a.clustered, chart("clustered")).With("allow", map[string]any{
			"clusterScoped": []string{"ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io"},
		}),
		observing(harness.MakeEntry(a.sourced, chart(open))).With("rbac", known).With("valuesFrom", []any{
			map[string]any{"kind": "ConfigMap", "name": "{{ .metadata.name }}-values", "optional": true},
		}).With("outputs", []any{
			map[string]any{"name": "note", "value": "objects.ConfigMap[release.name].data.note"},
			map[string]any{"name": "names", "value": "objects.ConfigMap.map(name, objects.ConfigMap[name].metadata.name)"},
		}),
		harness.MakeEntry(a.accounted, chart(open)).With("rbac", known).With("serviceAccountName", "deployer"),
		harness.MakeEntry(a.reading, chart("reading")).With("valuesFrom", []any{
			map[string]any{"kind": "Secret", "name": "{{ .metadata.name }}-db", "key": "password", "targetPath": "password", "optional": true},
		}).With("maxHistory", 2),
	}
}

func chart(name string) string { return harness.Root("test", "attack", "testdata", "charts", name) }

// waitAllowed waits until the bindings are effective, and checks that the
// attackers have no other permissions.
func (a *arena) waitAllowed(kinds string) {
	a.t.Helper()
	for _, user := range []struct {
		name string
		env  *harness.Env
	}{{editorUser, a.editor}, {authorUser, a.author}, {victimUser, a.victim}} {
		a.admin.Wait(user.name+" to have the ClusterRole "+kinds, func(ctx context.Context) error {
			allowed, err := a.admin.Allowed(ctx, user.name, user.env.Namespace, "create", a.plain.Group, "plains")
			if err == nil && !allowed {
				err = errors.New("not allowed")
			}
			return err
		})
	}
	a.admin.Wait("the role edit to be aggregated", func(ctx context.Context) error {
		allowed, err := a.admin.Allowed(ctx, editorUser, a.editor.Namespace, "update", "", "secrets")
		if err == nil && !allowed {
			err = errors.New("not allowed")
		}
		return err
	})
	for _, forbidden := range []struct{ user, namespace, verb, group, resource string }{
		{editorUser, "", "list", "", "secrets"},
		{editorUser, a.victim.Namespace, "get", "", "configmaps"},
		{editorUser, a.editor.Namespace, "update", "", "resourcequotas"},
		{editorUser, "", "create", "rbac.authorization.k8s.io", "clusterroles"},
		{authorUser, a.author.Namespace, "get", "", "secrets"},
		{authorUser, a.author.Namespace, "create", "", "configmaps"},
	} {
		allowed, err := a.admin.Allowed(a.t.Context(), forbidden.user, forbidden.namespace, forbidden.verb, forbidden.group, forbidden.resource)
		if err != nil || allowed {
			a.t.Fatalf("before any attack, %+v is allowed: %t, %v", forbidden, allowed, err)
		}
	}
}

// attack runs an attack as a subtest with a running operator, and cleans up
// afterwards.
func (a *arena) attack(name string, run func(a *arena)) {
	a.t.Run(name, func(t *testing.T) {
		b := *a
		b.t, b.admin, b.editor, b.author, b.victim = t, a.admin.For(t), a.editor.For(t), a.author.For(t), a.victim.For(t)
		// A successful attack must not affect the next ones.
		if !b.operator.Running() {
			b.operator.Start()
		}
		t.Cleanup(b.clear)
		run(&b)
	})
}

// clear deletes what the attackers have created. The operator must survive that, too.
func (a *arena) clear() {
	if a.operator.Running() {
		defer a.intact()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.t.Context()), 10*time.Minute)
	defer cancel()
	var resources []schema.GroupVersionResource
	for _, kind := range []harness.Kind{a.plain, a.clustered, a.sourced, a.accounted, a.reading} {
		name, _, _ := strings.Cut(kind.Resource(), ".")
		resources = append(resources, kind.GroupVersion().WithResource(name))
	}
	for _, resource := range resources {
		a.deleteAll(ctx, resource)
	}
	// Some actions are still running, and uninstalls wait for them.
	releaseTime := time.Now().Add(time.Second)
	for _, resource := range resources {
		err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
			left, err := a.names(ctx, resource)
			if err != nil || len(left) == 0 {
				return true, err
			}
			if time.Now().After(releaseTime) || !a.operator.Running() {
				a.release(ctx, resource, left...)
			}
			return false, nil
		})
		if err != nil {
			a.t.Errorf("clean up: %v", err)
		}
	}
	for _, resource := range []string{"secrets", "configmaps"} {
		a.deleteAll(ctx, corev1.SchemeGroupVersion.WithResource(resource))
	}
}

// deleteAll deletes all objects of a resource in the attackers' namespace, one by one: the
// response to a deletion of all would contain all.
func (a *arena) deleteAll(ctx context.Context, resource schema.GroupVersionResource) {
	var names []string
	if err := persist(func() (err error) { names, err = a.names(ctx, resource); return err }); err != nil {
		a.t.Errorf("clean up: %v", err)
	}
	all := a.admin.Dynamic.Resource(resource).Namespace(a.admin.Namespace)
	a.many(len(names), func(i int) error {
		err := all.Delete(ctx, names[i], metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// persist repeats a request that the API server has ended by its own limit of time, which it
// needs for hundreds of large objects. It may have carried out the request.
func persist(do func() error) error {
	err := do()
	for apierrors.IsTimeout(err) {
		if err = do(); apierrors.IsAlreadyExists(err) {
			return nil
		}
	}
	return err
}

// names returns the names of the attackers' objects of a resource. It reads only metadata,
// because the API server needs seconds to decode large ones.
func (a *arena) names(ctx context.Context, resource schema.GroupVersionResource) ([]string, error) {
	group := "/apis/" + resource.Group
	if resource.Group == "" {
		group = "/api"
	}
	text, err := a.admin.Typed.CoreV1().RESTClient().Get().
		AbsPath(group, resource.Version, "namespaces", a.admin.Namespace, resource.Resource).
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// release removes the finalizers of custom resources that no operator
// uninstalls.
func (a *arena) release(ctx context.Context, resource schema.GroupVersionResource, names ...string) {
	for _, name := range names {
		_, err := a.admin.Dynamic.Resource(resource).Namespace(a.admin.Namespace).Patch(ctx, name, "application/merge-patch+json",
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			a.t.Errorf("clean up: %v", err)
		}
	}
}

// intact checks that the operator is still the same process.
func (a *arena) intact() {
	a.t.Helper()
	if err := a.operator.Survived(); err != nil {
		a.t.Errorf("the attack, or its deletion, stopped the operator: %v", err)
	}
}

// many calls the function n times, with at most eight calls in parallel. It stops when the
// operator has exited.
func (a *arena) many(n int, do func(i int) error) {
	a.t.Helper()
	var work sync.WaitGroup
	turns := make(chan struct{}, 8)
	runs := a.operator.Running()
	for i := range n {
		turns <- struct{}{}
		if runs && !a.operator.Running() {
			break
		}
		work.Go(func() {
			if err := persist(func() error { return do(i) }); err != nil {
				a.t.Error(err)
			}
			<-turns
		})
	}
	work.Wait()
}

// create creates a custom resource from JSON that is sent unchanged.
func create(env *harness.Env, kind harness.Kind, name, spec string) error {
	resource, _, _ := strings.Cut(kind.Resource(), ".")
	text := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},"spec":%s}`, kind.GroupVersion().String(), kind.Kind, name, spec)
	err := env.Typed.CoreV1().RESTClient().Post().
		AbsPath("/apis", kind.Group, kind.Version, "namespaces", env.Namespace, resource).
		SetHeader("Content-Type", "application/json").Body([]byte(text)).Do(env.T().Context()).Error()
	if err != nil {
		return fmt.Errorf("create %s %s: %w", kind.Kind, name, err)
	}
	return nil
}

// ready returns the condition Ready of a custom resource, empty if the
// condition does not refer to the current spec.
func ready(cr *unstructured.Unstructured) metav1.Condition {
	status, err := harness.StatusOf(cr)
	if err != nil || status.ObservedGeneration != cr.GetGeneration() {
		return metav1.Condition{}
	}
	if found := harness.Condition(status, api.ConditionReady); found != nil {
		return *found
	}
	return metav1.Condition{}
}
