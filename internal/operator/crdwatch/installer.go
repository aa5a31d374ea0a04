package crdwatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/compat"
	"github.com/chartwright/chartwright/internal/chart/crd"
	chartpermissions "github.com/chartwright/chartwright/internal/chart/permissions"
	"github.com/chartwright/chartwright/internal/operator/permissions"
	"github.com/chartwright/chartwright/internal/operator/readiness"
)

// ErrUnchanged marks a CRD that is not changed, because another attempt would fail, too.
var ErrUnchanged = errors.New("the CustomResourceDefinition was not changed")

// ErrForeign marks a CRD that is not changed, because someone else manages it.
var ErrForeign = errors.New("is not managed by this operator, which does not change it")

// retryBackoff is the delay between attempts to install a CRD.
var retryBackoff = wait.Backoff{Duration: 10 * time.Second, Factor: 2, Steps: math.MaxInt, Cap: 5 * time.Minute}

// Installer installs the CRDs of the kinds. It runs only on the leader, because a standby
// may have another version.
type Installer struct {
	Config
	// added receives a value when a kind was added.
	added chan struct{}

	mu sync.Mutex
	// installs are the CRDs to install, by kind, and order are their kinds.
	installs map[schema.GroupKind]*install
	order    []schema.GroupKind
}

// install is the CRD of a kind.
type install struct {
	kind catalog.Kind
	// tried is closed after the first attempt.
	tried chan struct{}
	// left: another attempt is necessary.
	left bool
}

// NewInstaller returns an Installer that has not started.
func NewInstaller(config Config) *Installer {
	return &Installer{Config: config, added: make(chan struct{}, 1), installs: map[schema.GroupKind]*install{}}
}

// Add adds a kind, or replaces the kind with the same group and name. It returns a channel
// that is closed after the first attempt to install the CRD. Reconciliations start then.
func (i *Installer) Add(kind catalog.Kind) (tried <-chan struct{}) {
	i.Remove(kind.GVK().GroupKind())
	added := &install{kind: kind, tried: make(chan struct{}), left: i.Install}
	if !i.Install {
		close(added.tried)
		return added.tried
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.installs[kind.GVK().GroupKind()] = added
	i.order = append(i.order, kind.GVK().GroupKind())
	select {
	case i.added <- struct{}{}:
	default: // a signal is already pending
	}
	return added.tried
}

// Remove removes a kind. Its CRD stays.
func (i *Installer) Remove(kind schema.GroupKind) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.installs, kind)
	i.order = slices.DeleteFunc(i.order, func(other schema.GroupKind) bool { return other == kind })
}

// left returns the CRDs to install.
func (i *Installer) left() []*install {
	i.mu.Lock()
	defer i.mu.Unlock()
	var left []*install
	for _, kind := range i.order {
		if one := i.installs[kind]; one.left {
			left = append(left, one)
		}
	}
	return left
}

// NeedLeaderElection returns true: it writes.
func (i *Installer) NeedLeaderElection() bool { return true }

// Start installs the CRDs of all kinds, and of those that are added, until the context
// ends. It retries failed ones.
func (i *Installer) Start(ctx context.Context) error {
	backoff := retryBackoff
	for {
		left := i.left()
		i.install(ctx, left)
		var again <-chan time.Time
		if len(i.left()) > 0 {
			again = time.After(backoff.Step())
		} else {
			backoff = retryBackoff
		}
		select {
		case <-ctx.Done():
			return nil
		case <-i.added:
		case <-again:
		}
	}
}

// install tries to install CRDs.
func (i *Installer) install(ctx context.Context, left []*install) {
	for _, one := range left {
		done, err := Install(ctx, i.Manager.GetClient(), one.kind, i.Operator, true)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, ErrForeign) {
			err = nil
		}
		i.mu.Lock()
		current := i.installs[one.kind.GVK().GroupKind()] == one
		one.left = err != nil && !errors.Is(err, ErrUnchanged)
		i.mu.Unlock()
		if current {
			i.report(one.kind, done, err)
		}
		select {
		case <-one.tried:
		default:
			close(one.tried)
		}
	}
}

// report logs and records the result of an attempt, unless it equals the previous result.
func (i *Installer) report(kind catalog.Kind, done string, err error) {
	gk := kind.GVK().GroupKind()
	text, isNew := "", false
	if err != nil {
		text = err.Error()
		if len(permissions.Refusals(err)) > 0 {
			text += ". " + MissingRulesAdvice(kind)
		}
	}
	i.Readiness.Update(gk, func(k *readiness.Kind) {
		isNew = k.CRD != text
		k.CRD = text
	})
	logger := i.Manager.GetLogger().WithValues("kind", kind.Kind, "group", kind.Group)
	switch {
	case done != "":
		logger.Info(done)
	case err != nil && isNew:
		logger.Info("CustomResourceDefinition not installed", "reason", text)
		reason := api.EventCRDMissing
		if errors.Is(err, ErrUnchanged) {
			reason = api.EventCRDOutdated
		}
		i.Warn(reason, gk.String()+": "+text)
	}
}

