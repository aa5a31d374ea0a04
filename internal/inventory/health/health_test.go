package health

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

const widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a, creationTimestamp: \"2026-05-06T07:08:09Z\", generation: 2}\n"

// An object without a report is not ready for 60 seconds, or as long as another object of its
// kind has a report.
func TestAt_WaitsForReport(t *testing.T) {
	silent := Evaluate(parse(t, widget), Kind{})
	end := createdAt.Add(Grace)
	for _, test := range []struct {
		name         string
		at           time.Time
		othersReport bool
		ready        bool
		next         time.Time
	}{
		{"at creation", createdAt, false, false, end},
		{"before the grace period ends", end.Add(-time.Second), false, false, end},
		{"at the end of the grace period", end, false, true, time.Time{}},
		{"much later", end.Add(time.Hour), false, true, time.Time{}},
		{"another object has a report, at creation", createdAt, true, false, time.Time{}},
		{"another object has a report, much later", end.Add(time.Hour), true, false, time.Time{}},
	} {
		got, next := silent.At(test.at, test.othersReport)
		if got.Ready != test.ready || got.Failed || got.Ready == got.OpenEnded || got.Message == "" {
			t.Errorf("%s: %+v", test.name, got)
		}
		if !next.Equal(test.next) {
			t.Errorf("%s: next is %s, want %s", test.name, next, test.next)
		}
	}
}

// The state of other claims is irrelevant for a claim that no pod uses.
func TestAt_ClaimWithoutConsumer(t *testing.T) {
	claim := Evaluate(parse(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, creationTimestamp: "2026-05-06T07:08:09Z"}, spec: {storageClassName: late}, status: {phase: Pending}}`), Kind{})
	for _, others := range []bool{false, true} {
		if got, next := claim.At(createdAt, others); got.Ready || !next.Equal(createdAt.Add(Grace)) {
			t.Errorf("at creation: %+v, next %s", got, next)
		}
		if got, _ := claim.At(createdAt.Add(Grace), others); !got.Ready || got.Message == "" {
			t.Errorf("after the grace period: %+v", got)
		}
	}
}

// An object of a kind without the status subresource is ready at once, unless an object of the
// kind has a status nevertheless.
func TestEvaluate_KindWithoutStatus(t *testing.T) {
	none := func(gvk schema.GroupVersionKind) bool { return gvk.Kind != "" }
	got := Evaluate(parse(t, widget), Kind{NoStatus: none})
	if at, next := got.At(createdAt, false); !at.Ready || !next.IsZero() {
		t.Errorf("got %+v", at)
	}
	if at, _ := got.At(createdAt, true); at.Ready || !at.OpenEnded {
		t.Errorf("another object has a status: %+v", at)
	}
	if got := Evaluate(parse(t, widget+"status: {phase: Failed}"), Kind{NoStatus: none}); !got.Failed {
		t.Errorf("with a status: %+v", got)
	}
	// The controllers of well-known kinds may report without the subresource.
	if got := Evaluate(parse(t, "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: a}"), Kind{NoStatus: none}); got.Ready {
		t.Errorf("a well-known kind: %+v", got)
	}
}

func TestEvaluate_DeletingIsNotReady(t *testing.T) {
	got := Evaluate(parse(t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, deletionTimestamp: "2026-01-02T03:04:05Z"}, status: {conditions: [{type: Ready, status: "True"}]}}`), Kind{})
	if got.Ready || got.Reason != "Terminating" {
		t.Errorf("got %+v", got)
	}
}

func TestEvaluate_TruncatesLongMessage(t *testing.T) {
	got := Evaluate(parse(t, widget+"status: {phase: Failed, message: "+strings.Repeat("ä", 5000)+"}"), Kind{})
	if len(got.Message) > maxMessage+len("…") || !strings.HasSuffix(got.Message, "ä…") {
		t.Errorf("%d bytes that end in %q", len(got.Message), got.Message[len(got.Message)-6:])
	}
}

