package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/compat"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// errLeft marks a definition that is left as it is: trying again is no use.
var errLeft = errors.New("the CustomResourceDefinition is left as it is")

// Bounds of the time between tries to install what could not be installed.
const (
	installAgain = 10 * time.Second
	installAtMax = 5 * time.Minute
)

// installCRDs installs the definitions of all kinds; those that failed are tried
// again as long as it takes. Passes begin when each was tried once. The leader
// alone does so: a standby may be of another version.
func (k *kinds) installCRDs(ctx context.Context) error {
	left := k.tryCRDs(ctx, k.options.Kinds)
	close(k.defined)
	for pause := installAgain; len(left) > 0; pause = min(2*pause, installAtMax) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
			left = k.tryCRDs(ctx, left)
		}
	}
	return nil
}

// tryCRDs returns the kinds whose definitions are worth another try.
func (k *kinds) tryCRDs(ctx context.Context, kinds []catalog.Kind) (left []catalog.Kind) {
	for _, kind := range kinds {
		done, err := installCRD(ctx, k.manager.GetClient(), kind, k.options.Name)
		if ctx.Err() != nil {
			return nil
		}
		k.tellCRD(kind, done, err)
		if err != nil && !errors.Is(err, errLeft) {
			left = append(left, kind)
		}
	}
	return left
}

// tellCRD tells of a try, unless it went as the one before.
func (k *kinds) tellCRD(kind catalog.Kind, done string, err error) {
	logger := k.manager.GetLogger().WithValues("kind", kind.Kind, "group", kind.Group)
	text, news := "", false
	if err != nil {
		text = err.Error()
		if len(refusals(err)) > 0 {
			text += ". " + crdAdvice(kind)
		}
	}
	k.board.change(kind.GVK().GroupKind(), func(r *row) {
		news = r.crd != text
		r.crd = text
	})
	switch {
	case done != "":
		logger.Info(done)
	case err != nil && news:
		logger.Info("CustomResourceDefinition not installed", "why", text)
		reason := api.EventCRDMissing
		if errors.Is(err, errLeft) {
			reason = api.EventCRDOutdated
		}
		k.notices.warn(reason, kind.GVK().GroupKind().String()+": "+text)
	}
}

// crdAdvice names the rules that installing a definition takes. The API server
// knows no names when it allows somebody to create.
func crdAdvice(kind catalog.Kind) string {
	resource := []string{"customresourcedefinitions"}
	named := rbacv1.PolicyRule{APIGroups: []string{apiextensionsv1.GroupName}, Resources: resource, Verbs: []string{"get", "patch"}}
	if definition, _, err := crd.Generate(kind); err == nil {
		named.ResourceNames = []string{definition.Name}
	}
	create := rbacv1.PolicyRule{APIGroups: []string{apiextensionsv1.GroupName}, Resources: resource, Verbs: []string{"create"}}
	return fmt.Sprintf("Add to the rules of the operator's role: %s, %s", permissions.RuleText(named), permissions.RuleText(create))
}

// installCRD applies the definition of a kind where there is none, or where it
// is this operator's own and nothing in it breaks. It returns what it did, in a
// few words, empty where it left alone what is none of its business.
func installCRD(ctx context.Context, c client.Client, kind catalog.Kind, operator string) (done string, err error) {
	wanted, _, err := crd.Generate(kind)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errLeft, err)
	}
	metav1.SetMetaDataLabel(&wanted.ObjectMeta, api.LabelOperator, operator)
	live, err := readCRD(ctx, c, wanted.Name)
	if err != nil {
		return "", fmt.Errorf("read the CustomResourceDefinition %s: %w", wanted.Name, err)
	}
	done = "CustomResourceDefinition installed"
	if live != nil {
		if live.Labels[api.LabelOperator] != operator {
			return "", nil
		}
		if !live.DeletionTimestamp.IsZero() {
			return "", fmt.Errorf("the CustomResourceDefinition %s is being deleted", wanted.Name)
		}
		if breaks := compat.Breaks(live, wanted); breaks != "" {
			return "", fmt.Errorf("%w, for that of the chart breaks resources: %s", errLeft, breaks)
		}
		done = "CustomResourceDefinition up to date"
	}
	if err := applyCRD(ctx, c, wanted); err != nil {
		return "", fmt.Errorf("apply the CustomResourceDefinition %s: %w", wanted.Name, err)
	}
	return done, nil
}

// readCRD returns nil where there is none.
func readCRD(ctx context.Context, c client.Client, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(crdGVK)
	if err := c.Get(ctx, types.NamespacedName{Name: name}, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	return definition, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition)
}

// applyCRD sends what the chart says and nothing that the API server adds.
func applyCRD(ctx context.Context, c client.Client, definition *apiextensionsv1.CustomResourceDefinition) error {
	data, err := crd.Marshal(definition)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(crdGVK)
	object.SetName(definition.Name)
	err = c.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(api.FieldManager), client.ForceOwnership)
	if apierrors.IsInvalid(err) {
		// Neither will it be taken the next time.
		return fmt.Errorf("%w: %w", errLeft, err)
	}
	return err
}
