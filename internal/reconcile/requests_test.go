package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// asking reads annotations, given as keys without our prefix and values.
func asking(pairs ...string) func(*snapshot) {
	return func(v *snapshot) {
		from := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			from[api.Domain+"/"+pairs[i]] = pairs[i+1]
		}
		v.Requests = annotations.Parse(from)
	}
}

// marked puts marks on the newest revision, which we wrote.
func marked(m release.Marks) func(*snapshot) {
	return func(v *snapshot) { v.Marks, v.History[0].Marks = m, m }
}

// written makes every revision one that we wrote, for Written cannot be set.
func written(v *snapshot) {
	for i, record := range v.History {
		read, _ := release.FromMeta(secretOf(record))
		v.History[i] = read
	}
}

func withSpec(spec any) func(*snapshot) { return func(v *snapshot) { v.CR.Object["spec"] = spec } }

const (
	dep, sup, fai = api.StatusDeployed, api.StatusSuperseded, api.StatusFailed
)

func TestAvailable(t *testing.T) {
	heldAt := func(revision int) func(*snapshot) {
		return marked(release.Marks{Held: &release.Held{Revision: revision}})
	}
	for _, test := range []struct {
		name  string
		v     *snapshot
		asked string
		want  int
	}{
		{"a revision that was deployed", viewOf([]string{dep, sup, sup}), "1", 1},
		{"the one that runs", viewOf([]string{dep, sup}), "2", 2},
		{"one that failed", viewOf([]string{dep, fai, sup}), "2", 0},
		{"one that is not stored", viewOf([]string{dep, sup}), "7", 0},
		{"one of no release", viewOf(nil), "1", 0},
		{"the one before", viewOf([]string{dep, sup, sup}), "previous", 2},
		{"the one before, past failed ones", viewOf([]string{dep, fai, fai, sup}), "previous", 1},
		{"the one before what failed is what still runs", viewOf([]string{fai, dep, sup}), "previous", 2},
		{"the one before the first", viewOf([]string{dep}), "previous", 0},
		{"the one before, which failed", viewOf([]string{dep, fai}), "previous", 0},
		{"the one before, of no release", viewOf(nil), "previous", 0},
		// Revision 4 is revision 2 again.
		{"the one before the held one", viewOf([]string{dep, sup, sup, sup}, heldAt(2)), "previous", 1},
		{"the one before the first, which is held", viewOf([]string{dep, sup, sup, sup}, heldAt(1)), "previous", 0},
		{"a revision after the held one", viewOf([]string{dep, sup, sup, sup}, heldAt(2)), "3", 3},
		{"none", viewOf([]string{dep, sup}), "none", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			asking("rollback-to", test.asked)(test.v)
			if got := available(test.v, *test.v.Requests.Rollback); got != test.want {
				t.Errorf("revision %d, want %d", got, test.want)
			}
		})
	}
}

func TestLastGood(t *testing.T) {
	for _, test := range []struct {
		name     string
		statuses []string
		want     int
	}{
		{"no release", nil, 0},
		{"the first install", []string{fai}, 0},
		{"what ran before the upgrade that failed", []string{fai, dep, sup}, 2},
		{"past what failed before", []string{fai, fai, sup}, 1},
		{"nothing was ever deployed", []string{fai, fai}, 0},
		{"what runs is not before itself", []string{dep}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := (&Reconciler{}).lastGood(viewOf(test.statuses)); got != test.want {
				t.Errorf("revision %d, want %d", got, test.want)
			}
		})
	}
}

func TestUntidy(t *testing.T) {
	for _, test := range []struct {
		name     string
		statuses []string
		want     bool
	}{
		{"no release", nil, false},
		{"one is deployed", []string{dep, sup, sup}, false},
		{"one is deployed, below one that failed", []string{fai, dep, sup}, false},
		{"none is deployed", []string{fai, sup, sup}, false},
		{"two are deployed", []string{dep, dep}, true},
		{"two are deployed, and another between them failed", []string{dep, fai, dep}, true},
		{"two are deployed, below one that failed", []string{fai, dep, sup, dep}, true},
		{"the newest is under way", []string{api.StatusPendingUpgrade, dep}, false},
		{"one that was overtaken is under way", []string{dep, api.StatusPendingUpgrade, sup}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := viewOf(test.statuses, written)
			if got := untidy(v.History); got != test.want {
				t.Errorf("untidy: %v, want %v", got, test.want)
			}
			(&Reconciler{}).observeRequests(v)
			if got := v.Observation.Inconsistent; got != test.want {
				t.Errorf("it is observed as untidy: %v, want %v", got, test.want)
			}
		})
	}
}

