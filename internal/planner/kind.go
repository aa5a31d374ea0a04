package planner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/source"
	"github.com/chartwright/chartwright/internal/chartkind"
)

// ErrNoChart reports that neither a watches file nor a ChartKind names the chart of a kind.
var ErrNoChart = errors.New("no chart found")

// Charts is where the charts of kinds come from.
type Charts struct {
	// WatchesFile is the watches file, see catalog.Find.
	WatchesFile string
	// Reference, if not empty, replaces the chart of the kind: a folder, a .tgz, or what
	// source.Parse accepts.
	Reference string
	// PlainHTTP uses HTTP for OCI registries.
	PlainHTTP bool
}

// FindKind returns a kind with the chart that would be deployed: that of its ChartKind, or
// else of the watches file.
func FindKind(ctx context.Context, client dynamic.Interface, gk schema.GroupKind, from Charts) (kind catalog.Kind, err error) {
	var replacement *chart.Chart
	if from.Reference != "" {
		if replacement, err = from.open(ctx); err != nil {
			return kind, err
		}
	}
	live, err := chartKind(ctx, client, gk)
	switch {
	case err != nil:
		return kind, err
	case live != nil:
		kind, err = from.kindOf(ctx, *live, replacement)
	default:
		kind, err = fromFile(from.WatchesFile, gk)
	}
	if err == nil && replacement != nil {
		kind.Chart = replacement
	}
	return kind, err
}

func fromFile(watchesFile string, gk schema.GroupKind) (catalog.Kind, error) {
	kinds, err := catalog.Find(watchesFile)
	if err != nil {
		return catalog.Kind{}, fmt.Errorf("invalid watches file:\n%w", err)
	}
	at := slices.IndexFunc(kinds, func(k catalog.Kind) bool { return k.GVK().GroupKind() == gk })
	if at < 0 {
		return catalog.Kind{}, fmt.Errorf("%w: the watches file and the ChartKinds do not contain %s: set --watches-file to the watches file of the operator", ErrNoChart, gk)
	}
	return kinds[at], nil
}

// chartKind returns the ChartKind of a kind, or nil if it does not exist or cannot be read.
func chartKind(ctx context.Context, client dynamic.Interface, gk schema.GroupKind) (*chartkind.ChartKind, error) {
	list, err := client.Resource(chartkind.GVR).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("list ChartKinds: %w", err)
	}
	for i := range list.Items {
		found, err := chartkind.Parse(&list.Items[i])
		if err == nil && found.Spec.Names.Group == gk.Group && found.Spec.Names.Kind == gk.Kind {
			return &found, nil
		}
	}
	return nil, nil
}

// kindOf returns the kind of a ChartKind, with the chart that the operator serves now.
func (c Charts) kindOf(ctx context.Context, live chartkind.ChartKind, replacement *chart.Chart) (kind catalog.Kind, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("ChartKind %s: %w", live.Name, err)
		}
	}()
	text, err := live.Text()
	if err != nil {
		return kind, err
	}
	entry, err := chartkind.EntryOf(live.Name, text)
	if err != nil {
		return kind, err
	}
	served := replacement
	if served == nil {
		if live.Status.Chart == nil {
			return kind, errors.New("the operator does not serve a chart yet: wait until it is Ready, or set --chart")
		}
		reference := live.Spec.Chart.Reference()
		reference.Digest = live.Status.Chart.Digest
		if served, err = c.fetch(ctx, reference); err != nil {
			return kind, err
		}
	}
	return chartkind.KindOf(entry, served)
}

// open opens a chart on disk or fetches it, with the credentials of the user's Helm.
func (c Charts) open(ctx context.Context) (*chart.Chart, error) {
	if _, err := os.Stat(c.Reference); err == nil {
		loaded, err := catalog.OpenChart(c.Reference)
		if err != nil {
			return nil, fmt.Errorf("--chart %s: %w", c.Reference, err)
		}
		return loaded, nil
	}
	parsed, err := source.Parse(c.Reference, "", "")
	if err == nil {
		var fetched *chart.Chart
		if fetched, err = c.fetch(ctx, parsed); err == nil {
			return fetched, nil
		}
	}
	return nil, fmt.Errorf("--chart: %w", err)
}

func (c Charts) fetch(ctx context.Context, reference source.Reference) (*chart.Chart, error) {
	fetched, err := source.Fetch(ctx, reference, source.Options{Helm: source.UserHelm(), PlainHTTP: c.PlainHTTP, Settings: source.Flags})
	if err != nil {
		return nil, err
	}
	return chart.LoadArchive(bytes.NewReader(fetched.Archive))
}
