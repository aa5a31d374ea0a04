package reconcile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/watches"
)

// withService adds a Service of the release, and the time of each wake.
func withService(t *testing.T, outputs string) (*Reconciler, *fakeOutputs, *snapshot, *[]time.Duration) {
	t.Helper()
	r, fake, v := withOutputs(t, outputs)
	r.Inventory.Put(apply.State{Key: apply.Key{Kind: "Service", Namespace: "apps", Name: "front"}, UID: "front", ResourceVersion: "1", Owner: "u", Managed: true})
	var woken []time.Duration
	r.Wake = func(_ types.NamespacedName, after time.Duration) { woken = append(woken, after) }
	v.Observation.Now = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	return r, fake, v, &woken
}

// failures returns the failures of outputs as text.
func failures(v *snapshot) string { return fmt.Sprint(v.Outputs.Failures) }

const aboutService = "  - {name: kind, value: objects.Service.front.kind}\n  - {name: count, value: values.count}\n  - {name: password, value: objects.Secret.auth.data.password}\n"

func TestOutputs_UnreadableObjectFailsOnlyItsOutputs(t *testing.T) {
	r, fake, v, woken := withService(t, aboutService)
	present := api.Status{Outputs: api.Outputs{"kind": "before", "count": int64(2)}, OutputsSecret: "k-web-outputs"}
	fake.unread = map[string]error{"front": apierrors.NewServiceUnavailable("conversion webhook")}
	_, outputs := publish(t, r, fake, v, present)
	if diff := cmp.Diff(api.Outputs{"kind": "before", "count": int64(3)}, outputs); diff != "" || string(fake.written["password"]) != "canary-1" || v.Outputs.Secret != "k-web-outputs" {
		t.Errorf("wrote %s (-want +got):\n%s", fake.written, diff)
	}
	if want := "[outputs.kind: read Service apps/front: conversion webhook. The API server, or a webhook or API server that it calls, is overloaded or fails: if this lasts, check their logs outputs: the next attempt is at 2026-05-06T07:08:10Z]"; failures(v) != want {
		t.Errorf("the failures are %s", failures(v))
	}
	// Before the next attempt, nothing is requested, and the report is the same.
	before := failures(v)
	v.Observation.Now = v.Observation.Now.Add(900 * time.Millisecond)
	if asked, _ := publish(t, r, fake, v, present); asked != "" || failures(v) != before {
		t.Errorf("requested %s, the failures are %s", asked, failures(v))
	}
	if diff := cmp.Diff([]time.Duration{time.Second, 100 * time.Millisecond}, *woken); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The time between attempts doubles.
	for _, wait := range []time.Duration{2 * time.Second, 4 * time.Second} {
		v.Observation.Now = v.Observation.Now.Add((*woken)[len(*woken)-1])
		if asked, _ := publish(t, r, fake, v, present); !strings.Contains(asked, "read front") || (*woken)[len(*woken)-1] != wait {
			t.Errorf("requested %s, and woken after %v", asked, *woken)
		}
	}
	// An output that reads a Secret names the cause, too.
	fake.unread = map[string]error{"auth": errors.New("unavailable")}
	setVersion(r, "2")
	publish(t, r, fake, v, present)
	if !strings.Contains(failures(v), "outputs.password: read Secret apps/auth: unavailable") || strings.Contains(failures(v), "outputs.kind") || strings.Join(fake.kept, "") != "password" {
		t.Errorf("kept %v, the failures are %s", fake.kept, failures(v))
	}
	// It recovers after a change of the permissions, without waiting.
	fake.unread = nil
	r.memory.outputsDue()
	if _, outputs = publish(t, r, fake, v, present); outputs["kind"] != "Secret" || len(v.Outputs.Failures) > 0 || string(fake.written["password"]) != "canary-1" {
		t.Errorf("the outputs are %v with the failures %s", outputs, failures(v))
	}
}

