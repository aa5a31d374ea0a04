package tryout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chart/landing"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/watches"
)

// OperatorName is the name of the operator that serves the kind.
const OperatorName = "chartwright-try"

// Group and version of the kind.
const (
	group   = "try.chartwright.dev"
	version = "v1alpha1"
)

// checkInterval is the time between two reads of the custom resource.
const checkInterval = 100 * time.Millisecond

// stopTimeout limits the deletion of the custom resource, and the stop of the cluster.
const stopTimeout = time.Minute

// Try is a chart to try, and what to do with it.
type Try struct {
	Chart *chart.Chart
	// Kind is the name of the kind; empty means the name of the chart in CamelCase.
	Kind string
	// Context is a context of the user's kubeconfig; empty means a local cluster, which
	// exists only during Run.
	Context string
	// Timeout limits how long the custom resource takes to become ready.
	Timeout time.Duration
	// Exit ends Run when the custom resource is ready.
	Exit bool
	Out  io.Writer
	// Finder analyzes the chart; nil keeps no results.
	Finder *landing.Finder

	// Serve runs an operator for the kind until the context ends. It writes its log to a
	// file. The operator stores its objects in the namespace.
	Serve func(ctx context.Context, config *rest.Config, kind catalog.Kind, namespace, log string) error
	// Show prints the custom resource with its objects.
	Show func(ctx context.Context, kubeconfig, kubeContext, resource string)
}

// Run serves the chart and creates a custom resource. It returns when the context ends, or
// with Exit when the custom resource is ready. It deletes the custom resource before it
// returns. It returns an error if the custom resource does not become ready in time.
func (t Try) Run(ctx context.Context) error {
	err := t.run(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		// Ctrl-C ends the command at any time.
		return nil
	}
	return err
}

func (t Try) run(ctx context.Context) (err error) {
	made, err := scaffold.ExampleOf(t.Chart, watches.Watch{Group: group, Version: version, Kind: t.Kind}, t.Finder)
	if err != nil {
		return err
	}
	t.sayf("Chart %s-%s becomes the kind %s:\n\n%s\n", t.Chart.Name(), t.Chart.Version(), made.Kind.Kind, indent(made.Entry))
	for _, note := range made.Notes {
		t.sayf("Note: %s\n", note)
	}
	folder, err := os.MkdirTemp("", "chartwright-try-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	began := time.Now()
	target, err := t.open(ctx, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.close()) }()
	if err := target.install(ctx, made.CRD); err != nil {
		return err
	}
	stop := target.serve(ctx, t, made.Kind, filepath.Join(folder, "operator.log"))
	defer func() { err = errors.Join(err, stop()) }()
	return t.show(ctx, target, made, began)
}

// show creates the custom resource, waits until it is ready, and prints it.
func (t Try) show(ctx context.Context, c *target, made scaffold.Example, began time.Time) error {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(made.Sample, &object.Object); err != nil {
		return err
	}
	t.sayf("Creating the custom resource %s/%s:\n\n%s\n", made.Kind.Kind, object.GetName(), indent(withoutComments(made.Sample)))
	limited, cancel := context.WithTimeoutCause(ctx, t.Timeout, fmt.Errorf("not ready within %s: set --timeout, or set the values that the chart needs", t.Timeout))
	defer cancel()
	resources, err := c.create(limited, made, object)
	if err != nil {
		return c.explain(err)
	}
	defer c.delete(t, resources, object.GetName())
	err = awaitReady(limited, resources, object.GetName())
	if ctx.Err() != nil {
		return nil
	}
	t.Show(ctx, c.kubeconfig, t.Context, made.Kind.Kind+"."+group+"/"+object.GetName())
	if err != nil {
		return c.explain(err)
	}
	t.sayf("\nReady after %.1f s.\n", time.Since(began).Seconds())
	if t.Exit {
		return nil
	}
	t.sayf("%s", c.next(made.Kind, object.GetName()))
	select {
	case <-ctx.Done():
		return nil
	case <-c.ended:
		return c.explain(c.served)
	}
}

func (t Try) sayf(format string, args ...any) { _, _ = fmt.Fprintf(t.Out, format, args...) }

// awaitReady waits until the current generation of the custom resource is ready.
func awaitReady(ctx context.Context, resources dynamic.ResourceInterface, name string) error {
	last := "no status"
	err := wait.PollUntilContextCancel(ctx, checkInterval, true, func(ctx context.Context) (bool, error) {
		cr, err := resources.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		reported := status.Read(cr)
		ready := meta.FindStatusCondition(reported.Conditions, api.ConditionReady)
		if ready == nil {
			return false, nil
		}
		last = ready.Message
		return ready.Status == metav1.ConditionTrue && reported.ObservedGeneration == cr.GetGeneration(), nil
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %s", context.Cause(ctx), last)
	}
	return err
}

// crdResource is the resource of CustomResourceDefinitions.
var crdResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// install applies the CRD. It returns an error if the cluster has a CRD of the same name
// that another operator or user has created, because its custom resources would be served,
// too.
func (c *target) install(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) error {
	definitions := c.client.Resource(crdResource)
	live, err := definitions.Get(ctx, definition.Name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("read the CustomResourceDefinition %s: %w", definition.Name, err)
	case err == nil && live.GetLabels()[api.LabelOperator] != OperatorName:
		return fmt.Errorf("the CustomResourceDefinition %s exists and was not created by \"chartwright try\": set --kind to another name", definition.Name)
	}
	metav1.SetMetaDataLabel(&definition.ObjectMeta, api.LabelOperator, OperatorName)
	data, err := crd.Marshal(definition)
	if err != nil {
		return err
	}
	_, err = definitions.Patch(ctx, definition.Name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: api.FieldManager, Force: new(true)})
	return err
}

// indent indents the lines of a text by two spaces.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ") + "\n"
}

// withoutComments removes the lines of a manifest that are comments or empty.
func withoutComments(manifest []byte) string {
	var kept strings.Builder
	for line := range strings.Lines(string(manifest)) {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "#") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
