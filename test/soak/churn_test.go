package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/testenv"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

const (
	// batch is the number of custom resources that exist at the same time.
	batch = 140
	// churned is the number of custom resources after the warm-up of warmUp batches.
	churned, warmUp = 3000, 3
	// heapGrowth is the maximum difference of the heap after a garbage collection.
	heapGrowth = 3 << 20
)

// TestChurn_LeaksNoMemory: the operator's heap is the same after 3,000 custom
// resources that were created, changed and deleted, over all features.
func TestChurn_LeaksNoMemory(t *testing.T) {
	if !testenv.Long() {
		t.Skip("part of make check-long (soak)")
	}
	c := newChurn(t)
	for range warmUp {
		c.batch()
	}
	before := c.heap("before")
	start, next := c.created, c.created+1000
	for c.created < start+churned {
		c.batch()
		if c.created >= next {
			t.Logf("after %d custom resources: heap %+d KiB", c.created-start, (c.heap(strconv.Itoa(c.created))-before)>>10)
			next += 1000
		}
	}
	after := c.heap("after")
	t.Logf("the heap has %d KiB before, and %d KiB after %d custom resources", before>>10, after>>10, c.created-start)
	if diff := after - before; diff > heapGrowth || diff < -heapGrowth {
		t.Errorf("the heap changed from %d KiB to %d KiB, want a difference of at most %d KiB", before>>10, after>>10, heapGrowth>>10)
	}
}

// churn is an operator whose custom resources come and go.
type churn struct {
	*harness.Env
	t *testing.T
	// churned has all features but the templated ServiceAccount of accounted.
	churned, accounted harness.Kind
	pprof              string
	// batches and created are the numbers of batches and of custom resources so far.
	batches, created int
}

func newChurn(t *testing.T) *churn {
	t.Helper()
	env := harness.New(t)
	c := &churn{Env: env, t: t, churned: env.NewKind("Churned"), accounted: env.NewKind("Accounted"), pprof: env.FreeAddress()}
	env.InstallCRD(c.churned)
	env.InstallCRD(c.accounted)
	chart := harness.Root("test", "soak", "testdata", "charts", "churn")
	env.NewOperator(harness.Options{
		Watches: env.Watches(
			harness.MakeEntry(c.churned, chart).Timeout(actionTimeout).With("valuesFrom", []any{
				map[string]any{"kind": "ConfigMap", "name": "{{ .metadata.name }}-values", "optional": true},
			}).With("outputs", []any{
				map[string]any{"name": "note", "value": "values.note"},
				map[string]any{"name": "secret", "value": "values.note", "sensitive": true},
			}).With("observe", []any{map[string]any{
				"name": "notes", "apiVersion": "v1", "kind": "ConfigMap",
				"selector": map[string]any{"matchLabels": map[string]any{"about": "{{ .release.name }}"}},
			}}).With("status", map[string]any{
				"texts": "observed.notes.filter(n, has(n.data.text)).map(n, string(n.data.text)).join(', ')",
			}).With("allow", map[string]any{"dependsOn": map[string]any{"annotation": []any{
				map[string]any{"apiVersion": c.churned.GroupVersion().String(), "kind": c.churned.Kind},
			}}}),
			harness.MakeEntry(c.accounted, chart).With("serviceAccountName", "{{ .metadata.name }}"),
		),
		AllNamespaces: true, Account: env.NewAccount(), Args: []string{"--pprof-bind-address", c.pprof},
	}).Start()
	return c
}

