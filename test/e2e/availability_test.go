package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// replicas are two processes of one operator. Each has its own account, so that
// the audit log distinguishes them.
type replicas struct {
	*harness.Env
	kind            harness.Kind
	leader, standby *harness.Operator
}

// newReplicas starts the leader, then the standby.
func newReplicas(t *testing.T, env *harness.Env, leads, stands harness.Options) replicas {
	t.Helper()
	kind := env.NewKind("Hooks")
	env.InstallCRD(kind)
	watches := env.Watches(harness.MakeEntry(kind, harness.Chart("hooks")))
	start := func(options harness.Options) *harness.Operator {
		options.Watches, options.Account = watches, env.NewAccount()
		options.Args = []string{"--leader-elect", "--leader-election-namespace", harness.SystemNamespace}
		return env.NewOperator(options).Start()
	}
	r := replicas{Env: env, kind: kind, leader: start(leads)}
	env.Wait("a leader", func(context.Context) error {
		if holderOfLease(env) == "" {
			return errors.New("the lease has no holder")
		}
		return nil
	})
	r.standby = start(stands)
	return r
}

// holderOfLease returns the holder of the lease, or "".
func holderOfLease(env *harness.Env) string {
	env.T().Helper()
	lease, err := env.Typed.CoordinationV1().Leases(harness.SystemNamespace).Get(env.T().Context(), env.Namespace+".chartwright.dev", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// waitInstalled waits until the given number of releases exist and each has
// exactly one revision, which is deployed.
func (r replicas) waitInstalled(count int) {
	r.T().Helper()
	r.Wait(fmt.Sprintf("%d releases", count), func(ctx context.Context) error {
		list, err := r.Typed.CoreV1().Secrets(r.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "owner=helm"})
		if err != nil {
			return err
		}
		deployed := 0
		for i := range list.Items {
			labels := list.Items[i].Labels
			if labels["version"] != "1" {
				r.T().Errorf("release %s has a revision %s", labels["name"], labels["version"])
			}
			if labels["status"] == api.StatusDeployed {
				deployed++
			}
		}
		if deployed != count || len(list.Items) != count {
			return fmt.Errorf("%d of %d revisions are deployed", deployed, len(list.Items))
		}
		return nil
	})
}

// tookOver returns the time of the leader's last write to the lease, and of the
// standby's first other write.
func (r replicas) tookOver(leader, standby *harness.Audit) (free, first time.Time) {
	r.T().Helper()
	r.Wait("the standby to act", func(context.Context) error {
		if len(standby.Writes("")) == 0 {
			return errors.New("no write yet")
		}
		return nil
	})
	_, leases := leader.WatchesAndLeases()
	for _, request := range leases {
		if request.Write() && request.ResponseStatus.Code == http.StatusOK {
			free = request.StageTimestamp.Time
		}
	}
	return free, standby.Writes("")[0].RequestReceivedTimestamp.Time
}

// A leader is killed during a hundred installs. The standby finishes them, and
// does not repeat installs that the leader finished.
func TestLeader_KilledDuringManyInstalls(t *testing.T) {
	t.Parallel()
	const installs, killedAt = 100, 300
	env := harness.New(t)
	proxy := env.NewProxy()
	r := newReplicas(t, env, harness.Options{Proxy: proxy}, harness.Options{})
	leader, standby := env.Audit(r.leader.User()), env.Audit(r.standby.User())
	trap := r.leader.KillAtWrite(killedAt, harness.AfterWrite)
	for i := range installs {
		cr := harness.MakeCR(r.kind, fmt.Sprintf("web-%d", i))
		if i%10 == 0 {
			cr = cr.Set("hooks.post-install", map[string]any{})
		}
		env.Create(cr.Obj())
	}
	env.Wait("the leader to be killed", func(context.Context) error {
		if _, sprung := trap.Fired(); !sprung {
			return fmt.Errorf("%d writes so far", len(trap.Writes()))
		}
		return nil
	})
	free, first := r.tookOver(leader, standby)
	r.waitInstalled(installs)
	env.Wait("all to be ready", func(ctx context.Context) error {
		list, err := env.At(harness.MakeCR(r.kind, "web").Obj()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			status, err := harness.StatusOf(&list.Items[i])
			if err != nil {
				return err
			}
			if c := harness.Condition(status, "Ready"); c != nil && c.Status == metav1.ConditionTrue {
				ready++
			}
		}
		if ready != installs {
			return fmt.Errorf("%d are", ready)
		}
		return nil
	})
	// An install without a hook updates its record once, at the end. The API server can complete
	// the last requests of the leader after its death.
	done, inProgress := releasesOf(leader.Writes(""), "update"), map[string]bool{}
	maps.DeleteFunc(done, func(release string, _ int) bool { return strings.HasSuffix(release, "0") })
	for release := range releasesOf(leader.Writes(""), "create") {
		if done[release] == 0 {
			inProgress[release] = true
		}
	}
	if len(done) == 0 || len(inProgress) == 0 || len(done)+len(inProgress) == installs {
		t.Fatalf("%d installs were done and %d in progress: the leader was killed too early or too late for this test", len(done), len(inProgress))
	}
	t.Logf("%d installs were done and %d in progress; the standby acted %s after the leader renewed the lease", len(done), len(inProgress), first.Sub(free))
	expectCreatedOnce(t, inProgress, append(leader.Writes(""), standby.Writes("")...), installs)
}

// releasesOf returns how often the first record of each release was written by a verb.
func releasesOf(writes []harness.Request, verb string) map[string]int {
	written := map[string]int{}
	for _, request := range writes {
		if request.ObjectRef.Resource != "secrets" || request.Verb != verb || request.ResponseStatus.Code >= http.StatusMultipleChoices {
			continue
		}
		if release, ok := strings.CutPrefix(request.ObjectRef.Name, "sh.helm.release.v1."); ok {
			written[strings.TrimSuffix(release, ".v1")]++
		}
	}
	return written
}

// expectCreatedOnce checks that every record, every ConfigMap and every hook
// was created exactly once. An interrupted install starts again, so its record
// and its hook are created twice, but its ConfigMap already existed.
func expectCreatedOnce(t *testing.T, inProgress map[string]bool, writes []harness.Request, installs int) {
	t.Helper()
	made := map[string]map[string]int{"configmaps": {}, "jobs": {}}
	records := releasesOf(writes, "create")
	for _, request := range writes {
		if names, counted := made[request.ObjectRef.Resource]; counted && request.ResponseStatus.Code == http.StatusCreated {
			names[request.ObjectRef.Name]++
		}
	}
	for i := range installs {
		release := fmt.Sprintf("web-%d", i)
		again := 1
		if inProgress[release] {
			again = 2
		}
		// The leader was killed before it received the last responses.
		if n := made["configmaps"][release]; n > 1 || n == 0 && !inProgress[release] {
			t.Errorf("ConfigMap %s was created %d times", release, n)
		}
		if n := records[release]; n < 1 || n > again {
			t.Errorf("the record of %s was created %d times", release, n)
		}
		if n := made["jobs"][release+"-post-install"]; i%10 == 0 && (n < 1 || n > again) || i%10 != 0 && n != 0 {
			t.Errorf("the hook of %s was created %d times", release, n)
		}
	}
}

// A standby only reads its lease and writes nothing, but its caches are filled.
// A leader that receives SIGTERM, even during an action, releases the lease, and the
// standby acts without reading anything first.
func TestStandby_TakesOverWithFilledCaches(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	r := newReplicas(t, env, harness.Options{}, harness.Options{})
	leader, standby := env.Audit(r.leader.User()), env.Audit(r.standby.User())
	const releases = 10
	for i := range releases {
		env.Create(harness.MakeCR(r.kind, fmt.Sprintf("web-%d", i)).Obj())
	}
	r.waitInstalled(releases)
	node := newNodeLabel(env)
	late := harness.MakeCR(r.kind, "late").Set("hooks.pre-install.node", node).Obj()
	env.Create(late)
	waitRunningHook(env, "late-pre-install")
	env.WaitCondition(late, "Ready", metav1.ConditionUnknown, "Installing")

	if requests := standby.Requests(); len(requests) > 0 {
		t.Errorf("the standby requested %v", requests)
	}
	_, leases := standby.WatchesAndLeases()
	for _, request := range leases {
		if request.Verb != "get" {
			t.Errorf("the standby requested %s", request)
		}
	}

	holder, stopped := holderOfLease(env), time.Now()
	r.leader.Stop()
	if holderOfLease(env) == holder {
		t.Error("the lease was not released")
	}
	free, first := r.tookOver(leader, standby)
	t.Logf("the lease was free %s after SIGTERM, and the standby acted %s after that", free.Sub(stopped), first.Sub(free))

	labelNode(env, node)
	env.WaitReady(late)
	env.ExpectRevisions("late", "1 deployed")
	for _, request := range standby.Requests() {
		switch {
		case request.Verb == "list" && request.ObjectRef.Resource != "events" && request.ObjectRef.Resource != "pods":
			t.Errorf("the standby's caches were not filled: it requested %s", request)
		case request.Write() && request.ObjectRef.Resource == "configmaps" && request.ObjectRef.Name != "late":
			t.Errorf("the standby wrote %s, which the leader had created", request)
		}
	}
}

// A leader is frozen until another replica takes over. When it continues, it
// exits without reverting the other replica's work.
func TestLeader_FrozenExitsAfterTakeover(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	r := newReplicas(t, env, harness.Options{}, harness.Options{})
	holder := holderOfLease(env)
	node := newNodeLabel(env)
	web := harness.MakeCR(r.kind, "web").Set("hooks.pre-install.node", node).Obj()
	env.Create(web)
	first := waitRunningHook(env, "web-pre-install")
	var audit *harness.Audit
	err := r.leader.WhileFrozen(func() {
		env.Wait("the standby to take over", func(context.Context) error {
			if now := holderOfLease(env); now == holder {
				return errors.New("the lease is still held by " + now)
			}
			return nil
		})
		waitRecreated(env, "web-pre-install", first)
		labelNode(env, node)
		env.WaitReady(web)
		audit = env.Audit(r.leader.User())
	})
	if err != nil {
		t.Fatal(err)
	}
	env.Wait("the first leader to end", func(context.Context) error {
		if r.leader.Running() {
			return errors.New("it is still running")
		}
		return nil
	})
	for _, request := range audit.Writes("") {
		if request.ResponseStatus.Code < http.StatusBadRequest && request.ObjectRef.Resource != "events" {
			t.Errorf("the first leader wrote %s: %d", request, request.ResponseStatus.Code)
		}
	}
	env.ExpectRevisions("web", "1 deployed")
	env.WaitReady(web)
	env.SetSpec(harness.MakeCR(r.kind, "web").Set("message", "two").Obj())
	env.WaitRevision(web, 2)
}

// waitRecreated waits until a hook's Job has another UID than first.
func waitRecreated(env *harness.Env, job string, first any) {
	env.T().Helper()
	env.Wait("hook "+job+" to be recreated", func(ctx context.Context) error {
		live, err := env.Typed.BatchV1().Jobs(env.Namespace).Get(ctx, job, metav1.GetOptions{})
		if err == nil && live.UID == first {
			err = errors.New("it is still the first Job")
		}
		return err
	})
}