// MissingRulesAdvice returns the rules that installing a CRD requires. A rule with resource
// names cannot allow create.
func MissingRulesAdvice(kind catalog.Kind) string {
	resource := []string{"customresourcedefinitions"}
	named := rbacv1.PolicyRule{APIGroups: []string{apiextensionsv1.GroupName}, Resources: resource, Verbs: []string{"get", "patch"}}
	if definition, _, err := crd.Generate(kind); err == nil {
		named.ResourceNames = []string{definition.Name}
	}
	create := rbacv1.PolicyRule{APIGroups: []string{apiextensionsv1.GroupName}, Resources: resource, Verbs: []string{"create"}}
	return fmt.Sprintf("Add to the rules of the operator's role: %s, %s", chartpermissions.RuleText(named), chartpermissions.RuleText(create))
}

// Install applies the CRD of a kind if it is missing, or if this operator has installed it
// and the change breaks no custom resource. It returns what it did, and ErrForeign if the
// CRD is managed by someone else. Without write it only checks whether that is possible. If
// someone else writes the CRD at the same time, Install reads the CRD again.
func Install(ctx context.Context, c client.Client, kind catalog.Kind, operator string, write bool) (done string, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var err error
		done, err = installOnce(ctx, c, kind, operator, write)
		return err
	})
	return done, err
}

func installOnce(ctx context.Context, c client.Client, kind catalog.Kind, operator string, write bool) (done string, err error) {
	live, err := definitionOf(ctx, c, kind)
	if err != nil {
		return "", err
	}
	if live != nil {
		if live.Labels[api.LabelOperator] != operator {
			return "", fmt.Errorf("the CustomResourceDefinition %s exists and %w", live.Name, ErrForeign)
		}
		if own := live.Spec.Names.Plural; kind.Plural != "" && kind.Plural != own {
			return "", fmt.Errorf("%w: %s defines the kind with the plural %s, expected %s: set plural: %[3]s, or delete the definition, with all its custom resources",
				ErrUnchanged, live.Name, own, kind.Plural)
		}
		kind.Plural = live.Spec.Names.Plural
	}
	wanted, _, err := crd.Generate(kind)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnchanged, err)
	}
	metav1.SetMetaDataLabel(&wanted.ObjectMeta, api.LabelOperator, operator)
	done = "CustomResourceDefinition installed"
	if live != nil {
		if !live.DeletionTimestamp.IsZero() {
			return "", fmt.Errorf("the CustomResourceDefinition %s is being deleted", wanted.Name)
		}
		if breaks := compat.Breaks(live, wanted); breaks != "" {
			return "", fmt.Errorf("%w, because the new version breaks custom resources: %s", ErrUnchanged, breaks)
		}
		done = "CustomResourceDefinition up to date"
	}
	if !write {
		return "", nil
	}
	if err := applyCRD(ctx, c, wanted, live); err != nil {
		return "", fmt.Errorf("apply the CustomResourceDefinition %s: %w", wanted.Name, err)
	}
	return done, nil
}

// definitionOf returns the CRD of a kind, or nil if it does not exist. Its plural can differ from that of
// the entry: with a second CRD, the API server would serve neither reliably.
func definitionOf(ctx context.Context, c client.Client, kind catalog.Kind) (live *apiextensionsv1.CustomResourceDefinition, err error) {
	names := []string{crd.Name(kind)}
	switch mappings, err := c.RESTMapper().RESTMappings(kind.GVK().GroupKind()); {
	case meta.IsNoMatchError(err):
	case err != nil:
		return nil, fmt.Errorf("look up the CustomResourceDefinition of %s: %w", kind.GVK().GroupKind(), err)
	default:
		names = append(names, mappings[0].Resource.Resource+"."+kind.Group)
	}
	for _, name := range slices.Compact(names) {
		if live, err = readCRD(ctx, c, name); live != nil || err != nil {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("read the CustomResourceDefinition of %s: %w", kind.GVK().GroupKind(), err)
	}
	return live, err
}

// readCRD returns nil if the CRD does not exist.
func readCRD(ctx context.Context, c client.Client, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := c.Get(ctx, types.NamespacedName{Name: name}, object); apply.AnswerOf(err) == apply.Gone {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	return definition, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition)
}

// applyCRD applies the generated fields, without those that the API server adds. It returns
// a conflict if the CRD is no longer as it was read: live is nil if there was none.
func applyCRD(ctx context.Context, c client.Client, definition, live *apiextensionsv1.CustomResourceDefinition) error {
	options := []client.PatchOption{client.FieldOwner(api.FieldManager)}
	if live != nil {
		definition = definition.DeepCopy()
		definition.UID, definition.ResourceVersion = live.UID, live.ResourceVersion
		options = append(options, client.ForceOwnership)
	}
	data, err := crd.Marshal(definition)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	object.SetName(definition.Name)
	err = c.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, data), options...)
	if apierrors.IsInvalid(err) {
		// The API server would reject it again.
		return fmt.Errorf("%w: %w", ErrUnchanged, err)
	}
	return err
}
