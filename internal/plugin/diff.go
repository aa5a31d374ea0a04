package plugin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// diffFlags are those of diff.
type diffFlags struct{ revision, spec, chart, watchesFile string }

// diffOutput is what two revisions differ in, or a revision and what a spec
// would make of it.
type diffOutput struct {
	Release   string   `json:"release"`
	Namespace string   `json:"namespace"`
	From      diffSide `json:"from"`
	To        diffSide `json:"to"`
	// Objects are those that differ.
	Objects []objectDiff `json:"objects"`
}

// diffSide is one side of a comparison: a revision, or a file with a spec.
type diffSide struct {
	Revision int64  `json:"revision,omitempty"`
	Spec     string `json:"spec,omitempty"`
	// Chart is "<name>-<version>".
	Chart string `json:"chart"`
}

func newDiff(s *session) *cobra.Command {
	var f diffFlags
	cmd := s.onResource(&cobra.Command{
		Use:   "diff KIND/NAME [--revision A..B | --spec FILE]",
		Short: "Show what two revisions differ in, or what a spec would change",
		Long: `Show what the manifests of two revisions differ in, hooks included: of the last
two that were deployed, or of those that --revision names.

With --spec, show what an edit would change: the chart is rendered with the spec
in FILE, a custom resource or its spec alone, and compared with the revision
that is deployed. Nothing is written. What the operator gave to the deployed
revision beside the spec, from valuesFrom and overrideValues, is kept as it is.

The record of a release holds no templates, so the chart is taken from here: of
the kind in the watches file, or of --chart. Where that chart gives something
else than what is deployed with the very same values, a note says so; random
values and another chart are two reasons. What templates look up in the cluster
is read with your rights.

The values of Secrets are not shown, only whether they change: *** is one that
stays, *** (before) and *** (after) are two that differ. What a chart writes
elsewhere than into Secrets is shown.

To read a revision takes the right to get Secrets in the release's namespace.`,
		Example: `  kubectl chartwright diff podset/web
  kubectl chartwright diff podset/web --revision 2..4
  kubectl chartwright diff podset/web --spec web.yaml`,
		PreRunE: func(*cobra.Command, []string) error {
			if f.spec == "" && (f.chart != "" || f.watchesFile != "") {
				return errors.New("--chart and --watches-file say which chart --spec is rendered with: expected --spec, too")
			}
			return nil
		},
	}, 0, func(ctx context.Context, t target, cr *unstructured.Unstructured, _ []string) error {
		return s.diff(ctx, t, cr, f)
	})
	flags := cmd.Flags()
	flags.StringVar(&f.revision, "revision", "", "revisions to compare, as 2..4; 2 alone is compared with the newest")
	flags.StringVar(&f.spec, "spec", "", "file with a custom resource or its spec, - for standard input")
	flags.StringVar(&f.chart, "chart", "", "with --spec: the chart's folder or .tgz")
	flags.StringVar(&f.watchesFile, "watches-file", "", "with --spec: watches file with the kind (default: ./watches.yaml or, if there is none, the one in this program)")
	cmd.MarkFlagsMutuallyExclusive("revision", "spec")
	cmd.MarkFlagsMutuallyExclusive("revision", "chart")
	cmd.MarkFlagsMutuallyExclusive("revision", "watches-file")
	cmd.MarkFlagsMutuallyExclusive("chart", "watches-file")
	return cmd
}

func (s *session) diff(ctx context.Context, t target, cr *unstructured.Unstructured, f diffFlags) error {
	status := statusOf(cr)
	if status.Release == nil || len(status.History) == 0 {
		return fmt.Errorf("%s has no release yet", t)
	}
	if f.spec != "" {
		return s.diffSpec(ctx, t, cr, f)
	}
	from, to, err := chooseRevisions(status.History, f.revision)
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

// chooseRevisions returns the two that are to be compared.
func chooseRevisions(history []api.HistoryEntry, asked string) (from, to int64, err error) {
	if asked == "" {
		var were []int64
		for _, entry := range history {
			if wasDeployed(entry.Status) {
				were = append(were, entry.Revision)
			}
		}
		if len(were) < 2 {
			return 0, 0, fmt.Errorf("there are no two revisions that were deployed; there are %s, for --revision", strings.Join(numbers(history), ", "))
		}
		return were[1], were[0], nil
	}
	first, second, both := strings.Cut(asked, "..")
	if from, err = number(first); err != nil {
		return 0, 0, err
	}
	if !both {
		return from, history[0].Revision, nil
	}
	if to, err = number(second); err != nil {
		return 0, 0, err
	}
	return from, to, nil
}

func number(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("--revision: %q is no revision: expected two, as 2..4, or one to compare with the newest", text)
	}
	return n, nil
}

func sideOf(stored *release.Stored) diffSide {
	return diffSide{Revision: int64(stored.Revision), Chart: stored.Chart + "-" + stored.ChartVersion}
}

// String names the side in the head of each diff.
func (d diffSide) String() string {
	if d.Spec != "" {
		return fmt.Sprintf("spec in %s (%s)", d.Spec, d.Chart)
	}
	return fmt.Sprintf("revision %d (%s)", d.Revision, d.Chart)
}

func manifestOf(stored *release.Stored) manifest {
	return manifest{title: sideOf(stored).String(), namespace: stored.Namespace, objects: stored.Objects, hooks: stored.Hooks}
}

// printDiff compares two manifests and prints what differs.
func (s *session) printDiff(out diffOutput, before, after manifest) error {
	var err error
	if out.Objects, err = compare(before, after); err != nil {
		return err
	}
	if len(out.Objects) == 0 {
		s.note("No object differs between %s and %s.", before.title, after.title)
	}
	return s.print(out, func() string {
		var text strings.Builder
		for _, object := range out.Objects {
			text.WriteString(s.painter().paintDiff(object.Diff))
		}
		return text.String()
	})
}
