package reconcile

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// fakeOutputs holds the content of the Secrets that outputs read, and records requests.
type fakeOutputs struct {
	secrets map[string]map[string]string
	asked   []string
	written map[string][]byte
	kept    []string
	err     error
	// unread are the errors of reads of single objects, and limits what the reads might take.
	unread map[string]error
	limits []ReadLimit
	// slow makes a read of an object take until its deadline.
	slow map[string]bool
}

func (f *fakeOutputs) Read(ctx context.Context, object apply.Key, left *ReadLimit) (*unstructured.Unstructured, error) {
	f.asked = append(f.asked, "read "+object.Name)
	f.limits = append(f.limits, *left)
	if f.slow[object.Name] {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := f.unread[object.Name]; err != nil {
		return nil, err
	}
	data := map[string]any{}
	for key, text := range f.secrets[object.Name] {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	return &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "data": data}}, f.err
}

func (f *fakeOutputs) Publish(_ context.Context, _ apply.Owner, secret *corev1.Secret, keep []string) (*corev1.Secret, error) {
	f.asked = append(f.asked, "publish "+secret.Name)
	f.written, f.kept = maps.Clone(secret.Data), keep
	secret.ResourceVersion = strconv.Itoa(100 + len(f.asked))
	return secret, f.err
}

func (f *fakeOutputs) Withdraw(_ context.Context, owner apply.Owner, secret types.NamespacedName) error {
	f.asked = append(f.asked, fmt.Sprintf("withdraw %s of %s", secret, owner.UID))
	return f.err
}

