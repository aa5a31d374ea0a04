package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestMemory: custom resources, ConfigMaps and Secrets of one tenant that would
// take gigabytes to read do not stop the operator and do not delay other
// tenants.
func TestMemory(t *testing.T) {
	a := newArena(t)
	a.attack("AliasesInAValue", (*arena).aliasesInAValue)
	a.attack("AliasesInATemplate", (*arena).aliasesInATemplate)
	a.attack("AliasesInAConfigMap", (*arena).aliasesInAConfigMap)
	a.attack("AliasesInAForgedRecord", (*arena).aliasesInARecord)
	a.attack("LargeCustomResources", (*arena).largeCustomResources)
	a.attack("FunctionsThatAllocate", (*arena).functionsThatAllocate)
	a.attack("RecordsThatUnpackToMuch", (*arena).recordsThatUnpackToMuch)
	a.attack("RecordsWithLargeAnnotations", (*arena).largeAnnotations)
	a.attack("RecordsWithInventedKinds", (*arena).inventedKinds)
	a.attack("ForgedObjectsOfARelease", (*arena).forgedObjects)
}

// aliases returns YAML that repeats a string of the given size.
func aliases(size, times int) string {
	return fmt.Sprintf("a: &a %q\nb: [%s*a]\n", strings.Repeat("x", size), strings.Repeat("*a,", times-1))
}

func (a *arena) aliasesInAValue() {
	others := a.watchOthers()
	bomb := harness.MakeCR(a.plain, "bomb").Set("note", "x\n  "+strings.ReplaceAll(strings.TrimSpace(aliases(100_000, 40_000)), "\n", "\n  ")).Obj()
	a.author.Create(bomb)
	a.refused("RenderFailed", bomb)
	others.served(few)
	a.intact()
}

func (a *arena) aliasesInATemplate() {
	others := a.watchOthers()
	bomb := harness.MakeCR(a.plain, "bomb").Set("text",
		`{{ $s := repeat 2000000 "x" }}{{ $y := printf "a: &a %s\nb: [%s]" $s (repeat 60000 "*a,") }}{{ fromYaml $y | len }}`).Obj()
	a.author.Create(bomb)
	a.refused("RenderFailed", bomb)
	others.served(few)
	a.intact()
}

func (a *arena) aliasesInAConfigMap() {
	others := a.watchOthers()
	values := harness.ConfigMap("bomb-values")
	values.Object["data"] = map[string]any{"values.yaml": aliases(400_000, 150_000)}
	a.editor.Create(values)
	bomb := harness.MakeCR(a.sourced, "bomb").Obj()
	a.editor.Create(bomb)
	a.refused("", bomb)
	others.served(few)
	a.intact()
	a.editor.Delete(values)
}

func (a *arena) aliasesInARecord() {
	web := harness.MakeCR(a.plain, "web").Obj()
	a.editor.Create(web)
	a.editor.WaitReady(web)
	others := a.watchOthers()
	a.forge("web", 1, "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndata:\n  "+strings.ReplaceAll(aliases(500_000, 150_000), "\n", "\n  "))
	a.annotate(a.editor, web, api.AnnotationReconcile, "now")
	a.whileAlive("the request to be processed", func(ctx context.Context) error {
		live, err := a.editor.At(web).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, err := harness.StatusOf(live)
		if err == nil && (status.Answered == nil || status.Answered.ReconcileRequestedAt != "now") {
			err = fmt.Errorf("status %v", live.Object["status"])
		}
		return err
	})
	others.served(few)
	a.intact()
}

func (a *arena) largeCustomResources() {
	others := a.watchOthers()
	// In memory, a map with one field takes about 300 bytes: together 240 MB, and as much
	// again for each copy.
	spec := `{"extra":{"a":[` + strings.Repeat(`{"":0},`, 194_999) + `{"":0}]}}`
	var bombs []*unstructured.Unstructured
	for i := range 4 {
		bombs = append(bombs, harness.MakeCR(a.plain, fmt.Sprintf("bomb-%d", i)).Obj())
	}
	a.many(len(bombs), func(i int) error { return create(a.author, a.plain, bombs[i].GetName(), spec) })
	a.refused("InvalidValues", bombs...)
	others.served(few)
	a.intact()
	// The attack's resources remain, and the operator is restarted.
	if a.operator.Running() {
		a.operator.Stop()
	}
	a.operator.Start()
	others = a.watchOthers()
	others.served(few)
	a.intact()
}

