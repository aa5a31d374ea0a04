package helm

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/guard"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// ErrApprovalRequired marks an action that wrote nothing, because its plan needs an
// approval. The error is an ApprovalError.
var ErrApprovalRequired = errors.New("approval required")

// ApprovalError is the error of an action whose plan is not approved.
type ApprovalError struct {
	Plan guard.Plan
	// command is what users run to approve the plan.
	command string
	// other reports that another plan was approved.
	other bool
}

// Error names the operations that need the approval, and the command to approve them.
func (e *ApprovalError) Error() string {
	note := ""
	if e.other {
		note = fmt.Sprintf("; the annotation %s has the digest of another plan", api.AnnotationApprove)
	}
	return fmt.Sprintf("%v: %s. Nothing was changed. To approve, run: %s%s", ErrApprovalRequired, e.Plan.Summary(), e.command, note)
}

// Unwrap returns ErrApprovalRequired.
func (e *ApprovalError) Unwrap() error { return ErrApprovalRequired }

// approve returns an ApprovalError if the action needs an approval that it does not have.
// It is called before anything is written. The records are those of the release without
// the one that the action repeats. The manifests contain the objects of the new revision,
// and the CRDs are those that the action installs.
func (r *run) approve(action string, records []release.Record, manifests []*engine.File, crds []chartCRD) error {
	plan := guard.Plan{Action: action, Chart: r.Digests.Chart, Values: r.Digests.Values}
	for _, record := range records {
		if record.Status == api.StatusDeployed {
			plan.Base = record.Revision
			break
		}
	}
	guards, always := r.Guard.Mode != watches.GuardOff, r.kube.approvesAll()
	if guards || always && r.Force {
		var err error
		if plan.Operations, err = r.guardedOperations(records, manifests); err != nil {
			return err
		}
	}
	replaced, err := r.replacedCRDs(crds, guards && (r.kube.enforces() || always))
	if err != nil {
		return err
	}
	plan.Operations = append(plan.Operations, replaced...)
	switch digest := plan.Digest(); {
	case len(plan.Operations) == 0 && !always:
		return nil
	case r.plan != nil && (r.kube.enforces() || always):
		r.plan.Approval, r.plan.Approved = &plan, r.Approve == digest
	case !r.kube.enforces() && !always:
		r.Notifier.Warn(api.EventDataAtRisk, plan.Summary()+". The watches file requires no approval")
	case r.Approve != digest:
		return &ApprovalError{Plan: plan, command: r.approveCommand(digest), other: r.Approve != ""}
	default:
		r.driver.Stamp.Approved = digest
	}
	for _, operation := range plan.Operations {
		r.kube.approved[operation.Key] = operation.UID
	}
	return nil
}

// approveRollback is approve for a rollback.
func (r *run) approveRollback(target release.Record, records []release.Record) error {
	if r.Automatic || r.Guard.Mode == watches.GuardOff && !r.kube.approvesAll() {
		return nil
	}
	rls, err := r.driver.ReadAhead(target.Secret)
	if errors.Is(err, engine.ErrReleaseNotFound) {
		// Helm reads the record again, and reports the error.
		return nil
	}
	if err != nil {
		return err
	}
	return r.approve(fmt.Sprintf("rollback to revision %d", target.Revision), records, []*engine.File{{Name: "manifest", Data: []byte(rls.Manifest)}}, nil)
}

// approveCommand returns the command that approves a plan.
func (r *run) approveCommand(digest string) string {
	namespace := ""
	if r.Owner.Namespace != "" {
		namespace = " -n " + r.Owner.Namespace
	}
	kind := strings.ToLower(r.Owner.GVK.Kind)
	if r.Owner.GVK.Group != "" {
		kind += "." + r.Owner.GVK.Group
	}
	return fmt.Sprintf("kubectl chartwright approve %s/%s%s --plan %s", kind, r.Owner.Name, namespace, digest)
}

// manifestsOf returns the rendered templates that contain objects.
func manifestsOf(rendered *engine.Chart) []*engine.File {
	var manifests []*engine.File
	for _, template := range rendered.Templates {
		name := path.Base(template.Name)
		if !strings.HasPrefix(name, "_") && name != "NOTES.txt" {
			manifests = append(manifests, template)
		}
	}
	return manifests
}
