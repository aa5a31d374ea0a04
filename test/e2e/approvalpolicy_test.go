package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// applyApprovalPolicy applies config/approval-policy to the kinds of the test only, because
// other tests share the cluster. The caller must call remove.
func applyApprovalPolicy(env *harness.Env, kind harness.Kind) (remove func()) {
	t := env.T()
	t.Helper()
	overlay := t.TempDir()
	folder, err := filepath.Rel(overlay, harness.Root("config", "approval-policy"))
	if err != nil {
		t.Fatal(err)
	}
	kustomization := fmt.Sprintf(`
resources: [%s]
nameSuffix: -%s
patches:
  - target: {kind: ValidatingAdmissionPolicyBinding}
    patch: |-
      - op: add
        path: /spec/matchResources
        value: {resourceRules: [{apiGroups: [%s], apiVersions: ["*"], resources: ["*"], operations: ["*"]}]}
`, folder, env.Namespace, kind.Group)
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}
	env.Kubectl("apply", "--server-side", "-k", overlay)
	return func() { env.Kubectl("delete", "-k", overlay) }
}

// requiresApprove is a part of the message of the policy.
func requiresApprove(kind harness.Kind) string {
	return "requires the verb approve on " + kind.Resource()
}

// manages runs kubectl as the user, and checks that it is denied with a message or, if
// denied is empty, that it succeeds.
func (c caller) manages(denied string, args ...string) {
	c.t.Helper()
	if err := c.tries(denied, "", args...); err != nil {
		c.t.Error(err)
	}
}

func (c caller) tries(denied, stdin string, args ...string) error {
	c.t.Helper()
	out := c.KubectlWith(stdin, args...)
	if (out.Code != 0) != (denied != "") || !strings.Contains(out.Stderr, denied) {
		return fmt.Errorf("kubectl %s exits with code %d, want the error %q:\n%s%s", strings.Join(args, " "), out.Code, denied, out.Stdout, out.Stderr)
	}
	return nil
}

// With the policy, a user without the verb approve can edit a custom resource, but not
// approve its plan.
func TestApprovalPolicy_RequiresVerb(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	remove := applyApprovalPolicy(l.Env, l.kind)
	defer remove()
	web := l.cr("web", map[string]any{"claims": []any{"a"}})
	l.Create(web, l.cr("other", nil))
	l.WaitReady(web)
	target, other := l.kind.Resource()+"/web", l.kind.Resource()+"/other"
	denied := requiresApprove(l.kind)
	approve := l.kind.On("approve")
	approve.ResourceNames = []string{"web"}
	verbs := l.kind.On("get", "list", "watch", "patch")
	editor, approver := caller{l.NewUser(verbs), t}, caller{l.NewUser(verbs, approve, rule("list", "", "secrets")), t}
	l.Wait("the policy to apply", func(context.Context) error {
		return editor.tries(denied, "", "annotate", target, "chartwright.dev/approve=0123", "--dry-run=server")
	})

	editor.manages("", "patch", target, "--type=merge", "-p", `{"spec": {"claims": null}}`)
	plan := waitApproval(l.Env, web, "delete PersistentVolumeClaim")
	editor.ends(1, []string{"approve", target}, denied)
	editor.manages("", "annotate", target, "example.com/note=one")
	l.ExpectRevisions("web", "1 deployed")
	approver.manages(denied, "annotate", other, "chartwright.dev/approve="+plan.Digest)
	approver.does([]string{"approve", target, "--plan", plan.Digest, "--wait"}, "Revision 2")
	l.WaitGone(harness.Object("v1", "PersistentVolumeClaim", "web-a"))

	var history struct{ Revisions []struct{ Approved string } }
	out := approver.does([]string{"history", target, "-o", "json"})
	if err := json.Unmarshal([]byte(out.Stdout), &history); err != nil || len(history.Revisions) != 2 || history.Revisions[0].Approved != plan.Digest || history.Revisions[1].Approved != "" {
		t.Errorf("revision 2 was approved with plan %s, and the history (error %v) is %s", plan.Digest, err, out.Stdout)
	}

	// While the annotation exists, the editor can edit other fields, and remove it.
	editor.manages("", "patch", target, "--type=merge", "-p", `{"spec": {"message": "two"}}`)
	l.WaitRevision(web, 3)
	editor.manages(denied, "annotate", target, "chartwright.dev/approve=0123", "--overwrite")
	for _, policy := range []string{"delete-data", " delete-data "} {
		editor.manages(denied, "annotate", target, "chartwright.dev/deletion-policy="+policy)
	}
	editor.manages("", "annotate", target, "chartwright.dev/deletion-policy=orphan")
	editor.manages("", "annotate", target, "chartwright.dev/deletion-policy-")
	approver.manages("", "annotate", target, "chartwright.dev/deletion-policy=delete-data", "--dry-run=server")
	editor.manages("", "annotate", target, "chartwright.dev/approve-")
	editor.manages(denied, "annotate", target, "chartwright.dev/approve="+plan.Digest)
}

// definition is the CRD of a cluster-scoped kind.
const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shareds.GROUP}
spec:
  group: GROUP
  scope: Cluster
  names: {kind: Shared, plural: shareds, singular: shared}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// The policy covers new custom resources, and cluster-scoped kinds.
func TestApprovalPolicy_ChecksCreation(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Shared")
	crd := strings.ReplaceAll(definition, "GROUP", kind.Group)
	env.KubectlWith(crd, "apply", "-f", "-")
	defer env.KubectlWith(crd, "delete", "--wait=false", "-f", "-")
	env.WaitServed(kind)
	remove := applyApprovalPolicy(env, kind)
	defer remove()
	author, approver := caller{env.NewUser(), t}, caller{env.NewUser(), t}
	author.Grant(kind.On("create"))
	approver.Grant(kind.On("approve", "create"))
	object := "apiVersion: " + kind.Group + "/v1\nkind: Shared\nmetadata: {name: " + env.Namespace + ", annotations: {NAME: '0123'}}\n"
	approved, plain := strings.ReplaceAll(object, "NAME", "chartwright.dev/approve"), strings.ReplaceAll(object, "NAME", "example.com/note")
	create := []string{"create", "--dry-run=server", "-f", "-"}
	env.Wait("the policy to apply", func(context.Context) error {
		return author.tries(requiresApprove(kind), approved, create...)
	})
	unnamed := strings.ReplaceAll(approved, "{name: ", "{generateName: ")
	for _, err := range []error{
		author.tries("", plain, create...), author.tries(requiresApprove(kind), unnamed, create...),
		approver.tries("", approved, create...), approver.tries("", unnamed, create...),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}