func (a *arena) functionsThatAllocate() {
	others := a.watchOthers()
	var bombs []*unstructured.Unstructured
	for i := range 20 {
		bombs = append(bombs, harness.MakeCR(a.plain, fmt.Sprintf("bomb-%d", i)).
			Set("text", `{{ range until 4000 }}{{ $x := derivePassword 1 "long" "a" "b" "c" }}{{ end }}`).Obj())
	}
	a.author.Create(bombs...)
	others.before(several)
	a.intact()
}

// recordsThatUnpackToMuch makes the operator adopt 20 releases at once, each of
// which is compressed to a small Secret.
func (a *arena) recordsThatUnpackToMuch() {
	others := a.watchOthers()
	text := []byte(`{"name":"bomb","info":{"status":"deployed"},"chart":{"metadata":{"name":"open","version":"1.0.0","apiVersion":"v2"}},` +
		`"config":{"a":[` + strings.Repeat("{},", 599_999) + `{}]},"manifest":"","version":1,"namespace":"` + a.editor.Namespace + `"}`)
	data, err := pack(text)
	if err != nil {
		a.t.Fatal(err)
	}
	var bombs []*unstructured.Unstructured
	for i := range 20 {
		name := fmt.Sprintf("bomb-%d", i)
		if err := a.record(name, 1, nil, nil, data); err != nil {
			a.t.Fatal(err)
		}
		bombs = append(bombs, harness.MakeCR(a.plain, name).Obj())
	}
	a.editor.Create(bombs...)
	a.whileAlive("the custom resources to be processed", func(ctx context.Context) error { return a.conditioned(ctx, bombs...) })
	others.served(few)
	a.intact()
}

func (a *arena) largeAnnotations() {
	others := a.watchOthers()
	kinds := `{"kinds":["` + strings.Repeat(`","`, 86_500) + `"]}`
	a.many(350, func(i int) error {
		return a.record(fmt.Sprintf("bomb-%d", i), 1, nil, map[string]string{"chartwright.dev/inventory": kinds}, []byte("x"))
	})
	others.served(few)
	a.intact()
	// The records remain, and the operator is restarted.
	if a.operator.Running() {
		a.operator.Stop()
	}
	a.operator.Start()
	others = a.watchOthers()
	others.served(few)
	a.intact()
}

// inventedKinds checks that a start makes hardly any more requests because of records
// with kinds that do not exist.
func (a *arena) inventedKinds() {
	a.operator.Stop()
	usual := a.start()
	a.operator.Stop()
	operator := map[string]string{api.LabelOperator: a.operator.Name()}
	a.many(120, func(i int) error {
		kinds := 64
		if i < 20 {
			kinds = 8000
		}
		return a.record(fmt.Sprintf("bomb-%d", i), 1, operator, map[string]string{"chartwright.dev/inventory": inventory(i, kinds)}, []byte("x"))
	})
	requests := a.start()
	a.t.Logf("a start makes %d requests, and %d with the records", usual, requests)
	// The records have 166,400 kinds of 120 groups.
	if requests > usual+mostStartRequests {
		a.t.Errorf("the operator makes %d requests to start, and %d without the records", requests, usual)
	}
	a.intact()
}

// mostStartRequests is the maximum number of requests that invented kinds may add to a start.
const mostStartRequests = 60

// inventory lists kinds that do not exist.
func inventory(seed, n int) string {
	kinds := make([]string, n)
	for i := range kinds {
		kinds[i] = fmt.Sprintf("g%d.x/v1/K%d", seed, i)
	}
	data, err := json.Marshal(map[string]any{"kinds": kinds})
	if err != nil {
		panic(err)
	}
	return string(data)
}

// start starts the operator, waits until it has installed a custom resource of another
// tenant, and returns the number of its requests.
func (a *arena) start() int {
	a.t.Helper()
	began := a.own.For(a.t).Audit(a.operator.User())
	a.operator.Start()
	if !a.install(a.t.Context()) {
		a.t.Fatal("the operator does not install a custom resource of another tenant")
	}
	return len(began.Requests())
}

