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

// withEdits packs managedFields into the custom resource.
func withEdits(scale []string, entries ...any) func(*snapshot) {
	return func(v *snapshot) {
		from := packed(crOf(true, entries...), scale)
		if e, known := customresource.EditsOf(from); known {
			setEdits(v.CR, e)
		}
	}
}

// ofValues makes the newest revision one of ours, of the values before an edit.
func ofValues(v *snapshot) {
	written(v)
	v.History[0].ValuesDigest = "before"
}

// TestRollbackRequest_OvertakenByAnEdit: what the operator finds when it starts,
// with nothing but the custom resource and the records to go by. It is at
// generation 4.
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
		{"asked after the edit", plain, "1", nil, []any{entryOf("", ownsMessage, 1), entryOf("", ownsRequest, 2)}, rollsBack},
		{"edited after the request", plain, "1", nil, []any{entryOf("", ownsMessage, 3), entryOf("", ownsRequest, 2)}, follows},
		{"in the same second", plain, "1", nil, []any{entryOf("", ownsMessage, 2), entryOf("", ownsRequest, 2)}, unclear},
		{"in one write", plain, "1", nil, []any{entryOf("", ownsBoth, 2)}, unclear},
		{"by one writer, and edited by another later", plain, "1", nil, []any{entryOf("", ownsBoth, 2), entryOf("", ownsReplicas, 3)}, follows},
		{"no managedFields", plain, "1", nil, nil, unclear},
		{"no times", plain, "1", nil, []any{entryOf("", ownsBoth, -1)}, unclear},
		{"scaled after the request", scaledKind, "1", path, []any{entryOf("", ownsMessage, 1), entryOf("", ownsRequest, 2), entryOf("scale", ownsReplicas, -1)}, rollsBack},

		{"the generation that was seen", plain, "1@g4", nil, []any{entryOf("", ownsMessage, 3), entryOf("", ownsRequest, 2)}, rollsBack},
		{"a later generation than was seen, in the same second", plain, "1@g3", nil, []any{entryOf("", ownsMessage, 2), entryOf("", ownsRequest, 2)}, follows},
		{"a later generation than was seen, by an edit that only removes a field", plain, "1@g3", nil, []any{entryOf("", ownsMessage, 1), entryOf("", ownsRequest, 2)}, follows},
		{"a later generation than was seen, and no managedFields", plain, "1@g3@now", nil, nil, follows},
		{"a later generation than was seen, by scaling", scaledKind, "1@g3", path, []any{entryOf("", ownsMessage, 1), entryOf("", ownsRequest, 2), entryOf("scale", ownsReplicas, -1)}, rollsBack},
		{"a later generation than was seen, by scaling of what nobody owned", scaledKind, "1@g3", path, []any{entryOf("", ownsMessage, 1), entryOf("", ownsRequest, 2)}, rollsBack},
		{"a later generation than was seen, by an edit, never scaled", scaledKind, "1@g3", path, []any{entryOf("", ownsReplicas, 2), entryOf("", ownsRequest, 2)}, follows},
		{"a later generation than was seen, by an edit in the same second, once scaled", scaledKind, "1@g3", path, []any{entryOf("", ownsMessage, 2), entryOf("", ownsRequest, 2), entryOf("scale", ownsReplicas, -1)}, unclear},
		{"a later generation than was seen, by an edit, once scaled", scaledKind, "1@g3", path, []any{entryOf("", ownsMessage, 4), entryOf("", ownsRequest, 2), entryOf("scale", ownsReplicas, -1)}, follows},
		{"a later generation than was seen, of a kind that scales, and no managedFields", scaledKind, "1@g3", path, nil, unclear},
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
				t.Errorf("it %s, want %s", got, test.want)
			}
			// Where the newest revision is what the spec asks for, no edit can be lost.
			test.r.memory = memory{}
			v.digests.Values = "before"
			test.r.observeRequests(v)
			if v.Observation.Request.Expired || v.unclear {
				t.Error("an edit is missed that the release has followed")
			}
		})
	}
}

// TestRollbackRequest_EditedWhileItWaits: a process that has seen the request
// knows what was edited since, to the generation.
func TestRollbackRequest_EditedWhileItWaits(t *testing.T) {
	r, _ := concluding()
	r.Kind = scaled(".spec.replicas").Kind
	path := []string{"spec", "replicas"}
	look := func(message string, replicas int64, entries ...any) *snapshot {
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
		{"as it was", look("one", 1, same...), false},
		{"scaled", look("one", 2, byScale...), false},
		{"edited in the same second", look("two", 2, byScale...), true},
		{"edited back", look("one", 2, byScale...), false},
		{"replicas edited", look("one", 3, byEdit...), true},
		{"replicas changed, and managedFields are missing", look("one", 3), false},
	} {
		if got := step.v.Observation.Request.Expired; got != step.want {
			t.Errorf("%s: overtaken %v, want %v", step.name, got, step.want)
		}
	}
	// Taken back, and asked for again after the edit.
	r.observeRequests(viewOf([]string{dep, sup}))
	if look("two", 1, same...).Observation.Request.Expired {
		t.Error("an edit overtakes a request that came after it")
	}
	v := look("three", 1, same...)
	d := plan.Next(v.Observation)
	if d.State != plan.StateRollbackRequested || d.Step != plan.StepRefuse {
		t.Fatalf("%+v", d)
	}
	if note := noteOvertaken(v); !strings.Contains(note, "rollback-to=1 is skipped") || !strings.Contains(note, "1@again") {
		t.Errorf("the event says %q", note)
	}
}

// TestHold_EndsByEditsAlone: a hold at 2 replicas with another value since.
func TestHold_EndsByEditsAlone(t *testing.T) {
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
		// waits is what the condition Held says of the scaling.
		waits string
	}{
		{"nothing has changed", observed("2", int64(2), edited), false, ""},
		{"replicas were edited", observed("2", int64(3), edited), true, ""},
		{"replicas were scaled", observed("2", int64(3), byScale), false, "Scaling .spec.replicas from 2 to 3"},
		{"replicas were scaled, and somebody owns the spec", observed("2", int64(3), entryOf("", ownsMessage, 1), byScale), false, "from 2 to 3"},
		{"replicas were scaled and back", observed("2", int64(2), byScale), false, ""},
		{"replicas were taken out of the spec", observed("2", nil, entryOf("", ownsMessage, 1)), true, ""},
		{"replicas were scaled where none were set", observed("unset", int64(3), byScale), false, "from unset to 3"},
		{"replicas were changed, and managedFields are missing", observed("2", int64(3)), false, "from 2 to 3"},
		{"replicas were taken out, and managedFields are missing", observed("2", nil), true, ""},
		{"the hold is of an older operator", observed("", int64(3), edited), false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.v.Observation.Held.Expired; got != test.over {
				t.Errorf("over: %v, want %v", got, test.over)
			}
			message := find(status.Compute(&test.v.Snapshot, plan.Decision{State: plan.StateHeld}, nil).Conditions, api.ConditionHeld).Message
			if waits := strings.Contains(message, "takes effect when the hold ends"); waits != (test.waits != "") || !strings.Contains(message, test.waits) {
				t.Errorf("the condition says %q, want %q", message, test.waits)
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