var heapAlloc = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// heap returns the size of the operator's heap after a garbage collection. With
// $CHARTWRIGHT_CHURN_PROFILES it also writes a profile there.
func (c *churn) heap(name string) int64 {
	c.t.Helper()
	// The first collection keeps the content of each sync.Pool and runs finalizers.
	for range 3 {
		c.profile("debug=1")
	}
	text := c.profile("debug=1")
	found := heapAlloc.FindSubmatch(text)
	if found == nil {
		c.t.Fatal("the profile has no HeapAlloc")
	}
	size, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		c.t.Fatal(err)
	}
	if folder := os.Getenv("CHARTWRIGHT_CHURN_PROFILES"); folder != "" {
		if err := os.WriteFile(filepath.Join(folder, name+".pprof"), c.profile("debug=0"), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	return size
}

// profile returns a heap profile after a garbage collection.
func (c *churn) profile(query string) []byte {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, "http://"+c.pprof+"/debug/pprof/heap?gc=1&"+query, http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return text
}

// churnling is a custom resource.
type churnling struct {
	env *harness.Env
	cr  *unstructured.Unstructured
	feature
	// failed: it must not be Ready.
	failed bool
	// requested: the rollback was requested.
	requested bool
}

// feature is how a custom resource is created and changed.
type feature struct {
	name string
	// prepare changes the custom resource and creates what it needs.
	prepare func(c *churn, l *churnling)
	// change runs when the custom resource is Ready.
	change func(c *churn, l *churnling)
	// changed returns an error until the change has had its effect; nil waits for Ready only.
	changed func(ctx context.Context, l *churnling, live *unstructured.Unstructured, status api.Status) error
}

// features lists the features. The custom resources alternate between them.
func features() []feature {
	return []feature{
		{name: "edit", change: setNote, changed: atRevision(2)},
		{name: "values", prepare: (*churn).createValues, change: (*churn).editValues, changed: atRevision(2)},
		{name: "depends", prepare: (*churn).depend, change: setNote, changed: atRevision(2)},
		{name: "observe", change: (*churn).createNote, changed: noted},
		{name: "hooks", prepare: with("hook"), change: setNote, changed: atRevision(2)},
		{name: "job", prepare: with("job"), change: setNote, changed: atRevision(2)},
		{name: "drift", change: (*churn).drift, changed: corrected},
		{name: "failure", change: (*churn).refuse},
		{name: "failing", prepare: with("refused")},
		{name: "rollback", change: setNote, changed: rolledBack},
		{name: "orphan", prepare: annotate(api.AnnotationDeletionPolicy, "orphan"), change: setNote, changed: atRevision(2)},
		{name: "keep", prepare: with("keep"), change: setNote, changed: atRevision(2)},
		{name: "account", prepare: (*churn).createAccount, change: setNote, changed: atRevision(2)},
		{name: "namespace"},
	}
}

var setNote = set("note", "two")

func set(field string, value any) func(c *churn, l *churnling) {
	return func(_ *churn, l *churnling) { l.patch(l.cr, map[string]any{"spec": map[string]any{field: value}}) }
}

func with(field string) func(c *churn, l *churnling) {
	return func(_ *churn, l *churnling) {
		l.cr.Object["spec"] = map[string]any{field: true}
		l.failed = field == "refused"
	}
}

func annotate(key, value string) func(c *churn, l *churnling) {
	return func(_ *churn, l *churnling) { l.cr.SetAnnotations(map[string]string{key: value}) }
}

func atRevision(revision int64) func(context.Context, *churnling, *unstructured.Unstructured, api.Status) error {
	return func(_ context.Context, _ *churnling, _ *unstructured.Unstructured, status api.Status) error {
		if status.Release == nil || status.Release.Revision != revision {
			return fmt.Errorf("the release is %+v, want revision %d", status.Release, revision)
		}
		return nil
	}
}

// rolledBack requests a rollback after the upgrade, and waits for it.
func rolledBack(ctx context.Context, l *churnling, live *unstructured.Unstructured, status api.Status) error {
	if err := atRevision(2)(ctx, l, live, status); err == nil && !l.requested {
		l.requested = true
		l.patch(l.cr, map[string]any{"metadata": map[string]any{"annotations": map[string]any{api.AnnotationRollbackTo: "1"}}})
	}
	return atRevision(3)(ctx, l, live, status)
}

func noted(_ context.Context, l *churnling, live *unstructured.Unstructured, _ api.Status) error {
	if got, _, _ := unstructured.NestedString(live.Object, "status", "texts"); got != l.cr.GetName() {
		return fmt.Errorf("the status field is %q", got)
	}
	return nil
}

func corrected(ctx context.Context, l *churnling, _ *unstructured.Unstructured, _ api.Status) error {
	live, err := l.env.At(l.object("ConfigMap", "")).Get(ctx, l.cr.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if got, _, _ := unstructured.NestedString(live.Object, "data", "note"); got != "one" {
		return fmt.Errorf("the note is %q", got)
	}
	_, err = l.env.At(l.object("Secret", "")).Get(ctx, l.cr.GetName(), metav1.GetOptions{})
	return err
}

// object returns an object whose name is that of the custom resource with a suffix.
func (l *churnling) object(kind, suffix string) *unstructured.Unstructured {
	return harness.Object("v1", kind, l.cr.GetName()+suffix)
}

func (l *churnling) patch(object *unstructured.Unstructured, patch map[string]any) {
	l.env.T().Helper()
	text, err := json.Marshal(patch)
	if err == nil {
		_, err = l.env.At(object).Patch(l.env.T().Context(), object.GetName(), types.MergePatchType, text, metav1.PatchOptions{})
	}
	if err != nil {
		l.env.T().Errorf("%s: %v", l.cr.GetName(), err)
	}
}

func (l *churnling) create(object *unstructured.Unstructured) {
	l.env.T().Helper()
	if _, err := l.env.At(object).Create(l.env.T().Context(), object, metav1.CreateOptions{}); err != nil {
		l.env.T().Errorf("%s: %v", l.cr.GetName(), err)
	}
}

func (*churn) createValues(l *churnling) {
	values := l.object("ConfigMap", "-values")
	values.Object["data"] = map[string]any{"values.yaml": "note: zero"}
	l.create(values)
}

func (*churn) editValues(l *churnling) {
	l.patch(l.object("ConfigMap", "-values"), map[string]any{"data": map[string]any{"values.yaml": "note: two"}})
}

// depend makes a custom resource depend on the first one of its batch.
func (c *churn) depend(l *churnling) {
	first := fmt.Sprintf("c%d-0", c.batches)
	l.cr.SetAnnotations(map[string]string{api.AnnotationDependsOn: c.churned.GroupKind().String() + "/" + first})
}

func (*churn) createNote(l *churnling) {
	note := l.object("ConfigMap", "-note")
	note.SetLabels(map[string]string{"about": l.cr.GetName()})
	note.Object["data"] = map[string]any{"text": l.cr.GetName()}
	l.create(note)
}

func (*churn) drift(l *churnling) {
	l.patch(l.object("ConfigMap", ""), map[string]any{"data": map[string]any{"note": "drifted"}})
	if err := l.env.At(l.object("Secret", "")).Delete(l.env.T().Context(), l.cr.GetName(), metav1.DeleteOptions{}); err != nil {
		l.env.T().Errorf("%s: %v", l.cr.GetName(), err)
	}
}

func (*churn) refuse(l *churnling) {
	l.failed = true
	l.patch(l.cr, map[string]any{"spec": map[string]any{"refused": true}})
}

// createAccount creates the ServiceAccount that the operator impersonates.
func (c *churn) createAccount(l *churnling) {
	l.cr = harness.MakeCR(c.accounted, l.cr.GetName()).Obj()
	l.create(l.object("ServiceAccount", ""))
	binding := harness.Object("rbac.authorization.k8s.io/v1", "RoleBinding", l.cr.GetName())
	binding.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
	binding.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": l.cr.GetName(), "namespace": l.env.Namespace}}
	l.create(binding)
}

// batch creates, changes and deletes custom resources of all features.
func (c *churn) batch() {
	c.t.Helper()
	c.batches++
	namespace := c.NewNamespace(strconv.Itoa(c.batches))
	places := []*harness.Env{c.Env, c.In(namespace)}
	all := features()
	var made []*churnling
	for i := range batch {
		l := &churnling{env: places[0], feature: all[i%len(all)], cr: harness.MakeCR(c.churned, fmt.Sprintf("c%d-%d", c.batches, i)).Obj()}
		if l.name == "namespace" {
			l.env = places[1]
		}
		made = append(made, l)
	}
	c.each(made, func(l *churnling) {
		if l.prepare != nil {
			l.prepare(c, l)
		}
		l.create(l.cr)
	})
	c.wait("to be installed", places, made, nil)
	c.each(made, func(l *churnling) {
		if l.change != nil {
			l.change(c, l)
		}
	})
	c.wait("to be changed", places, made, func(ctx context.Context, l *churnling, live *unstructured.Unstructured, status api.Status) error {
		if l.changed == nil {
			return nil
		}
		return l.changed(ctx, l, live, status)
	})
	c.created += len(made)
	c.Delete(harness.Object("v1", "Namespace", namespace))
	c.each(made, func(l *churnling) {
		if l.name == "namespace" {
			return
		}
		if err := l.env.At(l.cr).Delete(c.t.Context(), l.cr.GetName(), metav1.DeleteOptions{}); err != nil {
			c.t.Errorf("%s: %v", l.cr.GetName(), err)
		}
	})
	c.Wait("all custom resources to be deleted", func(ctx context.Context) error {
		left, err := c.list(ctx, places)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d are left", len(left))
		}
		return err
	})
	c.WaitGone(harness.Object("v1", "Namespace", namespace))
	c.clear()
}

// each calls do for all custom resources, with at most eight calls in parallel.
func (c *churn) each(made []*churnling, do func(*churnling)) {
	c.t.Helper()
	var work sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, l := range made {
		slots <- struct{}{}
		work.Go(func() {
			do(l)
			<-slots
		})
	}
	work.Wait()
	if c.t.Failed() {
		c.t.FailNow()
	}
}

// list returns the custom resources by name.
func (c *churn) list(ctx context.Context, places []*harness.Env) (map[string]*unstructured.Unstructured, error) {
	found := map[string]*unstructured.Unstructured{}
	for _, env := range places {
		for _, kind := range []harness.Kind{c.churned, c.accounted} {
			list, err := env.At(harness.MakeCR(kind, "").Obj()).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				found[list.Items[i].GetName()] = &list.Items[i]
			}
		}
	}
	return found, nil
}

