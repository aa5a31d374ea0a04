package e2e

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestTranscripts checks kubectl's output for both kinds.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	web, site := harness.MakePodSet("web").Replicas(2).Obj(), harness.MakeOvhNginx("site").Obj()
	env.Create(web, site)
	for _, cr := range []*unstructured.Unstructured{web, site} {
		name := strings.ToLower(cr.GetKind()) + "/" + cr.GetName()
		if printed := env.Kubectl("wait", "--for=condition=Ready", name, harness.Timeout); !strings.Contains(printed, "condition met") {
			t.Errorf("kubectl wait prints %s", printed)
		}
	}
	waitPods(env, "web", 2)
	env.Kubectl("wait", "podset/web", "--for=jsonpath={.status.replicas}=2", harness.Timeout)
	for _, step := range []struct {
		args []string
		// wantText is the output. White space between words does not matter, and *
		// matches any word.
		wantText []string
	}{
		{[]string{"get", "podset"}, []string{"NAME READY STATUS AGE", "web True Deployed *"}},
		{[]string{"get", "podset", "-o", "wide"}, []string{"NAME READY STATUS AGE REVISION CHART MESSAGE", "web True Deployed * 1 podset-* Revision 1 of release web is deployed"}},
		{[]string{"get", "ovhnginx"}, []string{"NAME READY STATUS AGE", "site True Deployed *"}},
		{[]string{"get", "ovhnginx", "-o", "wide"}, []string{"NAME READY STATUS AGE REVISION CHART MESSAGE", "site True Deployed * 1 ovhnginx-* Revision 1 of release site is deployed"}},
		{[]string{"describe", "podset", "web"}, []string{
			"Name: web", "Spec: Replicas: 2", "Reason: Deployed Status: True Type: Ready", "Reason: InstallSuccessful Status: True Type: Deployed",
			"Deployed Release: Name: web", "Pod Names: web-*-*", "Resources: Ready: 1 Total: 1", "State: Deployed",
			"Normal Installed * * Release web is at revision 1 with chart podset-*",
		}},
		{[]string{"describe", "ovhnginx", "site"}, []string{
			"Name: site", "Reason: Deployed Status: True Type: Ready", "Resources: Ready: 2 Total: 2",
			"Normal Installed * * Release site is at revision 1 with chart ovhnginx-*",
		}},
		{[]string{"explain", "podset.spec"}, []string{"GROUP: app.example.com", "KIND: PodSet", "VERSION: v1alpha1", "FIELD: spec <Object>", "replicas <integer>"}},
		{[]string{"explain", "podset.status.podNames"}, []string{"FIELD: podNames <[]string>"}},
		{[]string{"explain", "ovhnginx.spec"}, []string{"GROUP: tutorials.ovhcloud.com", "KIND: OvhNginx", "port <integer> -required-", "replicaCount <integer> -required-"}},
		{[]string{"explain", "ovhnginx.status.resources.notReady"}, []string{"FIELD: notReady <[]Object>", "message <string>", "reason <string>"}},
		{[]string{"scale", "podset", "web", "--replicas", "3"}, []string{"podset.app.example.com/web scaled"}},
	} {
		printed := strings.Join(strings.Fields(env.Kubectl(step.args...)), " ")
		for _, want := range step.wantText {
			pattern := strings.ReplaceAll(regexp.QuoteMeta(want), `\*`, `\S+`)
			if !regexp.MustCompile(pattern).MatchString(printed) {
				t.Errorf("the output of kubectl %s does not contain %q:\n%s", strings.Join(step.args, " "), want, printed)
			}
		}
	}
	waitPods(env, "web", 3)
	env.WaitRevision(web, 2)
}
