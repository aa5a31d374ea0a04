package apply_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// workload returns a Deployment with additional fields in its spec and its pod spec.
func workload(spec, pod string) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {" + spec + "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {" +
		pod + "containers: [{name: c, image: i}]}}}}"
}

func TestApply_RemovesDefaultsOfOldUnionMember(t *testing.T) {
	for _, test := range []struct {
		name, from, edit, to string
		// left must be in the result, removed must not.
		left, removed string
	}{
		{name: "strategy", from: workload("", ""), to: workload("strategy: {type: Recreate}, ", ""), removed: "rollingUpdate"},
		{name: "volume", from: workload("", "volumes: [{name: v}], "), to: workload("", "volumes: [{name: v, secret: {secretName: a}}], "), removed: "emptyDir"},
		{
			name: "strategy edited by another client", from: workload("", ""), edit: `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":3}},"revisionHistoryLimit":3}}`,
			to: workload("strategy: {type: Recreate}, ", ""), removed: "rollingUpdate", left: `"revisionHistoryLimit":3`,
		},
		{
			name: "volume edited by another client", from: workload("", "volumes: [{name: v}], "),
			edit: `{"spec":{"template":{"spec":{"volumes":[{"name":"v","emptyDir":{"medium":"Memory"}}]}}}}`,
			to:   workload("", "volumes: [{name: v, secret: {secretName: a}}], "), removed: "emptyDir",
		},
		{
			name: "update strategy of a StatefulSet",
			from: strings.Replace(workload("serviceName: s, ", ""), "Deployment", "StatefulSet", 1),
			to:   strings.Replace(workload("serviceName: s, updateStrategy: {type: OnDelete}, ", ""), "Deployment", "StatefulSet", 1), removed: "rollingUpdate",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			of := namespace(t)
			first := object(t, of, test.from)
			mustApply(t, first)
			if test.edit != "" {
				_, err := apiServer.client.Dynamic.Resource(first.Mapping.Resource).Namespace(of.Namespace).
					Patch(t.Context(), "a", types.StrategicMergePatchType, []byte(test.edit), metav1.PatchOptions{FieldManager: "kubectl-edit"})
				if err != nil {
					t.Fatal(err)
				}
			}
			next := object(t, of, test.to)
			before := text(t, next)
			if _, err := apiServer.client.Apply(t.Context(), next, apply.Options{DryRun: true}); err != nil {
				t.Fatalf("dry run: %v", err)
			}
			mustApply(t, next)
			live := text(t, next)
			if !strings.Contains(before, test.removed) || strings.Contains(live, test.removed) || !strings.Contains(live, test.left) {
				t.Errorf("want %q removed and %q left\nbefore: %s\nafter: %s", test.removed, test.left, before, live)
			}
			// The old manifest removes what the new one has set.
			mustApply(t, first)
			if back := text(t, first); !strings.Contains(back, test.removed) {
				t.Errorf("want the default again: %s", back)
			}
		})
	}
}

func TestApply_ReportsOtherErrorsOfObjectWithLeftover(t *testing.T) {
	for name, to := range map[string]string{
		"an invalid field":    workload("strategy: {type: Recreate}, progressDeadlineSeconds: -1, ", ""),
		"an immutable field":  strings.ReplaceAll(workload("strategy: {type: Recreate}, ", ""), "{a: b}", "{a: c}"),
		"an invalid strategy": workload("strategy: {type: Sometimes}, ", ""),
		"an invalid volume":   workload("", "volumes: [{name: v, secret: {}}], "),
	} {
		t.Run(name, func(t *testing.T) {
			of := namespace(t)
			first := object(t, of, workload("", "volumes: [{name: v}], "))
			mustApply(t, first)
			before := text(t, first)
			if _, err := apiServer.client.Apply(t.Context(), object(t, of, to), apply.Options{DryRun: true}); !apierrors.IsInvalid(err) {
				t.Errorf("dry run: got error %v, want Invalid", err)
			} else if !strings.Contains(err.Error(), `"a" is invalid`) {
				t.Errorf("dry run: %v does not contain the name of the object", err)
			}
			if after := text(t, first); after != before {
				t.Errorf("changed by a dry run: %s", after)
			}
			if _, err := apiServer.client.Apply(t.Context(), object(t, of, to), over(t, object(t, of, to))); !apierrors.IsInvalid(err) {
				t.Errorf("apply: got error %v, want Invalid", err)
			}
		})
	}
}

// text returns the live object as JSON, without managedFields.
func text(t *testing.T, o apply.Object) string {
	t.Helper()
	live, err := apiServer.client.Read(t.Context(), o)
	if err != nil || live == nil {
		t.Fatalf("%v, %v", live, err)
	}
	live.SetManagedFields(nil)
	data, err := live.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
