package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	helmkube "helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/release/signing"
)

// Restore writes the annotations of the newest revision back, which the helm CLI
// drops when it writes a record: "helm test" does so before and after each test.
// The record is read once, and its signature verified. Nothing else is changed,
// no revision is made and no hook runs.
//
// The error is ErrUntrusted, and nothing was written, where somebody else has
// changed the manifest, values, chart or hooks of the revision.
func (c *Client) Restore(ctx context.Context, r Request) error {
	return c.run(ctx, r, func(run *run) error { return run.restore(c, r) })
}

func (r *run) restore(c *Client, request Request) error {
	history := c.config.Index.History(request.Namespace, request.Release)
	if len(history) == 0 || !history[0].Stripped() {
		return fmt.Errorf("%w: the newest record has its annotations", release.ErrStale)
	}
	record := history[0]
	stored, err := r.readTrusted(c, request, record)
	if err != nil {
		return err
	}
	signature := r.driver.Keys.Sign(release.SignedContent(r.driver.Namespace, stored))
	if signature == "" {
		return release.ErrNoKey
	}
	var secret corev1.Secret
	r.driver.Stamp.Annotate(&secret, stored, record.Inventory)
	if record.Lookups != "" {
		secret.Annotations[release.AnnotationLookups] = record.Lookups
	}
	if record.Tested != nil {
		text, err := json.Marshal(record.Tested)
		if err != nil {
			return err
		}
		secret.Annotations[release.AnnotationTested] = string(text)
	}
	// The helm CLI writes without asking who else does, and may do so again.
	return r.patchUnchanged(c, record, map[string]any{
		"annotations": secret.Annotations,
		"labels":      map[string]string{api.LabelSignature: signature},
	})
}

// patchUnchanged merges into the metadata of a record that the action has read. The
// error is ErrStale if the record has changed since.
func (r *run) patchUnchanged(c *Client, record release.Record, metadata map[string]any) error {
	metadata["resourceVersion"] = r.driver.Versions[record.Secret]
	err := c.patchRecord(r.driver.Ctx, record, metadata)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: record %s was changed by somebody else", release.ErrStale, record.Secret)
	}
	return err
}

// SignedByCurrentKey reports whether the label of a record names the key that
// signs now. The record is not read, so nothing is verified.
func (c *Client) SignedByCurrentKey(record release.Record) bool {
	return c.config.Keys.Current(record.Signature)
}

// Sign signs the record of the newest revision with the current key, and makes no
// revision. A record that the previous key has signed is signed again. A record
// whose signature is missing, or is of an unknown key, is signed only if the
// cluster proves what it stores, see prove.
//
// The error is ErrUntrusted, and nothing was written, where the record stores
// something else than was signed, or where the cluster does not prove it.
func (c *Client) Sign(ctx context.Context, r Request) error {
	return c.run(ctx, r, func(run *run) error { return run.signNewest(c, r) })
}

func (r *run) signNewest(c *Client, request Request) error {
	history := c.config.Index.History(request.Namespace, request.Release)
	if len(history) == 0 || history[0].Status != api.StatusDeployed {
		return fmt.Errorf("%w: no revision is deployed", release.ErrStale)
	}
	record := history[0]
	stored, err := r.readTrusted(c, request, record)
	if err != nil {
		return err
	}
	return r.signRecord(c, record, stored)
}

// readTrusted reads a record whose content may be used. The error is ErrStale if
// the record is not the one in the index any more, and ErrUntrusted if its content
// must not be used.
func (r *run) readTrusted(c *Client, request Request, record release.Record) (*helmrelease.Release, error) {
	stored, err := r.readUnchanged(record)
	if err != nil {
		return nil, err
	}
	return stored, r.trust(c, request, record, stored)
}

// readUnchanged reads a record. The error is ErrStale if it is not the one in the
// index any more.
func (r *run) readUnchanged(record release.Record) (*helmrelease.Release, error) {
	stored, err := r.driver.Get(record.Secret)
	if err == nil && r.driver.Versions[record.Secret] != record.ResourceVersion {
		err = fmt.Errorf("%w: record %s was changed by somebody else", release.ErrStale, record.Secret)
	}
	return stored, err
}

// trust returns nil if what a record stores may be used. The error is
// ErrUntrusted where it may not.
func (r *run) trust(c *Client, request Request, record release.Record, stored *helmrelease.Release) error {
	err := r.driver.Untrusted(record.Secret)
	if !errors.Is(err, signing.ErrUnsigned) {
		return err
	}
	if why := r.prove(c, request, stored); why != nil {
		if errors.Is(why, release.ErrUntrusted) {
			return fmt.Errorf("%w, and %s", err, strings.TrimPrefix(why.Error(), release.ErrUntrusted.Error()+": "))
		}
		return why
	}
	r.driver.Accept(record.Secret, stored)
	return nil
}

// signRecord puts a signature by the current key on a record that may be used,
// unless it has one.
func (r *run) signRecord(c *Client, record release.Record, stored *helmrelease.Release) error {
	signature := r.driver.Keys.Sign(release.SignedContent(r.driver.Namespace, stored))
	switch signature {
	case "":
		return release.ErrNoKey
	case record.Signature:
		return nil
	}
	return r.patchUnchanged(c, record, map[string]any{"labels": map[string]string{api.LabelSignature: signature}})
}