// withOutputs returns a Reconciler of a kind with these outputs, and the snapshot of a
// release in sync whose Secret auth has the resourceVersion 1.
func withOutputs(t *testing.T, outputs string) (*Reconciler, *fakeOutputs, *snapshot) {
	t.Helper()
	kinds, err := catalog.FromFS(fstest.MapFS{
		"watches.yaml":  {Data: []byte("- group: g\n  version: v1\n  kind: K\n  chart: c\n  outputs:\n" + outputs)},
		"c/Chart.yaml":  {Data: []byte("apiVersion: v2\nname: c\nversion: 1.0.0")},
		"c/values.yaml": {Data: []byte("count: 3")},
	}, "watches.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fake := &fakeOutputs{secrets: map[string]map[string]string{"auth": {"password": "canary-1"}}}
	index := inventory.NewIndex(func(types.UID) {}, func(types.UID) {})
	r := &Reconciler{Shared: Shared{Outputs: fake, Inventory: inventory.Inventory{Index: index}}, Kind: kinds[0]}
	r.Wake = func(types.NamespacedName, time.Duration) {}
	r.Now = time.Now
	v := viewOf([]string{api.StatusDeployed})
	v.CR.SetUID("u")
	v.CR.SetNamespace("apps")
	v.values = map[string]any{}
	v.digests.Input = wanted
	index.SetReleaseNamespace("u", v.Release.Namespace)
	setVersion(r, "1")
	r.memory.with("u", func(*remembered) {})
	return r, fake, v
}

func setVersion(r *Reconciler, version string) {
	r.Inventory.Put(apply.State{Key: apply.Key{Kind: "Secret", Namespace: "apps", Name: "auth"}, UID: "auth", ResourceVersion: version, Owner: "u", Managed: true})
}

// publish computes the outputs once more, and returns what was requested and the outputs of
// the status.
func publish(t *testing.T, r *Reconciler, fake *fakeOutputs, v *snapshot, present api.Status) (asked string, outputs api.Outputs) {
	t.Helper()
	v.Outputs, fake.asked = status.Outputs{}, nil
	r.computeOutputs(t.Context(), v)
	outputs, _ = v.Outputs.Of(present)
	return strings.Join(fake.asked, ", "), outputs
}

const passwordAndCount = "  - {name: password, value: objects.Secret.auth.data.password}\n  - {name: count, value: values.count}\n"

func TestOutputs_RequestOnlyAfterChanges(t *testing.T) {
	r, fake, v := withOutputs(t, passwordAndCount)
	asked, outputs := publish(t, r, fake, v, api.Status{})
	if asked != "read auth, publish k-web-outputs" || string(fake.written["password"]) != "canary-1" {
		t.Errorf("requested %s with %s", asked, fake.written)
	}
	if diff := cmp.Diff(api.Outputs{"count": int64(3)}, outputs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if asked, _ = publish(t, r, fake, v, api.Status{}); asked != "" {
		t.Errorf("without a change, requested %s", asked)
	}
	// The Secret was edited, and then another one.
	r.Inventory.Put(apply.State{Key: apply.Key{Kind: "Secret", Namespace: "apps", Name: "k-web-outputs"}, ResourceVersion: "900", Owner: "u"})
	if asked, _ = publish(t, r, fake, v, api.Status{}); asked != "publish k-web-outputs" {
		t.Errorf("after an edit of the Secret, requested %s", asked)
	}
	fake.secrets["auth"]["password"] = "canary-2"
	setVersion(r, "901")
	if asked, _ = publish(t, r, fake, v, api.Status{}); asked != "read auth, publish k-web-outputs" || string(fake.written["password"]) != "canary-2" {
		t.Errorf("after a new password, requested %s with %s", asked, fake.written)
	}
	// Read, but not different.
	setVersion(r, "902")
	r.Inventory.Put(apply.State{Key: apply.Key{Kind: "Secret", Namespace: "apps", Name: "k-web-outputs"}, ResourceVersion: "102", Owner: "u"})
	if asked, _ = publish(t, r, fake, v, api.Status{}); !strings.HasPrefix(asked, "read auth") {
		t.Errorf("requested %s", asked)
	}
}

func TestOutputs_StayWhileUnknown(t *testing.T) {
	present := api.Status{Outputs: api.Outputs{"count": int64(2), "former": "a"}, OutputsSecret: "k-web-outputs"}
	for name, change := range map[string]func(*snapshot){
		"an action runs":          func(v *snapshot) { v.Observation.Running = &plan.Running{} },
		"it is being deleted":     func(v *snapshot) { v.Observation.Deleting = true },
		"the revision failed":     func(v *snapshot) { v.Observation.Newest.Status = api.StatusFailed },
		"no revision":             func(v *snapshot) { v.Observation.Newest = nil },
		"a foreign release":       func(v *snapshot) { v.Observation.Newest.Owned = false },
		"the outputs are refused": func(*snapshot) {},
	} {
		t.Run(name, func(t *testing.T) {
			r, fake, v := withOutputs(t, passwordAndCount)
			change(v)
			v.Outputs.Refused = name == "the outputs are refused"
			r.computeOutputs(t.Context(), v)
			outputs, secret := v.Outputs.Of(present)
			if diff := cmp.Diff(present.Outputs, outputs); diff != "" || secret != "k-web-outputs" || len(fake.asked) > 0 {
				t.Errorf("requested %v, %s (-want +got):\n%s", fake.asked, secret, diff)
			}
		})
	}
	t.Run("the values are not those of the release", func(t *testing.T) {
		r, fake, v := withOutputs(t, passwordAndCount)
		v.Observation.Newest.Digest = "other"
		if _, outputs := publish(t, r, fake, v, present); !cmp.Equal(outputs, api.Outputs{"count": int64(2)}) {
			t.Errorf("the outputs are %v", outputs)
		}
	})
	t.Run("the entry has no outputs any longer", func(t *testing.T) {
		r, fake, v := withOutputs(t, passwordAndCount)
		r.Kind.Outputs = catalog.Outputs{}
		if _, outputs := publish(t, r, fake, v, present); outputs != nil || v.Outputs.Secret != "" {
			t.Errorf("the outputs are %v", outputs)
		}
	})
}

func TestOutputs_Failures(t *testing.T) {
	const failing = "  - {name: a, value: objects.Secret.auth.data.none}\n  - {name: b, value: int(objects.Secret.auth.data.password)}\n" +
		"  - {name: c, value: objects.Secret.auth.data.password}\n  - {name: d, value: values.none}\n  - {name: e, value: '5'}\n"
	r, fake, v := withOutputs(t, failing)
	_, outputs := publish(t, r, fake, v, api.Status{Outputs: api.Outputs{"d": "before"}})
	if diff := cmp.Diff(api.Outputs{"d": "before", "e": int64(5)}, outputs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Join(fake.kept, " ") != "a b" || len(fake.written) != 1 {
		t.Errorf("wrote %s and kept %v", fake.written, fake.kept)
	}
	// A second report of the same snapshot does not repeat the failures.
	r.computeOutputs(t.Context(), v)
	s := status.Compute(&v.Snapshot, plan.Decision{State: plan.StateInSync}, nil)
	want := "status.outputs.d: no such key: none; status.outputs.a: no such key: none; " +
		"status.outputs.b: the evaluation failed, and the error is not shown because the output is sensitive"
	if message := find(s.Conditions, api.ConditionStatusFieldsFailed).Message; message != want {
		t.Errorf("the message is %s", message)
	}

	// A Secret of another owner is reported, and is not the Secret with the outputs.
	fake.err = fmt.Errorf("%w: Secret", apply.ErrForeign)
	r.memory.with("u", func(m *remembered) { m.published = published{} })
	v.CR.Object["status"] = map[string]any{"outputsSecret": "k-web-outputs"}
	publish(t, r, fake, v, api.Status{})
	if !strings.Contains(fmt.Sprint(v.Outputs.Failures), "outputs: ") || v.Outputs.Secret != "" {
		t.Errorf("failures are %v, the Secret is %q", v.Outputs.Failures, v.Outputs.Secret)
	}
}