// TestWhatIsReachedIsForgotten: what a pass finds in place has not
// failed, whatever became of the answer to a write.
func TestWhatIsReachedIsForgotten(t *testing.T) {
	held := func(v *snapshot) {
		v.Observation.Newest.Digest = "older"
		marked(release.Marks{Rollback: status.Token("1"), Held: &release.Held{Revision: 1, From: 2, Spec: specOf(&Reconciler{}, v)}})(v)
	}
	for _, test := range []struct {
		name string
		v    *snapshot
		// aim is what failed.
		target    plan.TargetKey
		forgotten bool
	}{
		{"what is desired is deployed", viewOf([]string{dep, sup}), ofSpec, true},
		{"what is desired is deployed, and something else failed", viewOf([]string{dep, sup}), plan.TargetKey{Digest: "older"}, false},
		{"what is desired has failed", viewOf([]string{fai, dep}), ofSpec, false},
		{"what is desired is deployed, and so is another", viewOf([]string{dep, dep}), ofSpec, false},
		{"what is desired is deployed, and a person asks for another", viewOf([]string{dep, sup}, asking("rollback-to", "1")), plan.TargetKey{Goal: plan.GoalRevision, Revision: 1, Request: status.Token("1")}, false},
		{"what is desired is deployed, and a person says try again", viewOf([]string{dep, sup}, asking("reconcile-requested-at", "now")), plan.TargetKey{Goal: plan.GoalSpec, Digest: wanted, RetryToken: status.Token("now")}, true},
		{"what is desired is deployed, and never became ready", viewOf([]string{dep, sup}, func(v *snapshot) { v.Observation.Overdue = true }), ofSpec, false},
		{"what is desired is deployed, and it goes", viewOf([]string{dep, sup}, beingDeleted), plan.TargetKey{Goal: plan.GoalGone}, false},
		{"what is held is deployed", viewOf([]string{dep, sup}, held), plan.TargetKey{Goal: plan.GoalRevision, Revision: 1, Request: status.Token("1")}, true},
		{"what is held is deployed, and an upgrade failed before", viewOf([]string{dep, sup}, held), ofSpec, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &Reconciler{}
			written(test.v)
			r.memory.put("", false, status.Failure{Failure: plan.Failure{Target: test.target}})
			r.observeRequests(test.v)
			r.observeFailures(test.v)
			if forgotten := test.v.Failure == nil; forgotten != test.v.reached || forgotten != test.forgotten {
				t.Errorf("it is forgotten: %v, want %v", forgotten, test.forgotten)
			}
		})
	}
}

// scaled serves a kind whose number of pods is scaled.
func scaled(path string) *Reconciler {
	scale := &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: path}
	return &Reconciler{Kind: catalog.Kind{Watch: watches.Watch{Subresources: watches.Subresources{Scale: scale}}}}
}

func TestSpecDigest(t *testing.T) {
	digest := func(r *Reconciler, spec any) string { return specOf(r, viewOf(nil, withSpec(spec))) }
	plain, top, deep := &Reconciler{}, scaled(".spec.replicas"), scaled(".spec.web.replicas")
	type spec = map[string]any
	for _, test := range []struct {
		name     string
		r        *Reconciler
		one, two any
		equal    bool
	}{
		{"the same", plain, spec{"a": int64(1)}, spec{"a": int64(1)}, true},
		{"an edit", plain, spec{"a": int64(1)}, spec{"a": int64(2)}, false},
		{"nothing, in two ways", plain, nil, spec{}, true},
		{"replicas of a kind without scale", plain, spec{"replicas": int64(1)}, spec{"replicas": int64(2)}, false},
		{"replicas", top, spec{"replicas": int64(1), "a": "b"}, spec{"replicas": int64(2), "a": "b"}, true},
		{"replicas that were not there", top, spec{"a": "b"}, spec{"replicas": int64(2), "a": "b"}, true},
		{"an edit beside replicas", top, spec{"replicas": int64(1), "a": "b"}, spec{"replicas": int64(1), "a": "c"}, false},
		{"replicas of something else", deep, spec{"replicas": int64(1)}, spec{"replicas": int64(2)}, false},
		{"replicas further down", deep, spec{"web": spec{"replicas": int64(1), "a": "b"}}, spec{"web": spec{"replicas": int64(2), "a": "b"}}, true},
		{"replicas further down that were not there", deep, spec{"a": "b"}, spec{"a": "b", "web": spec{"replicas": int64(2)}}, true},
		{"an edit beside replicas further down", deep, spec{"web": spec{"replicas": int64(1), "a": "b"}}, spec{"web": spec{"replicas": int64(1), "a": "c"}}, false},
		{"what holds no replicas", deep, spec{"web": "x"}, spec{"web": "y"}, false},
		{"no object", plain, "x", "x", true},
		{"no object, and another", plain, "x", "y", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			one, two := digest(test.r, test.one), digest(test.r, test.two)
			if (one == two) != test.equal || len(one) != status.TokenLength {
				t.Errorf("%s and %s, equal: %v, want %v", one, two, one == two, test.equal)
			}
		})
	}
	v := viewOf(nil, withSpec(map[string]any{"web": map[string]any{"replicas": int64(1)}}))
	before := v.CR.DeepCopy()
	specOf(deep, v)
	if diff := cmp.Diff(before.Object, v.CR.Object); diff != "" {
		t.Errorf("the custom resource has changed (-before +after):\n%s", diff)
	}
}

