package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/reconcile"
	"github.com/chartwright/chartwright/internal/reconcile/queue"
	"github.com/chartwright/chartwright/internal/reconcile/status"
	"github.com/chartwright/chartwright/internal/release"
)

// DefaultOperator is the name of the operator for custom resources without a release.
const DefaultOperator = "chartwright"

// Planner plans custom resources of one kind. Use New to create it. Plan may be called
// concurrently.
type Planner struct {
	kind     catalog.Kind
	typed    kubernetes.Interface
	metadata metadata.Interface
	index    *release.Index
	objects  *objects
	sources  *sources
	client   *helm.Client
	pool     *queue.Pool
}

// Scope are the custom resources to plan.
type Scope struct {
	// One is the custom resource to plan, or nil for many.
	One *unstructured.Unstructured
	// Namespace is the namespace of many custom resources; "" means all namespaces.
	Namespace string
}

// New returns a Planner, and reads the metadata of the release records. The kind has the
// chart that would be deployed.
func New(ctx context.Context, config *rest.Config, mapper meta.RESTMapper, kind catalog.Kind, scope Scope) (*Planner, error) {
	config = rest.CopyConfig(config)
	// The API server limits the rate fairly.
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return readOnly{next} })
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	p := &Planner{kind: kind, pool: queue.NewPool(1, true, time.Now, nil), index: release.NewIndex(func(release.Record) {})}
	if p.typed, err = kubernetes.NewForConfigAndClient(config, shared); err != nil {
		return nil, err
	}
	if p.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), shared); err != nil {
		return nil, err
	}
	nothing := func(types.UID) {}
	p.objects = &objects{
		Index: inventory.NewIndex(nothing, nothing), metadata: p.metadata, mapper: mapper,
		selector: api.LabelOwnerUID, everywhere: scope.One == nil && scope.Namespace == "",
		lists: map[listed]func() error{}, kinds: map[types.UID][]schema.GroupVersionKind{},
	}
	if scope.One != nil {
		p.objects.selector += "=" + string(scope.One.GetUID())
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, shared)
	if err != nil {
		return nil, err
	}
	read := valuesfrom.FromServer(dynamicClient, mapper, types.NamespacedName{})
	p.sources = &sources{Store: valuesfrom.NewStore(read, nothing), read: read, deployed: p.deployedValues, unknown: map[types.UID][]string{}}
	p.client, err = helm.NewClient(helm.Config{
		REST: config, HTTP: shared, Clientset: p.typed, Mapper: mapper, Index: p.index, Inventory: p.objects,
	})
	if err != nil {
		return nil, err
	}
	err = p.readRecords(ctx, scope)
	return p, err
}

// readRecords reads the metadata of the release records of the custom resources.
func (p *Planner) readRecords(ctx context.Context, scope Scope) error {
	if scope.One == nil {
		namespace := scope.Namespace
		if p.kind.Namespace != nil {
			// The releases may be anywhere.
			namespace = metav1.NamespaceAll
		}
		return p.listRecords(ctx, namespace, nil)
	}
	namespaces := sets.New[string]()
	names := catalog.ReleaseNames(scope.One.GetName(), p.kind.Kind)
	if stored := status.Read(scope.One).Release; stored != nil {
		namespaces.Insert(stored.Namespace)
		names = append(names, stored.Name)
	}
	home := scope.One.GetNamespace()
	if p.kind.Namespace != nil {
		// PlanNext reports the error.
		home, _ = p.kind.Namespace.For(scope.One.Object)
	}
	if home != "" {
		namespaces.Insert(home)
	}
	for namespace := range namespaces {
		if err := p.listRecords(ctx, namespace, names); err != nil {
			return err
		}
	}
	return nil
}

func (p *Planner) listRecords(ctx context.Context, namespace string, names []string) error {
	if err := release.List(ctx, p.metadata, namespace, names, p.index.Put); err != nil {
		return fmt.Errorf("%w: %w", ErrRecords, err)
	}
	return nil
}