// A Secret whose outputs the kind no longer declares is deleted once, and not forgotten if that
// fails.
func TestOutputs_SecretIsWithdrawn(t *testing.T) {
	for name, outputs := range map[string]string{
		"no sensitive output": "  - {name: count, value: values.count}\n",
		"no output":           "",
	} {
		t.Run(name, func(t *testing.T) {
			r, fake, v := withOutputs(t, outputs)
			if asked, _ := publish(t, r, fake, v, api.Status{}); asked != "" {
				t.Errorf("without a Secret, requested %s", asked)
			}
			v.CR.Object["status"] = map[string]any{"outputsSecret": "k-web-outputs"}
			present := api.Status{OutputsSecret: "k-web-outputs"}
			fake.err = apierrors.NewServiceUnavailable("unavailable")
			if asked, _ := publish(t, r, fake, v, present); asked != "withdraw apps/k-web-outputs of u" || v.Outputs.Secret != "k-web-outputs" || !strings.Contains(failures(v), "outputs: unavailable") {
				t.Errorf("requested %s, the Secret is %q, the failures are %s", asked, v.Outputs.Secret, failures(v))
			}
			if asked, _ := publish(t, r, fake, v, present); asked != "" || v.Outputs.Secret != "k-web-outputs" {
				t.Errorf("before the next attempt, requested %s, the Secret is %q", asked, v.Outputs.Secret)
			}
			fake.err = nil
			v.Observation.Now = v.Observation.Now.Add(time.Second)
			if asked, _ := publish(t, r, fake, v, present); asked != "withdraw apps/k-web-outputs of u" || v.Outputs.Secret != "" || len(v.Outputs.Failures) > 0 {
				t.Errorf("requested %s, the Secret is %q, the failures are %s", asked, v.Outputs.Secret, failures(v))
			}
		})
	}
}

func TestOutputs_UnpublishedSecretIsReported(t *testing.T) {
	for name, err := range map[string]error{
		"unavailable": apierrors.NewServiceUnavailable("unavailable"),
		"conflict":    apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "k-web-outputs", errors.New("changed")),
		"forbidden":   apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "k-web-outputs", errors.New("no rule")),
	} {
		t.Run(name, func(t *testing.T) {
			r, fake, v := withOutputs(t, "  - {name: note, value: values.count, sensitive: true}\n  - {name: count, value: values.count}\n")
			v.CR.Object["status"] = map[string]any{"outputsSecret": "k-web-outputs"}
			fake.err = err
			present := api.Status{Outputs: api.Outputs{"count": int64(2)}, OutputsSecret: "k-web-outputs"}
			_, outputs := publish(t, r, fake, v, present)
			if outputs["count"] != int64(3) || v.Outputs.Secret != "k-web-outputs" || !strings.Contains(failures(v), "outputs: "+err.Error()) {
				t.Errorf("the outputs are %v, the Secret %q, the failures %s", outputs, v.Outputs.Secret, failures(v))
			}
			if asked, _ := publish(t, r, fake, v, present); asked != "" {
				t.Errorf("before the next attempt, requested %s", asked)
			}
			fake.err = nil
			v.Observation.Now = v.Observation.Now.Add(time.Second)
			if asked, _ := publish(t, r, fake, v, present); asked != "publish k-web-outputs" || len(v.Outputs.Failures) > 0 {
				t.Errorf("requested %s, the failures are %s", asked, failures(v))
			}
		})
	}
}

func TestOutputs_TimeoutAffectsNoOtherReads(t *testing.T) {
	synctest.Test(t, timeoutAffectsNoOtherReads)
}

func timeoutAffectsNoOtherReads(t *testing.T) {
	r, fake, v, _ := withService(t, aboutService)
	fake.slow = map[string]bool{"front": true}
	_, outputs := publish(t, r, fake, v, api.Status{})
	if !strings.Contains(failures(v), "outputs.kind: read Service apps/front: the API server did not return the object within 1s") {
		t.Errorf("the failures are %s", failures(v))
	}
	if outputs["count"] != int64(3) || string(fake.written["password"]) != "canary-1" {
		t.Errorf("the outputs are %v, wrote %s", outputs, fake.written)
	}
	// No worker waits for this kind again for a while, and the custom resource reads nothing.
	v.Observation.Now = v.Observation.Now.Add(2 * time.Second)
	setVersion(r, "2")
	if asked, _ := publish(t, r, fake, v, api.Status{}); strings.Contains(asked, "read") || !strings.Contains(failures(v), "no objects are read until") {
		t.Errorf("requested %s, the failures are %s", asked, failures(v))
	}
	r.memory.with("u", func(m *remembered) { m.published = published{} })
	if asked, _ := publish(t, r, fake, v, api.Status{}); strings.Contains(asked, "read front") || !strings.Contains(asked, "read auth") || !strings.Contains(failures(v), "none is read until") {
		t.Errorf("for another custom resource, requested %s, the failures are %s", asked, failures(v))
	}
}

