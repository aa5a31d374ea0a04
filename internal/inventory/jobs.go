package inventory

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// Kubernetes deletes a Job with ttlSecondsAfterFinished some time after the Job has
// finished. That is not drift: if the operator recreated the Job, it would run again. If
// a Job is deleted before it has finished, that is drift, as for any other object.

// Outcomes of a finished Job.
const (
	Complete = string(batchv1.JobComplete)
	Failed   = string(batchv1.JobFailed)
)

// expiry describes when a Job with ttlSecondsAfterFinished may be deleted.
type expiry struct {
	// outcome is Complete or Failed, or "" before the Job finishes.
	outcome string
	// earliest is the earliest time at which Kubernetes may delete the Job.
	earliest time.Time
}

// expiryOf returns the expiry of a Job, or nil if it has no ttlSecondsAfterFinished.
func expiryOf(job *batchv1.Job) *expiry {
	if job.Spec.TTLSecondsAfterFinished == nil {
		return nil
	}
	e := &expiry{earliest: job.CreationTimestamp.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second)}
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			e.outcome = string(c.Type)
		}
	}
	return e
}

// finished is a finished Job that has ttlSecondsAfterFinished. The UID is empty if this
// process has never observed the Job.
type finished struct {
	uid     types.UID
	outcome string
}

// observeJob records the outcome of a Job that a watch delivered. If missed is true, the
// Job was deleted while the watch was interrupted: it counts as finished if
// ttlSecondsAfterFinished may have passed.
func (x *Index) observeJob(s *apply.State, e *expiry, missed bool) {
	if e == nil || !s.Managed || s.Owner == "" {
		return
	}
	outcome := e.outcome
	if outcome == "" && missed && !time.Now().Before(e.earliest) {
		outcome = Complete
	}
	if outcome == "" {
		return
	}
	if x.setOutcome(s, outcome) {
		x.onChange(s.Owner)
	}
}

// setOutcome records the outcome of a Job. It reports whether the outcome was not known
// before and the Job counts for the owner in its label.
func (x *Index) setOutcome(job *apply.State, outcome string) (isNew bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, gone := x.forgotten.Get(job.Owner); gone {
		return false
	}
	info := x.owner(job.Owner)
	if info.finished == nil {
		info.finished = map[apply.Key]finished{}
	}
	before := info.finished[job.Key]
	info.finished[job.Key] = finished{uid: job.UID, outcome: outcome}
	return before.uid != job.UID && x.concernsOwner(job)
}

// SetJobOutcome records the outcome of a Job with ttlSecondsAfterFinished that no longer exists.
func (x *Index) SetJobOutcome(owner types.UID, key apply.Key, outcome string) {
	x.setOutcome(&apply.State{Key: key, Owner: owner}, outcome)
}

// JobOutcome returns the outcome of the Job with the given UID. It returns "" for an
// unfinished Job and for a Job without ttlSecondsAfterFinished.
func (x *Index) JobOutcome(owner types.UID, key apply.Key, uid types.UID) string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if job := x.known(owner).finished[key]; job.uid == uid {
		return job.outcome
	}
	return ""
}

// JobOutcomes returns the outcomes of the expected Jobs of an owner that have finished and
// have ttlSecondsAfterFinished.
func (x *Index) JobOutcomes(owner types.UID) map[apply.Key]string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	jobs := x.known(owner).finished
	if len(jobs) == 0 {
		return nil
	}
	outcomes := map[apply.Key]string{}
	for key, job := range jobs {
		if x.expectedBy(owner, key) != nil {
			outcomes[key] = job.outcome
		}
	}
	return outcomes
}

// Expected returns the expected state of an owner's objects, and whether it is known.
func (x *Index) Expected(owner types.UID) ([]apply.State, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	info := x.known(owner)
	var states []apply.State
	for _, key := range info.expected {
		if expected := x.expectedBy(owner, key); expected != nil {
			states = append(states, *expected)
		}
	}
	return states, info.known
}

// hasFinished reports whether an object is a finished Job that Kubernetes has deleted or
// will delete after its ttlSecondsAfterFinished.
func (x *Index) hasFinished(owner types.UID, key apply.Key, live *apply.State) bool {
	job, ok := x.known(owner).finished[key]
	return ok && (live == nil || live.UID == job.uid)
}

// jobHealth returns the health of an object. If the object is a finished Job that no
// longer exists, the health follows from the outcome of the Job.
func (x *Index) jobHealth(owner types.UID, key apply.Key, health Health) Health {
	if x.live(key) != nil || !x.hasFinished(owner, key, nil) {
		return health
	}
	if x.owners[owner].finished[key].outcome == Failed {
		return Health{Failed: true, Reason: "JobFailed", Message: "Job failed; Kubernetes deleted it after ttlSecondsAfterFinished"}
	}
	return healthy
}
