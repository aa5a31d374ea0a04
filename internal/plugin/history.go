package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/metadata"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// historyOutput is the output of history with -o json and yaml.
type historyOutput struct {
	Release   string `json:"release"`
	Namespace string `json:"namespace"`
	// Revisions are sorted, newest first.
	Revisions []revisionOutput `json:"revisions"`
	// Missing lists parts that are not shown because a permission is missing.
	Missing []string `json:"missing,omitempty"`
}

// revisionOutput is one stored revision.
type revisionOutput struct {
	Revision     int64        `json:"revision"`
	LastDeployed *metav1.Time `json:"lastDeployed,omitempty"`
	// Status is that of Helm, such as deployed or superseded.
	Status string `json:"status"`
	// Chart is "<name>-<version>", or only the version if the name is not known.
	Chart       string `json:"chart,omitempty"`
	AppVersion  string `json:"appVersion,omitempty"`
	Description string `json:"description,omitempty"`
	// Held: a rollback to this revision is held.
	Held bool `json:"held,omitempty"`
	// NeverReady: its objects were not ready before the next revision was deployed.
	NeverReady bool `json:"neverReady,omitempty"`
	// Approved is the digest of the plan that was approved for the revision. Without the
	// release records, only the description contains it.
	Approved string `json:"approved,omitempty"`
	// By is "helm" if the helm CLI created the revision, and empty for the operator.
	By string `json:"by,omitempty"`
	// RollbackTo: a rollback to this revision is possible. Previous: a rollback without
	// REVISION selects it.
	RollbackTo bool `json:"rollbackTo"`
	Previous   bool `json:"previous,omitempty"`
}

func newHistory(s *session) *cobra.Command {
	return s.onResource(&cobra.Command{
		Use:   "history KIND/NAME",
		Short: "Show the revisions of a release",
		Long: `Show the stored revisions of a release, newest first. The column ROLLBACK says
to which revisions a rollback is possible; "previous" is the default of rollback:
the newest that became ready before the newest change, even if it still runs.

Required permissions: get on the custom resource, and list on Secrets in the
namespace of the release. Without the latter, the command shows the newest ten
revisions from the status, but not which of them became ready.`,
		Example: example("kubectl chartwright history podset/web", "kubectl chartwright history podset/web -o json"),
	}, 0, func(ctx context.Context, t target, cr *unstructured.Unstructured, _ []string) error {
		status := statusOf(cr)
		if status.Release == nil {
			return fmt.Errorf("%s has no release yet", t)
		}
		out, err := s.revisions(ctx, status)
		if err != nil {
			return err
		}
		return s.printWithNotes(out.Missing, out, func() string { return historyTable(out.Revisions, time.Now()) })
	})
}

// revisions returns the revisions from the release records or, if the user cannot list
// them, from the status.
func (s *session) revisions(ctx context.Context, status api.Status) (historyOutput, error) {
	out := historyOutput{Release: status.Release.Name, Namespace: status.Release.Namespace}
	history, err := s.history(ctx, status.Release)
	switch {
	case isMissingPermission(err):
		out.Missing = []string{err.Error() + ". Without it, the output does not show which revisions became ready"}
		out.Revisions = fromStatus(status)
	case err != nil:
		return out, err
	default:
		out.Revisions = fromRecords(history, status.Previous)
	}
	return out, nil
}

// fromRecords reads revisions from the metadata of their records, newest first. previous is
// api.Status.Previous.
func fromRecords(history []release.Record, previous int64) []revisionOutput {
	revisions := make([]revisionOutput, len(history))
	held := release.MarksOf(history).Held
	previous = cmp.Or(previous, int64(release.Previous(history, false)))
	for i := range history {
		r := &history[i]
		at := r.Deployed
		if at.IsZero() {
			at = metav1.NewTime(r.Changed)
		}
		revisions[i] = revisionOutput{
			Revision: int64(r.Revision), LastDeployed: &at, Status: r.Status, AppVersion: r.AppVersion, Description: r.Description.Description,
			Held: held != nil && held.Revision == r.Revision, NeverReady: r.NeverReady, Approved: r.Approved,
			// The newest revision is already deployed.
			RollbackTo: i > 0 && r.WasDeployed() || int64(r.Revision) == previous, Previous: int64(r.Revision) == previous,
		}
		if r.Chart != "" {
			revisions[i].Chart = r.Chart + "-" + r.ChartVersion
		}
		if !r.Written() {
			revisions[i].By = release.OwnerHelm
		}
	}
	return revisions
}