func TestObserveRequests(t *testing.T) {
	r := &Reconciler{}
	followed := specOf(r, viewOf(nil))
	held := func(spec string) release.Marks {
		return release.Marks{Rollback: status.Token("1"), Held: &release.Held{Revision: 1, From: 2, Spec: spec}}
	}
	observed := func(v *snapshot) plan.Observation {
		written(v)
		v.Marks, v.Observation = release.Marks{}, plan.Observation{Adoptable: v.Observation.Adoptable}
		r.observeRequests(v)
		return v.Observation
	}
	upgraded := []string{dep, sup}
	adoptable := func(v *snapshot) { v.Observation.Adoptable = true }
	for _, test := range []struct {
		name string
		v    *snapshot
		want plan.Observation
	}{
		{"nothing", viewOf(upgraded), plan.Observation{}},
		{"a pause", viewOf(upgraded, asking("pause", "true")), plan.Observation{Paused: true}},
		{"a pause of everything", viewOf(upgraded, asking("pause", "including-deletion")), plan.Observation{Paused: true, PausedDeletion: true}},
		{"that it stays", viewOf(upgraded, asking("deletion-policy", "orphan")), plan.Observation{Orphan: true, RetryToken: status.Token("deletion-policy")}},
		{"a rollback", viewOf(upgraded, asking("rollback-to", "1")), plan.Observation{Request: &plan.Request{Token: status.Token("1"), Revision: 1}}},
		{"a rollback that is not to be had", viewOf(upgraded, asking("rollback-to", "7")), plan.Observation{Request: &plan.Request{Token: status.Token("7")}}},
		{"a rollback that was answered", viewOf(upgraded, asking("rollback-to", "1"), marked(release.Marks{Rollback: status.Token("1")})), plan.Observation{}},
		{"a rollback, once more", viewOf(upgraded, asking("rollback-to", "1@x"), marked(release.Marks{Rollback: status.Token("1")})), plan.Observation{Request: &plan.Request{Token: status.Token("1@x"), Revision: 1}}},
		{"no rollback that could be met", viewOf(upgraded, asking("rollback-to", "latest")), plan.Observation{}},
		{"the end of a hold", viewOf(upgraded, asking("rollback-to", "none"), marked(held(followed))), plan.Observation{
			Request: &plan.Request{Token: status.Token("none"), Resume: true}, Held: &plan.Held{Revision: 1, Token: status.Token("1")},
		}},
		{"a hold, when its annotation is gone", viewOf(upgraded, marked(held(followed))), plan.Observation{Held: &plan.Held{Revision: 1, Token: status.Token("1")}}},
		{"a hold, and another spec", viewOf(upgraded, marked(held("another"))), plan.Observation{Held: &plan.Held{Revision: 1, Token: status.Token("1"), Expired: true}}},
		{"a hold by failure", viewOf(upgraded, marked(release.Marks{Held: &release.Held{Revision: 1, Spec: followed, ByFailure: true}})), plan.Observation{Held: &plan.Held{Revision: 1, ByFailure: true}}},
		{"a verification", viewOf(upgraded, asking("reconcile-requested-at", "now")), plan.Observation{VerifyRequested: true, RetryToken: status.Token("now")}},
		{"a verification that was answered", viewOf(upgraded, asking("reconcile-requested-at", "now"), marked(release.Marks{Reconcile: status.Token("now")})), plan.Observation{RetryToken: status.Token("now")}},
		{"force", viewOf(upgraded, asking("force", "now")), plan.Observation{VerifyRequested: true, RetryToken: status.Token("now")}},
		{"force that was used", viewOf(upgraded, asking("force", "now"), marked(release.Marks{Force: status.Token("now")})), plan.Observation{RetryToken: status.Token("now")}},
		{"another way to uninstall", viewOf(upgraded, asking("uninstall-disable-hooks", "true")), plan.Observation{RetryToken: status.Token("uninstall-disable-hooks")}},
		{"the usual way to uninstall", viewOf(upgraded, asking("uninstall-disable-hooks", "false")), plan.Observation{}},
		{"tests", viewOf(upgraded, asking("test", "now")), plan.Observation{TestRequested: true}},
		{"tests that were run", viewOf(upgraded, asking("test", "now"), marked(release.Marks{Test: status.Token("now")})), plan.Observation{}},
		{"marks of what is not ours yet", viewOf(upgraded, adoptable, marked(held(followed))), plan.Observation{Adoptable: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want.LastGood = 1
			if diff := cmp.Diff(test.want, observed(test.v)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
