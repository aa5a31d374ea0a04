package reconcile

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
)

// withEdits adds packed managedFields to the custom resource.
func withEdits(scale []string, entries ...any) func(*snapshot) {
	return func(v *snapshot) {
		from := packed(crOf(true, entries...), scale)
		if e, known := customresource.EditsOf(from); known {
			setEdits(v.CR, e)
		}
	}
}

// ofValues sets the values digest of the newest revision to that before an edit.
func ofValues(v *snapshot) {
	written(v)
	v.History[0].ValuesDigest = "before"
}

// TestRollbackRequest_OvertakenByAnEdit: after a restart, only the custom resource at
// generation 4 and the records show whether the spec was edited after the request.
func TestRollbackRequest_OvertakenByAnEdit(t *testing.T) {
	plain, scaledKind := &Reconciler{}, scaled(".spec.replicas")
	path := []string{"spec", "replicas"}
	const follows, rollsBack, unclear = "follows the edit", "rolls back", "rolls back, and says so"
	for _, test := range []struct {
		name    string
		r       *Reconciler
		asked   string
		scale   []string
		entries []any
		want    string
	}{
		{"requested after the edit", plain, "1", nil, []any{entryOf("", ownsMessage, 1), entryOf("", ownsRequest, 2)}, rollsBack},
		{"edited after the request", plain, "1", nil, []any{entryOf("", ownsMessage, 3), entryOf("", ownsRequest, 2)}, follows},
		{"in the same second", plain, "1", nil, []any{entryOf("", ownsMessage, 2), entryOf("", ownsRequest, 2)}, unclear},
		{"in one write", plain, "1", nil, []any{entryOf("", ownsBoth, 2)}, unclear},
		{"by one manager, edited by another later", plain, "1", nil, []any{entryOf("", ownsBoth, 2), entryOf("", ownsReplicas, 3)}, follows},
		{"no managedFields", plain, "1", nil, nil, unclear},
		{"no times", plain, "1", nil, []any{entryOf("", ownsBoth, -1)}, unclear},
		{"scaled after the request", scaledKind, "1", path, []any{entryOf("", ownsMessage, 1), entryOf("", ownsRequest, 2), entryOf("scale", ownsReplicas, -1)}, rollsBack},

		{"generation of the request", plain, "1@g4", nil, []any{entryOf("", ownsMessage, 3), entryOf("", ownsRequest, 2)}, rollsBack},
		{"later generation, in the same second", plain, "1@g3", nil, []any{entryOf("", ownsMessage, 2), entryOf("", ownsRequest, 2)}, follows},
		{"later generation, by an edit that only removes a field", plain, "1@g3", nil, []any{entryOf("", ownsMessage, 1), entryOf("", ownsRequest, 2)}, follows},
		{"later generation, no managedFields", plain, "1@g3@now", nil, nil, follows},
		{"later generation, by scaling", scaledKind, "1@g3", path, []any{entryOf("", ownsMessage, 1), entryOf("", ownsRequest, 2), entryOf("scale", ownsReplicas, -1)}, rollsBack},
		{"later generation, by scaling of a field without owner", scaledKind, "1@g3", path, []any{entryOf("", ownsMessage, 1), entryOf("", ownsRequest, 2)}, rollsBack},
		{"later generation, by an edit, never scaled", scaledKind, "1@g3", path, []any{entryOf("", ownsReplicas, 2), entryOf("", ownsRequest, 2)}, follows},
		{"later generation, by an edit in the same second, once scaled", scaledKind, "1@g3", path, []any{entryOf("", ownsMessage, 2), entryOf("", ownsRequest, 2), entryOf("scale", ownsReplicas, -1)}, unclear},
		{"later generation, by an edit, once scaled", scaledKind, "1@g3", path, []any{entryOf("", ownsMessage, 4), entryOf("", ownsRequest, 2), entryOf("scale", ownsReplicas, -1)}, follows},
		{"later generation, kind with scale, no managedFields", scaledKind, "1@g3", path, nil, unclear},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := viewOf([]string{dep, sup}, asking("rollback-to", test.asked), withSpec(map[string]any{"replicas": int64(2)}), withEdits(test.scale, test.entries...), ofValues)
			v.digests.Values = "edited"
			test.r.memory = memory{}
			test.r.observeRequests(v)
			got := rollsBack
			switch {
			case v.Observation.Request.Expired:
				got = follows
			case v.unclear:
				got = unclear
			}
			if got != test.want {
				t.Errorf("the request %s, want %s", got, test.want)
			}
			// If the newest revision follows the spec, no edit can be lost.
			test.r.memory = memory{}
			v.digests.Values = "before"
			test.r.observeRequests(v)
			if v.Observation.Request.Expired || v.unclear {
				t.Error("an edit that the release has followed is not ignored")
			}
		})
	}
}