// fromStatus reads revisions from the status of the custom resource.
func fromStatus(status api.Status) []revisionOutput {
	revisions := make([]revisionOutput, len(status.History))
	for i, entry := range status.History {
		revisions[i] = revisionOutput{
			Revision: entry.Revision, LastDeployed: entry.LastDeployed, Status: entry.Status,
			Chart: entry.ChartVersion, AppVersion: entry.AppVersion, Description: entry.Description,
			Held:       status.Rollback != nil && status.Rollback.To == entry.Revision,
			RollbackTo: i > 0 && wasDeployed(entry.Status) || entry.Revision == status.Previous, Previous: entry.Revision == status.Previous,
		}
	}
	return revisions
}

func historyTable(revisions []revisionOutput, now time.Time) string {
	rows := make([][]string, 0, 1+len(revisions))
	rows = append(rows, []string{"REVISION", "AGE", "STATUS", "CHART", "APP", "ROLLBACK", "DESCRIPTION"})
	for _, r := range revisions {
		age := ""
		if r.LastDeployed != nil {
			age = duration.HumanDuration(now.Sub(r.LastDeployed.Time))
		}
		rows = append(rows, []string{
			strconv.FormatInt(r.Revision, 10), age, r.Status, r.Chart, r.AppVersion, r.rollback(), r.description(),
		})
	}
	return table(rows...)
}

// rollback returns the column ROLLBACK.
func (r revisionOutput) rollback() string {
	switch {
	case r.Previous:
		return "previous"
	case r.RollbackTo:
		return "yes"
	default:
		return "-"
	}
}

// description returns the column DESCRIPTION: how the revision was created, and its
// outcome.
func (r revisionOutput) description() string {
	text := oneLine(r.Description)
	if r.Approved != "" {
		text = join("; ", text, "plan "+oneLine(r.Approved)+" approved")
	}
	if r.Held {
		text = join("; ", text, "held")
	}
	if r.NeverReady {
		text = join("; ", text, "never became ready")
	}
	if r.By != "" {
		text = join("; ", text, "created by "+r.By+", not by the operator")
	}
	return text
}

var secretResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// revision reads a release record.
func (s *session) revision(ctx context.Context, status api.Status, revision int64) (*release.Stored, error) {
	of := status.Release
	secret, err := s.typed.CoreV1().Secrets(of.Namespace).Get(ctx, release.SecretName(of.Name, int(revision)), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("revision %d of release %s not found; stored revisions: %s", revision, of.Name, strings.Join(revisionNumbers(status.History), ", "))
	}
	if err != nil {
		return nil, permission{
			verb: "get", resource: secretResource.GroupResource(), namespace: of.Namespace,
			purpose: fmt.Sprintf("to read revision %d of release %s", revision, of.Name),
		}.explain(err)
	}
	return release.ReadRecord(secret)
}

// deployedRevision returns the newest deployed revision, or the newest if none is
// deployed.
func deployedRevision(status api.Status) int64 {
	for _, entry := range status.History {
		if entry.Status == api.StatusDeployed {
			return entry.Revision
		}
	}
	if len(status.History) > 0 {
		return status.History[0].Revision
	}
	return status.Release.Revision
}

// revisionNumbers returns the revisions in the status, oldest first.
func revisionNumbers(history []api.HistoryEntry) []string {
	found := make([]string, len(history))
	for i, entry := range history {
		found[i] = strconv.FormatInt(entry.Revision, 10)
	}
	slices.Reverse(found)
	return found
}

// history reads the metadata of the release records, newest first.
func (s *session) history(ctx context.Context, of *api.ReleaseStatus) ([]release.Record, error) {
	client, err := metadata.NewForConfig(s.config)
	if err != nil {
		return nil, err
	}
	var found []release.Record
	if err := release.List(ctx, client, of.Namespace, []string{of.Name}, func(record release.Record) { found = append(found, record) }); err != nil {
		return nil, permission{
			verb: "list", resource: secretResource.GroupResource(), namespace: of.Namespace,
			purpose: fmt.Sprintf("to read the records of release %s", of.Name),
		}.explain(err)
	}
	slices.SortFunc(found, func(a, b release.Record) int { return b.Revision - a.Revision })
	return found, nil
}

// wasDeployed reports whether a revision with this status is or was deployed.
func wasDeployed(status string) bool { return release.Record{Status: status}.WasDeployed() }
