package reconcile

import (
	"strconv"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// TestSignAt_SpreadsRecords: a thousand unsigned records are signed one after
// another, and each custom resource keeps its slot.
func TestSignAt_SpreadsRecords(t *testing.T) {
	r := &Reconciler{Shared: Shared{Signatures: rate.NewLimiter(10, 10)}}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	turns := map[types.UID]time.Time{}
	for i := range 1000 {
		uid := types.UID(strconv.Itoa(i))
		turns[uid] = r.memory.signAt(uid, now, r.reserveSignature)
	}
	var within int
	for uid, turn := range turns {
		if turn.Sub(now) < 10*time.Second {
			within++
		}
		if again := r.memory.signAt(uid, now.Add(time.Minute), r.reserveSignature); !again.Equal(turn) {
			t.Fatalf("the slot of %s was %s and is %s", uid, turn, again)
		}
	}
	if within < 100 || within > 110 {
		t.Errorf("%d of 1000 are signed within ten seconds, want about 110", within)
	}
}

// TestVerdicts_ApplyToOneVersion of a record and, if they matter, of the inputs.
func TestVerdicts_ApplyToOneVersion(t *testing.T) {
	var known verdicts
	record := release.Record{UID: "u", ResourceVersion: "1"}
	known.add(record, "inputs", "forged")
	changed, other := record, record
	changed.ResourceVersion, other.UID = "2", "v"
	for name, got := range map[string]string{
		"another version": known.of(changed, "inputs"), "another record": known.of(other, "inputs"), "other inputs": known.of(record, "others"),
	} {
		if got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := known.of(record, "inputs"); got != "forged" {
		t.Errorf("the same version: %q", got)
	}
}

// TestLastGood_SkipsUnusableRevisions: without another good revision, a failed upgrade
// is retried instead.
func TestLastGood_SkipsUnusableRevisions(t *testing.T) {
	v := viewOf([]string{api.StatusFailed, api.StatusSuperseded, api.StatusSuperseded})
	for i := range v.History {
		v.History[i].UID = types.UID(strconv.Itoa(v.History[i].Revision))
	}
	r := &Reconciler{}
	for _, want := range []int{2, 1, 0} {
		if got := r.lastGood(v); got != want {
			t.Fatalf("got revision %d, want %d", got, want)
		}
		if want > 0 {
			record := v.History[len(v.History)-want]
			r.unrepeatable.add(record, v.digests.Input, "forged")
		}
	}
}

// What is known of a record is forgotten with the record.
func TestRecordChanged_ForgetsDeletedRecord(t *testing.T) {
	r, _ := concluding()
	record := release.Record{UID: "1", Namespace: "apps", Secret: "s", ResourceVersion: "1"}
	r.Index.Put(record)
	r.foreign.put(record.UID, struct{}{})
	r.untrusted.add(record, "", "forged")
	r.unrepeatable.add(record, "", "forged")
	known := func() int { return len(r.foreign.entries) + len(r.untrusted.entries) + len(r.unrepeatable.entries) }
	r.RecordChanged(record)
	if n := known(); n != 3 {
		t.Errorf("%d verdicts on a record that exists", n)
	}
	r.Index.Remove(record)
	r.RecordChanged(record)
	if n := known(); n != 0 {
		t.Errorf("%d verdicts on a deleted record", n)
	}
}
