package helm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	helmkube "helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
)

// ErrRefused marks an upgrade that ended before anything was written, because
// the API server would refuse one of the objects.
var ErrRefused = errors.New("the API server refuses an object of the new revision; nothing was changed")

// preflight looks at a new revision before its record is stored, when nothing
// was written yet. It refuses what the kind's rules forbid, what is another's,
// and of an upgrade or a rollback what the API server would refuse half-way. The
// manifests are those of the verified records that the action has read. Helm
// checks no object that a record names: if a record was read that does not
// verify, every object is checked here.
func (k *kubeClient) preflight(rls *helmrelease.Release, manifests []string, unverified bool) error {
	objects, err := k.builder.build(strings.NewReader(rls.Manifest))
	if err != nil {
		return err
	}
	everything := objects
	for _, hook := range rls.Hooks {
		list, err := k.builder.build(strings.NewReader(hook.Manifest))
		missing, unserved := errors.AsType[*meta.NoKindMatchError](err)
		if kinds := definedIn(everything); unserved && kinds[missing.GroupKind] {
			// Helm builds a hook when it runs, and so does the operator: the kind
			// is served by then. What the rules forbid is refused there, too.
			k.builder.awaited = kinds
			continue
		}
		if err != nil {
			return fmt.Errorf("%w: %w", chart.ErrRender, err)
		}
		everything = append(everything, list...)
	}
	if err := k.allow.check(k.namespace, everything); err != nil {
		return err
	}
	if err := checkNumbers(everything); err != nil {
		return err
	}
	doubtful := objects
	if !k.takeOwnership && !unverified {
		// Helm has looked at the others.
		doubtful = k.among(objects, manifests)
	}
	if err := k.findHookLeftovers(objects); err != nil {
		return err
	}
	if err := k.refuseForeign(doubtful); err != nil {
		return err
	}
	if rls.Version == 1 {
		return nil
	}
	return k.rehearse(objects)
}

// checkNumbers refuses numbers that an apply would change into others.
func checkNumbers(objects helmkube.ResourceList) error {
	var refused []string
	for _, info := range objects {
		if err := apply.CheckNumbers(object(info).Unstructured); err != nil {
			refused = append(refused, err.Error())
		}
	}
	if len(refused) > 0 {
		return fmt.Errorf("%w: %s", ErrRefused, strings.Join(refused, "; "))
	}
	return nil
}

// rehearse applies what changes without changing anything.
func (k *kubeClient) rehearse(objects helmkube.ResourceList) error {
	var refused []string
	for _, info := range objects {
		o, err := k.prepare(object(info))
		if err != nil {
			return err
		}
		if _, ok := k.unchanged(o); ok {
			continue
		}
		if _, ok := k.hookLeftovers[apply.KeyOf(o)]; ok {
			// It is deleted first.
			if err := k.objects.DryRunCreate(k.ctx, o); err != nil && refusal(err) {
				refused = append(refused, err.Error())
			}
			continue
		}
		if o, err = k.leftToOthers(o); err != nil {
			return err
		}
		_, err = k.objects.Apply(k.ctx, o, apply.Options{DryRun: true})
		if err != nil && k.force {
			if unchangeable, probeErr := k.objects.IsImmutable(k.ctx, o, err); probeErr != nil || unchangeable {
				err = probeErr
			}
		}
		switch {
		case err == nil:
		case k.ctx.Err() != nil:
			return err
		case apierrors.IsNotFound(err) && comes(missing(err, o), objects):
			// Its namespace, or the role that it binds, is of the same revision.
		case refusal(err):
			refused = append(refused, err.Error())
		default:
			// The API server is away, or busy; the attempt will tell.
			return err
		}
	}
	if len(refused) > 0 {
		return fmt.Errorf("%w: %s", ErrRefused, strings.Join(refused, "; "))
	}
	return nil
}

// missing returns what the API server did not find, by group, kind or resource,
// and name. Of a binding whose role is not there it says that the binding is
// not.
func missing(err error, applied apply.Object) metav1.StatusDetails {
	if ref, ok, _ := unstructured.NestedStringMap(applied.Object, "roleRef"); ok {
		return metav1.StatusDetails{Group: ref["apiGroup"], Kind: ref["kind"], Name: ref["name"]}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return metav1.StatusDetails{}
	}
	return *status.Status().Details
}

// comes tells whether something is among the objects.
func comes(what metav1.StatusDetails, objects helmkube.ResourceList) bool {
	return slices.ContainsFunc(objects, func(info *resource.Info) bool {
		return info.Name == what.Name && info.Mapping.Resource.Group == what.Group &&
			(info.Mapping.Resource.Resource == what.Kind || info.Mapping.GroupVersionKind.Kind == what.Kind)
	})
}

// refusal tells an object that will never be taken from a server that cannot
// answer now. A patch that fits no schema is an internal error to the server.
func refusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) ||
		strings.Contains(err.Error(), "failed to create typed patch object")
}