// ErrRecords reports that the release records cannot be listed.
var ErrRecords = errors.New("list release records")

// Planned is what the operator would do about a custom resource.
type Planned struct {
	*reconcile.Planned
	// Unknown are the reasons why the plan may differ from what the operator does: what
	// the user may not read.
	Unknown []string
	// AssumedValues reports that the values may differ from those of the operator, and with
	// them the digest of an approval.
	AssumedValues bool
}

// Plan returns what the operator would do about a custom resource. The errors are those of
// reconcile.Reconciler.PlanNext.
func (p *Planner) Plan(ctx context.Context, cr *unstructured.Unstructured) (*Planned, error) {
	planned := &Planned{}
	operator := DefaultOperator
	for _, record := range p.index.OwnedBy(cr.GetUID()) {
		operator = cmp.Or(record.Operator, operator)
		if record.Status != api.StatusDeployed {
			continue
		}
		planned.Unknown = append(planned.Unknown, texts(p.listRecorded(ctx, cr.GetUID(), record))...)
	}
	reconciler := &reconcile.Reconciler{
		Shared: reconcile.Shared{
			Operator: operator, Actions: p.client, Index: p.index, Inventory: inventory.Inventory{Index: p.objects.Index},
			Pool: p.pool, Sources: p.sources, Now: time.Now,
		},
		Kind: p.kind,
	}
	var err error
	planned.Planned, err = reconciler.PlanNext(ctx, p.client, cr)
	for _, source := range p.sources.hidden(cr.GetUID()) {
		planned.AssumedValues = true
		planned.Unknown = append(planned.Unknown, fmt.Sprintf("valuesFrom: you may not read %s; its values are assumed to be those of the deployed revision", source))
	}
	if err != nil {
		return nil, err
	}
	if planned.Action != nil {
		for _, write := range planned.Action.Writes {
			if write.Unknown != nil {
				planned.Unknown = append(planned.Unknown, fmt.Sprintf("%s: %v", write.Key, write.Unknown))
			}
		}
	}
	return planned, nil
}

// listRecorded lists the kinds of the objects of a deployed revision.
func (p *Planner) listRecorded(ctx context.Context, owner types.UID, record release.Record) error {
	errs := []error{p.objects.EnsureWatched(ctx, owner, record.Namespace, record.Inventory.GVKs())}
	for _, outside := range release.OutsideObjects(record.Inventory) {
		for _, kind := range record.Inventory.GVKs() {
			if kind.GroupKind() == outside.GroupKind() {
				errs = append(errs, p.objects.list(ctx, kind, outside.Namespace))
			}
		}
	}
	return errors.Join(errs...)
}

// deployedValues returns the values of the deployed revision of a custom resource.
func (p *Planner) deployedValues(ctx context.Context, owner types.UID) (map[string]any, error) {
	for _, record := range p.index.OwnedBy(owner) {
		if record.Status != api.StatusDeployed {
			continue
		}
		secret, err := p.typed.CoreV1().Secrets(record.Namespace).Get(ctx, record.Secret, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		stored, err := release.ReadRecord(secret)
		if err != nil {
			return nil, err
		}
		return stored.Values, nil
	}
	return map[string]any{}, nil
}

// texts returns the messages of joined errors.
func texts(err error) []string {
	var found []string
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
	case errors.As(err, &joined):
		for _, one := range joined.Unwrap() {
			found = append(found, texts(one)...)
		}
	default:
		found = append(found, err.Error())
	}
	return found
}

// readOnly sends reads and dry runs. It fails all other requests, so that a plan cannot
// write anything by mistake.
type readOnly struct{ next http.RoundTripper }

// RoundTrip sends a request if it changes nothing.
func (t readOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	dryRun := slices.Equal(request.URL.Query()["dryRun"], []string{metav1.DryRunAll}) && request.Method != http.MethodDelete
	if request.Method != http.MethodGet && !dryRun {
		return nil, fmt.Errorf("internal error: a plan must not send %s %s", request.Method, request.URL.Path)
	}
	return t.next.RoundTrip(request)
}