// signUnlessCurrent signs the newest record if its label shows that the current
// key has not signed it.
func (r *run) signUnlessCurrent(c *Client, request Request) error {
	history := c.config.Index.History(request.Namespace, request.Release)
	if len(history) == 0 || history[0].Status != api.StatusDeployed || r.driver.Keys.Current(history[0].Signature) {
		return nil
	}
	return r.signNewest(c, request)
}

// prove returns nil if to sign a record changes nothing: each of its objects is
// owned by the release and was last applied as the record has it, and its hooks
// are those that the chart renders now. Otherwise the error is ErrUntrusted.
func (r *run) prove(c *Client, request Request, stored *helmrelease.Release) error {
	objects, err := r.kube.Build(strings.NewReader(stored.Manifest), false)
	if err != nil {
		return fmt.Errorf("%w: %w", release.ErrUntrusted, err)
	}
	if err := r.kube.allow.check(r.kube.namespace, objects); err != nil {
		return fmt.Errorf("%w: %w", release.ErrUntrusted, err)
	}
	var absent helmkube.ResourceList
	for _, info := range objects {
		found, err := r.kube.appliedAs(info)
		if err != nil {
			return err
		}
		if _, once := ttlOf(info); !found && !once {
			return fmt.Errorf("%w: %s does not exist", release.ErrUntrusted, apply.Describe(object(info).Unstructured))
		}
		if !found {
			absent = append(absent, info)
		}
	}
	if len(absent) == 0 && len(stored.Hooks) == 0 {
		return nil
	}
	rendered, err := r.renderAgain(c, request, stored)
	if err != nil {
		return fmt.Errorf("%w: the chart cannot be rendered to compare it: %w", release.ErrUntrusted, err)
	}
	if !slices.Equal(release.HookDefinitions(stored.Hooks), release.HookDefinitions(rendered.Hooks)) {
		return fmt.Errorf("%w: its hooks are not those that the chart renders", release.ErrUntrusted)
	}
	return r.rendersSame(absent, rendered)
}

// appliedAs reports whether an object exists. The error is ErrUntrusted where it
// is not owned by the release, or was applied last with other content.
func (k *kubeClient) appliedAs(info *resource.Info) (found bool, err error) {
	o, err := k.prepare(object(info))
	if err != nil {
		return false, fmt.Errorf("%w: %w", release.ErrUntrusted, err)
	}
	state, known := k.inventory.Get(apply.KeyOf(o))
	if !known {
		live, err := k.objects.Get(k.ctx, o)
		if err != nil || live == nil {
			return false, err
		}
		state = apply.StateOf(info.Mapping.GroupVersionKind.GroupKind(), live)
	}
	switch {
	case !state.Managed || state.Owner != k.owner.UID:
		return true, fmt.Errorf("%w: %s is not owned by this release", release.ErrUntrusted, apply.Describe(o.Unstructured))
	case state.Applied != o.GetAnnotations()[api.AnnotationApplied]:
		return true, fmt.Errorf("%w: %s was last applied with other content", release.ErrUntrusted, apply.Describe(o.Unstructured))
	}
	return true, nil
}

// rendersSame returns nil if a render has the same objects. Otherwise the error
// is ErrUntrusted.
func (r *run) rendersSame(objects helmkube.ResourceList, rendered *helmrelease.Release) error {
	list, err := r.kube.builder.build(strings.NewReader(rendered.Manifest))
	if err != nil {
		return fmt.Errorf("%w: %w", release.ErrUntrusted, err)
	}
	digests := map[apply.Key]string{}
	for _, info := range list {
		o, err := r.kube.prepare(object(info))
		if err != nil {
			return fmt.Errorf("%w: %w", release.ErrUntrusted, err)
		}
		digests[apply.KeyOf(o)] = o.GetAnnotations()[api.AnnotationApplied]
	}
	for _, info := range objects {
		o, err := r.kube.prepare(object(info))
		if err != nil {
			return fmt.Errorf("%w: %w", release.ErrUntrusted, err)
		}
		if o.GetAnnotations()[api.AnnotationApplied] != digests[apply.KeyOf(o)] {
			return fmt.Errorf("%w: %s is not as the chart renders it", release.ErrUntrusted, apply.Describe(o.Unstructured))
		}
	}
	return nil
}

// renderAgain renders the request's chart and values as they were rendered for a
// stored revision. Nothing is stored or applied.
func (r *run) renderAgain(c *Client, request Request, stored *helmrelease.Release) (*helmrelease.Release, error) {
	current := request.Values
	if request.CurrentValues != nil {
		var err error
		if current, err = request.CurrentValues(); err != nil {
			return nil, err
		}
	}
	// A render may change values.
	given := values.Normalize(maps.Clone(current))
	in, err := request.Chart.Prepare(given)
	if err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{
		Name: request.Release, Namespace: request.Namespace, Revision: stored.Version,
		IsInstall: stored.Version == 1, IsUpgrade: stored.Version > 1,
	}
	rendered, err := request.Chart.ExecuteTemplates(r.driver.Ctx, in, c.renderer, options, r.config.Capabilities,
		render.Options{Lookup: r.lookup(), InValues: request.Allow.LookupsInValues(), Lend: request.Slot.Release})
	if err != nil {
		return nil, err
	}
	return chart.DryRun(rendered, request.Release, request.Namespace, given, r.config.Capabilities.KubeVersion, nil)
}
