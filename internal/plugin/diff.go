package plugin

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// diffOutput is the output of diff with -o json and yaml.
type diffOutput struct {
	Release   string   `json:"release"`
	Namespace string   `json:"namespace"`
	From      diffSide `json:"from"`
	To        diffSide `json:"to"`
	// Objects are the objects that differ.
	Objects []objectDiff `json:"objects"`
}

// diffSide is one side of a comparison.
type diffSide struct {
	Revision int64 `json:"revision"`
	// Chart is "<name>-<version>".
	Chart string `json:"chart"`
}

func newDiff(s *session) *cobra.Command {
	var revisions string
	cmd := s.onResource(&cobra.Command{
		Use:   "diff KIND/NAME",
		Short: "Compare two revisions",
		Long: `Compare the manifests of two revisions, hooks included: by default the newest two
that were deployed. To preview an edit of the spec, use plan.

Values in Secrets are redacted; other objects are shown in full.

Required permissions: get on the custom resource and on Secrets in the namespace
of the release.`,
		Example: example("kubectl chartwright diff podset/web", "kubectl chartwright diff podset/web --revision 2..4"),
	}, 0, func(ctx context.Context, t target, cr *unstructured.Unstructured, _ []string) error {
		return s.diff(ctx, t, cr, revisions)
	})
	cmd.Flags().StringVar(&revisions, "revision", "", "revisions such as 2..4, or 2 for 2..newest (default: the newest two deployed)")
	return cmd
}

// diff compares two revisions. revisions is the value of --revision.
func (s *session) diff(ctx context.Context, t target, cr *unstructured.Unstructured, revisions string) error {
	status := statusOf(cr)
	if status.Release == nil || len(status.History) == 0 {
		return fmt.Errorf("%s has no release yet", t)
	}
	from, to, err := chooseRevisions(status.History, revisions)
	if err != nil {
		return err
	}
	before, err := s.revision(ctx, status, from)
	if err != nil {
		return err
	}
	after, err := s.revision(ctx, status, to)
	if err != nil {
		return err
	}
	out := diffOutput{
		Release: status.Release.Name, Namespace: status.Release.Namespace,
		From: sideOf(before), To: sideOf(after),
	}
	return s.printDiff(out, manifestOf(before), manifestOf(after))
}

// chooseRevisions returns the revisions to compare. flag is the value of --revision.
func chooseRevisions(history []api.HistoryEntry, flag string) (from, to int64, err error) {
	if flag == "" {
		var deployed []int64
		for _, entry := range history {
			if wasDeployed(entry.Status) {
				deployed = append(deployed, entry.Revision)
			}
		}
		if len(deployed) < 2 {
			return 0, 0, fmt.Errorf("fewer than two revisions were deployed: select two of %s by --revision", strings.Join(revisionNumbers(history), ", "))
		}
		return deployed[1], deployed[0], nil
	}
	first, second, both := strings.Cut(flag, "..")
	if from, err = parseRevision(first); err != nil {
		return 0, 0, err
	}
	if !both {
		return from, history[0].Revision, nil
	}
	if to, err = parseRevision(second); err != nil {
		return 0, 0, err
	}
	return from, to, nil
}

func parseRevision(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("--revision: invalid revision %q: expected two numbers such as 2..4, or one", text)
	}
	return n, nil
}

func sideOf(stored *release.Stored) diffSide {
	return diffSide{Revision: int64(stored.Revision), Chart: stored.Chart + "-" + stored.ChartVersion}
}

// String returns the title in the header of each diff.
func (d diffSide) String() string {
	return fmt.Sprintf("revision %d (%s)", d.Revision, d.Chart)
}

func manifestOf(stored *release.Stored) manifest {
	return manifest{title: sideOf(stored).String(), namespace: stored.Namespace, objects: stored.Objects, hooks: stored.Hooks}
}

// printDiff compares two manifests and prints the difference.
func (s *session) printDiff(out diffOutput, before, after manifest) error {
	var err error
	if out.Objects, err = compare(before, after); err != nil {
		return err
	}
	if len(out.Objects) == 0 {
		s.note("No differences between %s and %s.", before.title, after.title)
	}
	return s.print(out, func() string {
		var text strings.Builder
		for _, object := range out.Objects {
			text.WriteString(s.painter().paintDiff(object.Diff))
		}
		return text.String()
	})
}
