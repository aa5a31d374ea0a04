package inventory

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// jobState returns the state of a Job that was applied for web.
func jobState(uid types.UID) apply.State {
	s := applied("migrate")
	s.Group, s.Kind, s.UID = "batch", "Job", uid
	return s
}

func done(outcome string) *expiry { return &expiry{outcome: outcome} }

func TestExpiryOf(t *testing.T) {
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	job := func(ttl *int32, kind batchv1.JobConditionType, status corev1.ConditionStatus) *batchv1.Job {
		return &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)},
			Spec:       batchv1.JobSpec{TTLSecondsAfterFinished: ttl},
			Status:     batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: kind, Status: status}}},
		}
	}
	if e := expiryOf(job(nil, batchv1.JobComplete, corev1.ConditionTrue)); e != nil {
		t.Errorf("a Job without a TTL: %+v", e)
	}
	for _, test := range []struct {
		kind   batchv1.JobConditionType
		status corev1.ConditionStatus
		want   string
	}{
		{batchv1.JobComplete, corev1.ConditionTrue, Complete},
		{batchv1.JobFailed, corev1.ConditionTrue, Failed},
		{batchv1.JobComplete, corev1.ConditionFalse, ""},
		{batchv1.JobSuspended, corev1.ConditionTrue, ""},
	} {
		if e := expiryOf(job(new(int32(60)), test.kind, test.status)); e.outcome != test.want || !e.earliest.Equal(made.Add(time.Minute)) {
			t.Errorf("%s=%s: %+v, want %q", test.kind, test.status, e, test.want)
		}
	}
}

func TestFinishedJob_DeletionIsNotDrift(t *testing.T) {
	past, future := time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	for _, test := range []struct {
		name string
		// last is the last state that the watch delivered; missed is true if the watch
		// did not deliver the deletion.
		last   *expiry
		missed bool
		drift  string
		ready  bool
	}{
		{"complete", done(Complete), false, "", true},
		{"failed", done(Failed), false, "", false},
		{"deleted before it finished", &expiry{earliest: past}, false, "migrate gone", false},
		{"deletion missed, and the TTL may have passed", &expiry{earliest: past}, true, "", true},
		{"deletion missed, and the TTL cannot have passed", &expiry{earliest: future}, true, "migrate gone", false},
		{"without a TTL", nil, false, "migrate gone", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newRecordingIndex()
			s := jobState("first")
			l.Put(s)
			l.Expect(web, []apply.State{s})
			h := l.handler()
			if !test.missed {
				h.OnUpdate(nil, cachedObject{state: new(but(s, 11)), health: &healthy, expiry: test.last})
			}
			last := cachedObject{state: new(but(s, 12)), health: &healthy, expiry: test.last}
			l.observeJob(last.state, last.expiry, test.missed)
			l.observeDeletion(last.state, test.missed)
			if got := l.driftNames(web); got != test.drift {
				t.Errorf("drift is %q, want %q", got, test.drift)
			}
			if found := l.Health(web, time.Now()); len(found.Unready) == 0 != test.ready {
				t.Errorf("not ready: %+v", found.Unready)
			}
			if (test.drift == "") != (len(l.JobOutcomes(web)) == 1) {
				t.Errorf("finished: %v", l.JobOutcomes(web))
			}
		})
	}
}

func TestFinishedJob_OutcomeDoesNotApplyToNextJob(t *testing.T) {
	l := newRecordingIndex()
	first := jobState("first")
	// The Job finishes before the action that created it ends.
	l.Put(first)
	l.observeJob(&first, done(Complete), false)
	l.observeDeletion(new(but(first, 11)), false)
	l.Expect(web, []apply.State{first})
	if l.driftNames(web) != "" || l.JobOutcome(web, first.Key, first.UID) != Complete {
		t.Errorf("drift %q, finished %v", l.driftNames(web), l.JobOutcomes(web))
	}
	next := but(jobState("next"), 20)
	l.Put(next)
	l.Expect(web, []apply.State{next})
	l.observeDeletion(new(but(next, 21)), false)
	if l.driftNames(web) != "migrate gone" || len(l.JobOutcomes(web)) > 0 {
		t.Errorf("drift %q, finished %v", l.driftNames(web), l.JobOutcomes(web))
	}
	Inventory{Index: l.Index, Watches: NewWatches(l.Index, nil)}.Forget(web)
	l.Forget(other)
	if len(l.owners) > 0 || len(l.objects) > 0 {
		t.Errorf("the index holds %d owners and %d objects", len(l.owners), len(l.objects))
	}
}

// The next process reads the outcomes of finished Jobs from the record.
func TestRestoreExpected_FinishedJobs(t *testing.T) {
	a, job := applied("a"), jobState("first")
	digest := apply.Digest([]apply.State{a})
	for _, test := range []struct {
		name     string
		observes []apply.State
		done     map[apply.Key]string
		want     bool
	}{
		{"Job deleted", []apply.State{a}, map[apply.Key]string{job.Key: Complete}, true},
		{"Job exists", []apply.State{a, job}, map[apply.Key]string{job.Key: Complete}, true},
		{"Job not in the record", []apply.State{a, job}, nil, false},
		{"another object deleted", []apply.State{job}, map[apply.Key]string{job.Key: Complete}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newRecordingIndex()
			for _, s := range test.observes {
				l.observe(new(s), &healthy)
			}
			if got := l.RestoreExpected(web, Recorded{Digest: digest, Finished: test.done}); got != test.want {
				t.Fatalf("restored: %v, want %v", got, test.want)
			}
			if !test.want {
				return
			}
			l.observeDeletion(new(but(job, 12)), true)
			found := l.Health(web, time.Now())
			if l.driftNames(web) != "" || found.Total != 2 || len(found.Unready) > 0 || len(l.JobOutcomes(web)) != 1 {
				t.Errorf("drift %q, %d objects, not ready %v, finished %v", l.driftNames(web), found.Total, found.Unready, l.JobOutcomes(web))
			}
		})
	}
}

// A Job that finishes after its owner is forgotten leaves nothing behind.
func TestFinishedJob_OfForgottenOwner(t *testing.T) {
	x := newRecordingIndex()
	x.SetReleaseNamespace(web, "default")
	job := jobState("1")
	x.observeJob(&job, done(Complete), false)
	x.Forget(web)
	x.observeJob(&job, done(Complete), false)
	if left := x.owners[web]; left != nil {
		t.Errorf("the index holds %+v of the owner", left)
	}
	// The same custom resource can be served again.
	x.SetReleaseNamespace(web, "default")
	x.observeJob(&job, done(Complete), false)
	if got := x.JobOutcome(web, job.Key, "1"); got != Complete {
		t.Errorf("the outcome is %q", got)
	}
}
