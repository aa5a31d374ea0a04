package plugin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
)

func newApprove(s *session) *cobra.Command {
	plan := ""
	var w waiting
	cmd := s.onResource(&cobra.Command{
		Use:   "approve KIND/NAME",
		Short: "Approve the change that is waiting for approval",
		Long: `Approve the change that is waiting for approval: for example an upgrade that deletes
or recreates resources with data, any upgrade or rollback of a kind with
approval: Always, or the deletion of a custom resource with its data.
The command prints the plan and approves it. With --plan, it approves only the plan
that you have reviewed. A changed plan needs another approval.

Required permissions: get and patch on the custom resource, watch for --wait, and
approve if the cluster has the policy of config/approval-policy.`,
		Example: example("kubectl chartwright approve podset/web", "kubectl chartwright approve podset/web --plan 3f6c0a9d1e5b7284 --wait"),
	}, 0, func(ctx context.Context, t target, cr *unstructured.Unstructured, _ []string) error {
		r, err := approval(t, cr, plan)
		if err != nil {
			return err
		}
		return s.send(ctx, t, cr, r, w)
	})
	cmd.Flags().StringVar(&plan, "plan", "", "digest of the plan to approve (default: the plan that waits)")
	w.addFlags(cmd)
	return cmd
}

// approval returns the request that approves the plan that waits.
func approval(t target, cr *unstructured.Unstructured, digest string) (request, error) {
	waits := statusOf(cr).Plan
	switch {
	case waits == nil:
		return request{}, fmt.Errorf("%s: no plan waits for an approval", t)
	case digest != "" && digest != waits.Digest:
		return request{}, fmt.Errorf("%s: plan %s does not wait for an approval; the plan that waits is %s: %s", t, digest, waits.Digest, waits.Summary)
	}
	return request{
		verb: "approve", annotation: api.AnnotationApprove, value: waits.Digest,
		purpose: "to approve the plan", message: fmt.Sprintf("plan %s approved: %s", waits.Digest, waits.Summary), judge: judgeApprove,
		deletes: cr.GetDeletionTimestamp() != nil,
	}, nil
}

// judgeApprove waits until the operator has carried out the plan.
func judgeApprove(value string, cr *unstructured.Unstructured, status api.Status) verdict {
	switch {
	case status.Plan == nil && cr.GetDeletionTimestamp() != nil:
		return verdict{}
	case status.Plan == nil:
		return settled(status)
	case status.Plan.Digest != value:
		return verdict{outcomeFailed, fmt.Sprintf("the plan has changed: plan %s waits for an approval: %s", status.Plan.Digest, status.Plan.Summary)}
	case isPaused(cr):
		return verdict{outcomeFailed, `reconciliation is paused; the approval takes effect after "` + commandLine + ` resume"`}
	default:
		return verdict{}
	}
}
