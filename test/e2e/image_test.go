package e2e

import (
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// The image has no base image. The operator must need no file except its own
// binary: to authenticate, to serve the embedded kinds, to correct drift and to
// delete.
func TestImage_OperatorNeedsNoOtherFile(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	env.NewOperator(harness.Options{EmptyRoot: true}).Start()
	web := harness.MakePodSet("web").Replicas(2).Obj()
	env.Create(web)
	env.WaitReady(web)
	pods := harness.Object("apps/v1", "Deployment", "web")
	env.Kubectl("delete", "deployment", "web")
	env.Kubectl("wait", "deployment/web", "--for=create", harness.Timeout)
	env.WaitReady(web)
	env.ExpectRevisions("web", "1 deployed")
	env.Kubectl("delete", "podset", "web", harness.Timeout)
	env.WaitGone(pods)
}
