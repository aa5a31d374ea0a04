package e2e

import (
	"testing"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// Prerequisites of the sections about read-only commands.

// statusDesk has a PodSet whose second revision requests nodes that do not
// exist, from the second command on, and a user with all read permissions.
func statusDesk(t *testing.T) desk {
	env := harness.NewInstalled(t)
	web := harness.MakePodSet("web").Replicas(2)
	env.Create(web.Obj())
	env.WaitReady(web.Obj())
	waitPods(env, "web", 2)
	user := env.NewUser(harness.PodSet.On("get"), rule("get", "", "secrets", "pods"), rule("list", "", "pods", "events"),
		rule("get", "apps", "deployments"), rule("list", "apps", "replicasets"))
	return desk{env: env, kind: harness.PodSet, called: "podset", user: user, after: map[int]func(){
		1: func() {
			env.SetSpec(web.Set("nodeSelector.disk", "ssd").Obj())
			waitNotReady(env, web.Obj(), api.ReasonProgressing, "Unschedulable")
		},
	}}
}

// historyDesk has a PodSet whose third revision was rolled back.
func historyDesk(t *testing.T) desk {
	d := podSetDesk(t)
	web := harness.MakePodSet("web").Obj()
	d.env.Annotate(web, "rollback-to", "1")
	d.env.WaitStatus(web, "held", func(status api.Status) error { return heldAt(status, 4, 1) })
	d.user = d.env.NewUser(harness.PodSet.On("get"), rule("list", "", "secrets"))
	return d
}

// diffDesk is podSetDesk with a user who can also read the records.
func diffDesk(t *testing.T) desk {
	d := podSetDesk(t)
	d.user = d.env.NewUser(harness.PodSet.On("get"), rule("get", "", "secrets"))
	return d
}
