package plugin

import (
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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/metadata"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// historyOutput is the stored revisions of a release.
type historyOutput struct {
	Release   string `json:"release"`
	Namespace string `json:"namespace"`
	// Revisions are newest first.
	Revisions []revisionOutput `json:"revisions"`
	// Missing names what is left out because a permission is missing.
	Missing []string `json:"missing,omitempty"`
}

// revisionOutput is one stored revision.
type revisionOutput struct {
	Revision     int64        `json:"revision"`
	LastDeployed *metav1.Time `json:"lastDeployed,omitempty"`
	// Status is Helm's word.
	Status string `json:"status"`
	// Chart is "<name>-<version>", without a name where that is not known.
	Chart       string `json:"chart,omitempty"`
	AppVersion  string `json:"appVersion,omitempty"`
	Description string `json:"description,omitempty"`
	// Held: a rollback has deployed it again, and holds it.
	Held bool `json:"held,omitempty"`
	// NeverReady tells that its objects were not ready when another revision
	// took its place.
	NeverReady bool `json:"neverReady,omitempty"`
	// By names who created it if that was not the operator: "helm".
	By string `json:"by,omitempty"`
	// RollbackTo tells that a rollback can bring it back, and Previous that it is
	// what a rollback to no revision in particular brings back.
	RollbackTo bool `json:"rollbackTo"`
	Previous   bool `json:"previous,omitempty"`
}

func newHistory(s *session) *cobra.Command {
	return s.onResource(&cobra.Command{
		Use:   "history KIND/NAME",
		Short: "Show the revisions of a release, and which a rollback can bring back",
		Long: `Show the stored revisions of the release, newest first: what led to each, which
one is held, and which a rollback can bring back. "previous" is the one that
rollback brings back where it is given none: the newest that was deployed and
became ready before the one that runs, or before the held one.

With the right to list Secrets in the release's namespace the records are asked,
which tell what became ready. Without it, the status of the custom resource is
shown, which has the newest ten revisions.`,
		Example: example("kubectl chartwright history podset/web"),
	}, 0, func(ctx context.Context, t target, cr *unstructured.Unstructured, _ []string) error {
		status := statusOf(cr)
		if status.Release == nil {
			return fmt.Errorf("%s has no release yet", t)
		}
		out, err := s.revisions(ctx, status)
		if err != nil {
			return err
		}
		return s.printNoting(out.Missing, out, func() string { return historyTable(out.Revisions, time.Now()) })
	})
}

// revisions returns what the user may know of the revisions.
func (s *session) revisions(ctx context.Context, status api.Status) (historyOutput, error) {
	out := historyOutput{Release: status.Release.Name, Namespace: status.Release.Namespace}
	history, err := s.history(ctx, status.Release)
	switch {
	case isMissingPermission(err):
		out.Missing = []string{err.Error() + ". It is not known which revisions became ready"}
		out.Revisions = fromStatus(status)
	case err != nil:
		return out, err
	default:
		out.Revisions = fromRecords(history)
	}
	return out, nil
}

// fromRecords reads revisions from the metadata of their records, newest first.
func fromRecords(history []release.Record) []revisionOutput {
	revisions := make([]revisionOutput, len(history))
	held := release.MarksOf(history).Held
	previous := slices.IndexFunc(history, func(r release.Record) bool {
		before := history[0].Revision
		if held != nil {
			before = held.Revision
		}
		return r.Revision < before && r.WasGood()
	})
	for i := range history {
		r := &history[i]
		at := r.Deployed
		if at.IsZero() {
			at = metav1.NewTime(r.Changed)
		}
		revisions[i] = revisionOutput{
			Revision: int64(r.Revision), LastDeployed: &at, Status: r.Status, AppVersion: r.AppVersion, Description: r.Description.Description,
			Held: held != nil && held.Revision == r.Revision, NeverReady: r.NeverReady,
			// The newest runs already, if it was deployed.
			RollbackTo: i > 0 && r.WasDeployed(), Previous: i == previous,
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
			RollbackTo: i > 0 && wasDeployed(entry.Status),
		}
	}
	return revisions
}

func historyTable(revisions []revisionOutput, now time.Time) string {
	lines := make([][]string, 0, 1+len(revisions))
	lines = append(lines, []string{"REVISION", "AGE", "STATUS", "CHART", "APP", "ROLLBACK", "DESCRIPTION"})
	for _, r := range revisions {
		age := ""
		if r.LastDeployed != nil {
			age = duration.HumanDuration(now.Sub(r.LastDeployed.Time))
		}
		lines = append(lines, []string{
			strconv.FormatInt(r.Revision, 10), age, r.Status, r.Chart, r.AppVersion, r.rollback(), r.story(),
		})
	}
	return rows(lines...)
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

// story returns the column DESCRIPTION: the cause of a revision, and its outcome.
func (r revisionOutput) story() string {
	text := oneLine(r.Description)
	if r.Held {
		text = joined("; ", text, "held: it runs again")
	}
	if r.NeverReady {
		text = joined("; ", text, "never became ready")
	}
	if r.By != "" {
		text = joined("; ", text, "made by "+r.By+", not by the operator")
	}
	return text
}

var secretResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// revision reads a whole revision.
func (s *session) revision(ctx context.Context, status api.Status, revision int64) (*release.Stored, error) {
	of := status.Release
	secret, err := s.typed.CoreV1().Secrets(of.Namespace).Get(ctx, release.SecretName(of.Name, int(revision)), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("revision %d of release %s is not stored; there are %s", revision, of.Name, strings.Join(numbers(status.History), ", "))
	}
	if err != nil {
		return nil, permission{
			verb: "get", resource: secretResource.GroupResource(), namespace: of.Namespace,
			purpose: fmt.Sprintf("to read revision %d of release %s", revision, of.Name),
		}.explain(err)
	}
	return release.ReadRecord(secret)
}

// numbers returns the revisions in the status, oldest first.
func numbers(history []api.HistoryEntry) []string {
	found := make([]string, len(history))
	for i, entry := range history {
		found[i] = strconv.FormatInt(entry.Revision, 10)
	}
	slices.Reverse(found)
	return found
}

// history reads the metadata of the records of a release, newest first.
func (s *session) history(ctx context.Context, of *api.ReleaseStatus) ([]release.Record, error) {
	client, err := metadata.NewForConfig(s.config)
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(secretResource).Namespace(of.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{release.LabelOwner: release.OwnerHelm, release.LabelName: of.Name}.String(),
		FieldSelector: "type=" + release.SecretType,
	})
	if err != nil {
		return nil, permission{
			verb: "list", resource: secretResource.GroupResource(), namespace: of.Namespace,
			purpose: fmt.Sprintf("to tell more of the revisions of release %s than the status does", of.Name),
		}.explain(err)
	}
	var found []release.Record
	for i := range list.Items {
		if record, ok := release.FromMeta(&list.Items[i]); ok {
			found = append(found, record)
		}
	}
	slices.SortFunc(found, func(a, b release.Record) int { return b.Revision - a.Revision })
	return found, nil
}

// wasDeployed reports whether a revision of that status is or was deployed.
func wasDeployed(status string) bool { return release.Record{Status: status}.WasDeployed() }