// record creates a release record as the attacker.
func (a *arena) record(release string, revision int, labels, annotations map[string]string, data []byte) error {
	all := map[string]string{
		"owner": "helm", "name": release, "status": "deployed", "version": strconv.Itoa(revision),
	}
	maps.Copy(all, labels)
	_, err := a.editor.Typed.CoreV1().Secrets(a.editor.Namespace).Create(a.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, revision), Labels: all, Annotations: annotations},
		Type:       "helm.sh/release.v1",
		Data:       map[string][]byte{"release": data},
	}, metav1.CreateOptions{})
	return err
}

// refused waits until custom resources are not Ready with a reason, or any
// reason if empty, or until the operator has exited.
func (a *arena) refused(reason string, crs ...*unstructured.Unstructured) {
	a.t.Helper()
	for _, cr := range crs {
		a.whileAlive(cr.GetName()+" to be refused", func(ctx context.Context) error {
			live, err := a.editor.At(cr).Get(ctx, cr.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			found := ready(live)
			if found.Status != metav1.ConditionFalse || (reason != "" && found.Reason != reason) {
				return fmt.Errorf("the condition Ready is %+v, want it False for reason %q", found, reason)
			}
			return nil
		})
	}
}

// conditioned returns an error unless all custom resources have a condition
// Ready.
func (a *arena) conditioned(ctx context.Context, crs ...*unstructured.Unstructured) error {
	for _, cr := range crs {
		live, err := a.editor.At(cr).Get(ctx, cr.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if found := ready(live); found.Status == "" || found.Status == metav1.ConditionUnknown {
			return fmt.Errorf("%s has the status %v", cr.GetName(), live.Object["status"])
		}
	}
	return nil
}

// whileAlive waits for a condition, or until the operator has exited. The deadline is
// that of the harness, which is much longer than any wait takes.
func (a *arena) whileAlive(what string, check func(context.Context) error) {
	a.t.Helper()
	a.admin.Wait(what, func(ctx context.Context) error {
		if !a.alive() {
			return nil
		}
		return check(ctx)
	})
}

// alive reports whether the operator is still the same process.
func (a *arena) alive() bool { return a.operator.Survived() == nil }

// forgedObjects checks that outputs neither read objects that only look like objects of the
// release, nor an object of the release that has become too large.
func (a *arena) forgedObjects() {
	web := harness.MakeCR(a.sourced, "web").Obj()
	a.editor.Create(web)
	a.editor.WaitReady(web)
	live := a.editor.Get(web)
	others := a.watchOthers()
	data := map[string]string{}
	for i := range 25_000 {
		data[fmt.Sprintf("k%05d", i)] = "x"
	}
	forge := func(name, manager string) error {
		text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": map[string]any{
			"name": name, "labels": map[string]string{api.LabelOwnerUID: string(live.GetUID()), api.LabelOperator: a.operator.Name()},
		}})
		if err != nil {
			return err
		}
		_, err = a.editor.Typed.CoreV1().ConfigMaps(a.editor.Namespace).Patch(a.t.Context(), name, types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: manager, Force: new(true)})
		return err
	}
	// One at a time, because the API server needs seconds for each.
	for i := range 12 {
		if err := persist(func() error { return forge(fmt.Sprintf("a-%02d", i), api.FieldManager) }); err != nil {
			a.t.Error(err)
		}
	}
	outputs := func(what string, check func(names, failures string) bool) {
		a.whileAlive(what, func(ctx context.Context) error {
			live, err := a.editor.At(web).Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			status, err := harness.StatusOf(live)
			if err != nil {
				return err
			}
			failures := ""
			if failed := harness.Condition(status, api.ConditionStatusFieldsFailed); failed != nil {
				failures = failed.Message
			}
			if names := fmt.Sprint(status.Outputs["names"]); !check(names, failures) {
				return fmt.Errorf("the names are %s with the failures %q", names, failures)
			}
			return nil
		})
	}
	a.annotate(a.editor, web, api.AnnotationReconcile, "forged")
	outputs("the outputs without forged objects", func(names, failures string) bool { return names == "[web]" && failures == "" })
	if err := forge("web", "attacker"); err != nil {
		a.t.Error(err)
	}
	outputs("the object to be refused", func(_, failures string) bool {
		return strings.Contains(failures, "read ConfigMap "+a.editor.Namespace+"/web: the object has at least ") && strings.Contains(failures, "exceeds the limit")
	})
	a.t.Logf("the operator has used at most %d MiB", a.operator.HighWater()>>20)
	others.served(few)
	a.intact()
}