// wait waits until the status of each custom resource refers to its spec, and a condition is met.
func (c *churn) wait(what string, places []*harness.Env, made []*churnling, met func(context.Context, *churnling, *unstructured.Unstructured, api.Status) error) {
	c.t.Helper()
	waiting := made
	c.Wait("all custom resources "+what, func(ctx context.Context) error {
		found, err := c.list(ctx, places)
		if err != nil {
			return err
		}
		var left []*churnling
		for _, l := range waiting {
			if one := l.settled(found[l.cr.GetName()], func(live *unstructured.Unstructured, status api.Status) error {
				if met == nil {
					return nil
				}
				return met(ctx, l, live, status)
			}); one != nil {
				left = append(left, l)
				err = fmt.Errorf("%s (%s): %w", l.cr.GetName(), l.name, one)
			}
		}
		waiting = left
		return err
	})
}

// settled returns an error unless the condition Ready is as expected, and refers to the spec.
func (l *churnling) settled(live *unstructured.Unstructured, met func(*unstructured.Unstructured, api.Status) error) error {
	if live == nil {
		return errors.New("not found")
	}
	status, err := harness.StatusOf(live)
	if err != nil {
		return err
	}
	want := metav1.ConditionTrue
	if l.failed {
		want = metav1.ConditionFalse
	}
	ready := harness.Condition(status, api.ConditionReady)
	if status.ObservedGeneration != live.GetGeneration() || ready == nil || ready.Status != want {
		return fmt.Errorf("the condition Ready is %+v", ready)
	}
	return met(live, status)
}

// clear deletes what remains of a batch: orphaned and kept objects, and the inputs.
func (c *churn) clear() {
	c.t.Helper()
	ctx, all := c.t.Context(), metav1.ListOptions{}
	core, roles := c.Typed.CoreV1(), c.Typed.RbacV1()
	err := errors.Join(
		core.Secrets(c.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		core.ConfigMaps(c.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"}),
		core.ServiceAccounts(c.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name!=default"}),
		roles.RoleBindings(c.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
	)
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
}