// Evaluate must not panic, and only the words for a failure may cause one.
func TestEvaluate_GarbageIsNoFailure(t *testing.T) {
	words := []string{"", "True", "False", "Unknown", "Ready", "Available", "Reconciling", "Succeeded", "x", "1", "-1", "99999999999999999999", "1970-01-01T00:00:00Z"}
	keys := []string{"type", "status", "reason", "message", "conditions", "phase", "state", "observedGeneration", "parents", "lastTransitionTime", "replicas", "containerStatuses", "health"}
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		leaves := []*rapid.Generator[any]{
			rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Float64().AsAny(), rapid.SampledFrom(words).AsAny(),
		}
		if depth > 0 {
			leaves = append(leaves,
				rapid.Map(rapid.SliceOfN(value(depth-1), 0, 4), func(list []any) any { return list }),
				rapid.Map(rapid.MapOfN(rapid.SampledFrom(keys), value(depth-1), 0, 6), func(m map[string]any) any { return m }))
		}
		return rapid.OneOf(leaves...)
	}
	kinds := []schema.GroupVersionKind{
		{Group: "example.com", Version: "v1", Kind: "Widget"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Group: "apps", Version: "v1", Kind: "DaemonSet"},
		{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "PersistentVolumeClaim"}, {Group: "batch", Version: "v1", Kind: "Job"},
		{Version: "v1", Kind: "Service"}, {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
		{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}, {Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"},
		{Group: "postgresql.cnpg.io", Version: "v1", Kind: "Cluster"}, {Group: "kafka.strimzi.io", Version: "v1", Kind: "Kafka"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}, {Group: "cert-manager.io", Version: "v1", Kind: "Certificate"},
	}
	rule, mistakes := Compile("self.status.phase == 'Ready'", "size(self.status.conditions) > 100", "self.status.message")
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	rapid.Check(t, func(t *rapid.T) {
		o := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "a", "generation": rapid.Int64Range(0, 3).Draw(t, "generation")},
			"spec":     value(2).Draw(t, "spec"), "status": value(4).Draw(t, "status"),
		}}
		o.SetGroupVersionKind(rapid.SampledFrom(kinds).Draw(t, "kind"))
		k := Kind{}
		if rapid.Bool().Draw(t, "by rule") {
			k.Rule = rule
		}
		got := Evaluate(o, k)
		if got.Failed {
			t.Fatalf("failed: %+v", got)
		}
		if !got.Ready && got.Message == "" {
			t.Fatalf("no message: %+v", got)
		}
	})
}

func BenchmarkEvaluate_Generic(b *testing.B) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a", "generation": int64(2)},
		"status": map[string]any{"observedGeneration": int64(2), "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}}
	for b.Loop() {
		if !Evaluate(o, Kind{}).Ready {
			b.Fatal("not ready")
		}
	}
}

func BenchmarkEvaluate_Rule(b *testing.B) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a", "generation": int64(2)},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}}
	rule, mistakes := Compile("self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", "", "")
	if len(mistakes) > 0 {
		b.Fatal(mistakes)
	}
	for b.Loop() {
		if !Evaluate(o, Kind{Rule: rule}).Ready {
			b.Fatal("not ready")
		}
	}
}

// A finished Job that is deleted after its TTL must not make its release unready.
func TestEvaluate_FinishedJobDeletedAfterTTL(t *testing.T) {
	const going = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, deletionTimestamp: 2026-01-01T00:00:00Z}\n"
	for _, test := range []struct {
		name, rest    string
		ready, failed bool
	}{
		{"complete", "spec: {ttlSecondsAfterFinished: 1}\nstatus: {conditions: [{type: Complete, status: \"True\"}]}", true, false},
		{"failed", "spec: {ttlSecondsAfterFinished: 1}\nstatus: {conditions: [{type: Failed, status: \"True\"}]}", false, true},
		{"not finished", "spec: {ttlSecondsAfterFinished: 1}\nstatus: {active: 1}", false, false},
		{"without a TTL", "spec: {}\nstatus: {conditions: [{type: Complete, status: \"True\"}]}", false, false},
	} {
		if got := Evaluate(parse(t, going+test.rest), Kind{}); got.Ready != test.ready || got.Failed != test.failed {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

// Tenants can write the status of custom resources.
func TestEvaluate_TruncatesLongReason(t *testing.T) {
	conditions := "status: {conditions: [{type: Ready, status: \"False\", message: m, reason: " + strings.Repeat("x", 250<<10) + "}]}"
	if got := Evaluate(parse(t, widget+conditions), Kind{}); len(got.Reason) > maxReason {
		t.Errorf("reason of %d bytes", len(got.Reason))
	}
}