// Only objects that an expression names are read, and of those only objects of the release.
func TestOutputs_ReadNoForgedObjects(t *testing.T) {
	forge := func(r *Reconciler) {
		for _, name := range []string{"aaa", "zzz"} {
			r.Inventory.Put(apply.State{Key: apply.Key{Kind: "Secret", Namespace: "apps", Name: name}, UID: types.UID(name), ResourceVersion: "1", Owner: "u", Managed: true})
		}
	}
	const all = "  - {name: all, value: 'objects.Secret.map(name, objects.Secret[name].kind)'}\n"
	for name, test := range map[string]struct {
		outputs string
		prepare func(*Reconciler, *snapshot)
		want    string
	}{
		"one name":  {passwordAndCount, func(*Reconciler, *snapshot) {}, "read auth"},
		"all names": {all, func(r *Reconciler, _ *snapshot) { expectAll(r) }, "read auth"},
		"all names after a restart, without drift detection": {all, func(r *Reconciler, v *snapshot) {
			r.Kind.Drift = watches.Drift{Mode: watches.DriftDisabled}
			v.History[0].Inventory.Digest = apply.Digest(r.Inventory.OwnedBy("u"))
		}, "read auth"},
		"another object of the name": {all, func(r *Reconciler, _ *snapshot) {
			expectAll(r)
			r.Inventory.Put(apply.State{Key: apply.Key{Kind: "Secret", Namespace: "apps", Name: "auth"}, UID: "forged", ResourceVersion: "2", Owner: "u", Managed: true})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, fake, v := withOutputs(t, test.outputs)
			test.prepare(r, v)
			if strings.Contains(name, "restart") {
				// The objects were forged after the start.
				r.readByOutputs(v)
			}
			forge(r)
			asked, _ := publish(t, r, fake, v, api.Status{})
			if asked, _, _ = strings.Cut(asked, ", publish"); strings.TrimPrefix(asked, "publish k-web-outputs") != test.want {
				t.Errorf("requested %s", asked)
			}
		})
	}
}

// expectAll makes the release expect all its objects.
func expectAll(r *Reconciler) { r.Inventory.Expect("u", r.Inventory.OwnedBy("u")) }

func TestReadLimit(t *testing.T) {
	left := ReadLimit{Bytes: 100, Values: 10}
	if err := left.Take(60, 4); err != nil {
		t.Fatal(err)
	}
	for _, size := range [][2]int{{41, 1}, {1, 7}} {
		err := left.Take(size[0], size[1])
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("at least %d bytes and %d values", size[0], size[1])) || !strings.Contains(err.Error(), "of which 40 and 6 are left") {
			t.Errorf("%v: %v", size, err)
		}
	}
	if err := left.Take(40, 6); err != nil || left != (ReadLimit{}) {
		t.Errorf("%v, %v left", err, left)
	}
}

// The status is written although an output cannot be read.
func TestReport_UnreadableOutputNeverFreezesStatus(t *testing.T) {
	w := newWorld(t)
	outputs, fake, _, _ := withService(t, aboutService)
	w.Kind.Outputs, w.Outputs = outputs.Kind.Outputs, fake
	fake.unread = map[string]error{"front": errors.New("unavailable")}
	service := apply.State{Key: apply.Key{Kind: "Service", Namespace: "apps", Name: "front"}, UID: "front", ResourceVersion: "1", Owner: ownUID, Managed: true}
	w.Inventory.Put(service)
	w.Inventory.Expect(ownUID, []apply.State{w.applied(), service})
	w.stored(2, api.StatusDeployed)
	w.reconcile()
	s := status.Read(w.apiServer.cr)
	if s.Release == nil || s.Release.Revision != 2 || s.ObservedGeneration != 1 {
		t.Errorf("the status is %+v", s)
	}
	if message := find(s.Conditions, api.ConditionStatusFieldsFailed).Message; !strings.Contains(message, "status.outputs.kind: read Service apps/front: unavailable") {
		t.Errorf("the message is %q", message)
	}
}
