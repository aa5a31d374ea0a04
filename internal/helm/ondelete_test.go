package helm

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/watches"
)

// dataClaim returns the claim "data", nil if it does not exist or is being deleted. No controller
// removes the finalizer of claims in these tests.
func (w *world) dataClaim() *corev1.PersistentVolumeClaim {
	w.Helper()
	list, err := w.plain.CoreV1().PersistentVolumeClaims(w.namespace).List(w.Context(), metav1.ListOptions{FieldSelector: "metadata.name=data"})
	if err != nil {
		w.Fatal(err)
	}
	if len(list.Items) == 0 || list.Items[0].DeletionTimestamp != nil {
		return nil
	}
	return &list.Items[0]
}

// deletion returns the request of the uninstall of a deleted custom resource.
func (w *world) deletion(c files) Request {
	r := w.request(c.load(w.T), "", nil)
	r.Deleting = true
	return r
}

// isLeft fails the test unless the claim stays, without anything that ties it to the custom
// resource.
func (w *world) isLeft(uid types.UID) {
	w.Helper()
	claim := w.dataClaim()
	switch {
	case claim == nil || claim.UID != uid:
		w.Fatalf("the claim is deleted: %v", claim)
	case len(claim.OwnerReferences) > 0 || claim.Labels[api.LabelOwnerUID] != "" || claim.Labels[api.LabelOperator] != "":
		w.Errorf("the claim has the owners %v and the labels %v", claim.OwnerReferences, claim.Labels)
	case claim.Labels[api.LabelLeft] != "true" || claim.Annotations[api.AnnotationLeftBy] != w.owner.String():
		w.Errorf("the claim is not marked: %v, %v", claim.Labels, claim.Annotations)
	}
}

func dataChart() files { return mapsChart().with("templates/claim.yaml", claimManifest) }

// dataWorld returns a world with a release that has a claim and the ConfigMap "a", and the UID
// of the claim.
func dataWorld(t *testing.T) (*world, types.UID) {
	w := newWorld(t)
	w.must(w.helm.Install(t.Context(), w.request(dataChart().load(t), "one", valuesOf("a=1"))))
	w.watch()
	return w, w.dataClaim().UID
}

func TestOnDelete_DecidesAboutGuardedObjects(t *testing.T) {
	for name, test := range map[string]struct {
		set   func(*Request)
		stays bool
	}{
		"default":          {func(*Request) {}, true},
		"Keep":             {func(r *Request) { r.Guard = watches.Guard{Mode: watches.GuardOff, OnDelete: watches.OnDeleteKeep} }, true},
		"approval Never":   {func(r *Request) { r.Approval = watches.ApprovalNever }, true},
		"Delete":           {func(r *Request) { r.Guard.OnDelete = watches.OnDeleteDelete }, false},
		"Warn":             {func(r *Request) { r.Guard.Mode = watches.GuardWarn }, false},
		"Off":              {func(r *Request) { r.Guard.Mode = watches.GuardOff }, false},
		"annotation":       {func(r *Request) { r.DeleteData = true }, false},
		"resource remains": {func(r *Request) { r.Deleting, r.Guard.OnDelete = false, watches.OnDeleteDelete }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, uid := dataWorld(t)
			var events []string
			r := w.deletion(dataChart())
			r.WaitForDelete = test.stays
			r.Notifier = warnFunc(func(reason, what string) { events = append(events, reason+": "+what) })
			test.set(&r)
			w.must(w.helm.Uninstall(t.Context(), r))
			equal(t, "the other objects", []string{}, w.configMaps())
			equal(t, "the revisions", []string{}, w.statuses())
			if !test.stays {
				if w.dataClaim() != nil {
					t.Error("the claim stays")
				}
				equal(t, "the events", nil, events)
				return
			}
			w.isLeft(uid)
			if len(events) != 1 || !strings.HasPrefix(events[0], "ObjectLeft: ") || !strings.Contains(events[0], "PersistentVolumeClaim "+w.namespace+"/data (its volume may be deleted with it)") {
				t.Errorf("the events are %q", events)
			}
		})
	}
}

// Only a custom resource of the same kind and name adopts an object that stayed.
func TestOnDelete_SameNameAdopts(t *testing.T) {
	w, uid := dataWorld(t)
	w.must(w.helm.Uninstall(t.Context(), w.deletion(dataChart())))
	w.watch()

	other := w.request(dataChart().load(t), "one", valuesOf("b=1"))
	other.Owner.GVK.Kind, other.Owner.UID = "Other", "other"
	if err := w.helm.Install(t.Context(), other); err == nil || !strings.Contains(err.Error(), w.owner.String()+" left it") {
		t.Errorf("another kind: the error is %v", err)
	}
	w.isLeft(uid)

	w.owner.UID = "22222222-2222-3333-4444-555555555555"
	again := w.request(dataChart().load(t), "one", valuesOf("a=2"))
	w.must(w.helm.Install(t.Context(), again))
	if claim := w.dataClaim(); claim == nil || claim.UID != uid || claim.Labels[api.LabelOwnerUID] != string(w.owner.UID) {
		t.Errorf("the same kind and name: the claim is %v", claim)
	}
	w.watch()
	w.must(w.helm.Uninstall(t.Context(), w.deletion(dataChart())))
	w.isLeft(uid)
}

// The object stays after an interruption at any request.
func TestOnDelete_KeepsAfterInterruption(t *testing.T) {
	for at := int64(1); ; at++ {
		w, uid := dataWorld(t)
		p := &disturbance{at: at, dead: true}
		w.net.armed.Store(p)
		err := w.helm.Uninstall(t.Context(), w.deletion(dataChart()))
		if p.seen.Load() < at {
			w.must(err)
			w.isLeft(uid)
			return
		}
		w.restart()
		if claim := w.dataClaim(); claim == nil || claim.UID != uid {
			t.Fatalf("interrupted at request %d, the claim is deleted", at)
		}
		if len(w.statuses()) > 0 {
			w.must(w.helm.Uninstall(t.Context(), w.deletion(dataChart())))
			w.isLeft(uid)
		}
	}
}