// TestRollbackRequest_EditedDuringBackoff: a process that has observed the request
// detects every later edit.
func TestRollbackRequest_EditedDuringBackoff(t *testing.T) {
	r, _ := concluding()
	r.Kind = scaled(".spec.replicas").Kind
	path := []string{"spec", "replicas"}
	observe := func(message string, replicas int64, entries ...any) *snapshot {
		v := viewOf([]string{dep, sup}, asking("rollback-to", "1"), withSpec(map[string]any{"message": message, "replicas": replicas}), withEdits(path, entries...), ofValues)
		v.digests.Values = "edited"
		r.observeRequests(v)
		return v
	}
	same := []any{entryOf("", ownsBoth, 1)}
	byScale := []any{entryOf("", ownsBoth, 1), entryOf("scale", ownsReplicas, -1)}
	byEdit := []any{entryOf("", ownsBoth, 1), entryOf("", ownsReplicas, 1)}
	for _, step := range []struct {
		name string
		v    *snapshot
		want bool
	}{
		{"unchanged", observe("one", 1, same...), false},
		{"scaled", observe("one", 2, byScale...), false},
		{"edited in the same second", observe("two", 2, byScale...), true},
		{"edited back", observe("one", 2, byScale...), false},
		{"replicas edited", observe("one", 3, byEdit...), true},
		{"replicas changed, no managedFields", observe("one", 3), false},
	} {
		if got := step.v.Observation.Request.Expired; got != step.want {
			t.Errorf("%s: overtaken %v, want %v", step.name, got, step.want)
		}
	}
	// Withdrawn, and requested again after the edit.
	r.observeRequests(viewOf([]string{dep, sup}))
	if observe("two", 1, same...).Observation.Request.Expired {
		t.Error("an earlier edit overtakes a request")
	}
	v := observe("three", 1, same...)
	d := plan.Next(v.Observation)
	if d.State != plan.StateRollbackRequested || d.Step != plan.StepRefuse {
		t.Fatalf("%+v", d)
	}
	if note := noteOvertaken(v); !strings.Contains(note, "rollback-to=1 is skipped") || !strings.Contains(note, "1@again") {
		t.Errorf("event %q", note)
	}
}

// TestHold_OnlyEditsEndIt: a hold that began with 2 replicas.
func TestHold_OnlyEditsEndIt(t *testing.T) {
	path := []string{"spec", "replicas"}
	r := scaled(".spec.replicas")
	observed := func(scale string, replicas any, entries ...any) *snapshot {
		spec := map[string]any{"message": "one"}
		if replicas != nil {
			spec["replicas"] = replicas
		}
		v := viewOf([]string{dep, sup}, withSpec(spec), withEdits(path, entries...))
		marked(release.Marks{Rollback: "r", Held: &release.Held{Revision: 1, From: 2, Spec: specOf(r, v), Scale: scale}})(v)
		written(v)
		r.observeRequests(v)
		return v
	}
	edited, byScale := entryOf("", ownsReplicas, 1), entryOf("scale", ownsReplicas, -1)
	for _, test := range []struct {
		name string
		v    *snapshot
		over bool
		// waits is the message of the condition Held about the scaling.
		waits string
	}{
		{"nothing has changed", observed("2", int64(2), edited), false, ""},
		{"replicas were edited", observed("2", int64(3), edited), true, ""},
		{"replicas were scaled", observed("2", int64(3), byScale), false, "Scaling .spec.replicas from 2 to 3"},
		{"replicas were scaled, spec with an owner", observed("2", int64(3), entryOf("", ownsMessage, 1), byScale), false, "from 2 to 3"},
		{"replicas were scaled and back", observed("2", int64(2), byScale), false, ""},
		{"replicas were removed from the spec", observed("2", nil, entryOf("", ownsMessage, 1)), true, ""},
		{"replicas were scaled, not set before", observed("unset", int64(3), byScale), false, "from unset to 3"},
		{"replicas were changed, no managedFields", observed("2", int64(3)), false, "from 2 to 3"},
		{"replicas were removed, no managedFields", observed("2", nil), true, ""},
		{"the hold is of an older operator", observed("", int64(3), edited), false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.v.Observation.Held.Expired; got != test.over {
				t.Errorf("expired: %v, want %v", got, test.over)
			}
			message := find(status.Compute(&test.v.Snapshot, plan.Decision{State: plan.StateHeld}, nil).Conditions, api.ConditionHeld).Message
			if waits := strings.Contains(message, "takes effect when the hold ends"); waits != (test.waits != "") || !strings.Contains(message, test.waits) {
				t.Errorf("condition message %q, want %q", message, test.waits)
			}
		})
	}
}

// packed packs a custom resource.
func packed(cr *unstructured.Unstructured, scale []string) *unstructured.Unstructured {
	data, err := json.Marshal(cr.Object)
	if err != nil {
		panic(err)
	}
	packed, err := customresource.Decoder{Scale: scale}.Decode(data)
	if err != nil {
		panic(err)
	}
	return packed
}

// setEdits sets the edits of a packed custom resource.
func setEdits(cr *unstructured.Unstructured, e customresource.Edits) {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	cr.Object[api.Domain+"/edits"] = string(text)
}
