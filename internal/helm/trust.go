package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/release/signing"
)

// Restore restores the annotations of the newest revision, which the helm CLI drops
// when it writes a record. "helm test" does so before and after each test. Restore
// reads the record once and verifies its signature. It creates no revision and runs no
// hook.
//
// If the manifest, the values, the chart or the hooks of the revision were changed,
// nothing is written and the error is ErrUntrusted.
func (c *Client) Restore(ctx context.Context, r Request) error {
	return c.run(ctx, r, func(run *run) error {
		history := run.history()
		if len(history) == 0 || !history[0].Stripped() {
			return fmt.Errorf("%w: the newest record has its annotations", release.ErrStale)
		}
		record := history[0]
		stored, err := run.readTrusted(record)
		if err != nil {
			return err
		}
		signature := run.driver.Keys.Sign(release.SignedContent(run.driver.Namespace, stored))
		if signature == "" {
			return release.ErrNoKey
		}
		var secret corev1.Secret
		run.driver.Stamp.KeptNumbers = record.KeptNumbers
		run.driver.Stamp.Annotate(&secret, stored, record.Inventory)
		if record.Lookups != "" {
			secret.Annotations[release.AnnotationLookups] = record.Lookups
		}
		if record.Approved != "" {
			secret.Annotations[release.AnnotationApproved] = record.Approved
		}
		if record.Tested != nil {
			text, err := json.Marshal(record.Tested)
			if err != nil {
				return err
			}
			secret.Annotations[release.AnnotationTested] = string(text)
		}
		// The helm CLI writes without checking the resourceVersion, and may do so again.
		return run.patchUnchanged(record, map[string]any{
			"annotations": secret.Annotations,
			"labels":      map[string]string{api.LabelSignature: signature},
		})
	})
}

// patchUnchanged patches the metadata of a record that the action has read. The error
// is ErrStale if the record has changed since.
func (r *run) patchUnchanged(record release.Record, metadata map[string]any) error {
	metadata["resourceVersion"] = r.driver.Versions[record.Secret]
	err := r.client.patchRecord(r.kube.ctx, record, metadata)
	if answer := apply.AnswerOf(err); answer == apply.Conflict || answer == apply.Gone {
		return fmt.Errorf("%w: record %s was changed concurrently", release.ErrStale, record.Secret)
	}
	return err
}

// SignedByCurrentKey reports whether the label of a record names the current key. It
// does not read the record, so nothing is verified.
func (c *Client) SignedByCurrentKey(record release.Record) bool {
	return c.config.Keys.Current(record.Signature)
}

// Sign signs the record of the newest revision with the current key. It creates no
// revision. A record with a signature by the previous key is signed again. A record
// without a signature, or with one by an unknown key, is signed only if the cluster
// proves its content; see prove.
//
// If the content does not match the signature, or is not proved, nothing is written and
// the error is ErrUntrusted.
func (c *Client) Sign(ctx context.Context, r Request) error {
	return c.run(ctx, r, (*run).signNewest)
}

func (r *run) signNewest() error {
	history := r.history()
	if len(history) == 0 || history[0].Status != api.StatusDeployed {
		return fmt.Errorf("%w: no revision is deployed", release.ErrStale)
	}
	record := history[0]
	stored, err := r.readTrusted(record)
	if err != nil {
		return err
	}
	return r.signRecord(record, stored)
}

// readTrusted reads a record whose content may be used. The error is ErrStale if the
// record differs from the index, and ErrUntrusted if its content must not be used.
func (r *run) readTrusted(record release.Record) (*engine.Release, error) {
	stored, err := r.readUnchanged(record)
	if err != nil {
		return nil, err
	}
	return stored, r.trust(record, stored)
}

// readUnchanged reads a record. The error is ErrStale if the record differs from the
// index.
func (r *run) readUnchanged(record release.Record) (*engine.Release, error) {
	stored, err := r.driver.Get(record.Secret)
	if err == nil && r.driver.Versions[record.Secret] != record.ResourceVersion {
		err = fmt.Errorf("%w: record %s was changed concurrently", release.ErrStale, record.Secret)
	}
	return stored, err
}

// trust returns nil if the content of a record may be used, and ErrUntrusted otherwise.
func (r *run) trust(record release.Record, stored *engine.Release) error {
	err := r.driver.Untrusted(record.Secret)
	if !errors.Is(err, signing.ErrUnsigned) {
		return err
	}
	if why := r.prove(record, stored); why != nil {
		if errors.Is(why, release.ErrUntrusted) {
			return fmt.Errorf("%w, and %s", err, strings.TrimPrefix(why.Error(), release.ErrUntrusted.Error()+": "))
		}
		return why
	}
	r.driver.Accept(record.Secret, stored)
	return nil
}

// signRecord signs a record with the current key, unless the record already has that
// signature.
func (r *run) signRecord(record release.Record, stored *engine.Release) error {
	signature := r.driver.Keys.Sign(release.SignedContent(r.driver.Namespace, stored))
	switch signature {
	case "":
		return release.ErrNoKey
	case record.Signature:
		return nil
	}
	return r.patchUnchanged(record, map[string]any{"labels": map[string]string{api.LabelSignature: signature}})
}

// signUnlessCurrent signs the newest record, unless its label names the current key.
func (r *run) signUnlessCurrent() error {
	history := r.history()
	if len(history) == 0 || history[0].Status != api.StatusDeployed || r.driver.Keys.Current(history[0].Signature) {
		return nil
	}
	return r.signNewest()
}

// prove returns nil if a record can be signed safely: each of its objects is owned by
// the release and was last applied with the recorded content, and the chart renders the
// same hooks. Otherwise the error is ErrUntrusted.
func (r *run) prove(record release.Record, stored *engine.Release) error {
	objects, err := r.kube.build(stored.Manifest)
	if err != nil {
		return fmt.Errorf("%w: %w", release.ErrUntrusted, err)
	}
	if err := r.kube.allow.check(r.kube.Namespace, objects); err != nil {
		return fmt.Errorf("%w: %w", release.ErrUntrusted, err)
	}
	var absent engine.ResourceList
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
	again, err := r.renderAgain(record, stored)
	if err != nil {
		return fmt.Errorf("%w: the chart cannot be rendered to compare it: %w", release.ErrUntrusted, err)
	}
	if err := again.sameHooks(stored); err != nil {
		return err
	}
	return r.sameObjects(again, absent)
}

// appliedAs reports whether an object exists. The error is ErrUntrusted if the release
// does not own it, or if it was last applied with other content.
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
	case !state.Managed || state.Owner != k.Owner.UID:
		return true, fmt.Errorf("%w: %s is not owned by this release", release.ErrUntrusted, apply.Describe(o.Unstructured))
	case state.Applied != o.GetAnnotations()[api.AnnotationApplied]:
		return true, fmt.Errorf("%w: %s was last applied with other content", release.ErrUntrusted, apply.Describe(o.Unstructured))
	}
	return true, nil
}

// rendering is the result of a new render for a stored revision.
type rendering struct {
	hooks []*engine.Hook
	// digests holds the digest of each object.
	digests map[apply.Key]string
}

// renderAgain renders the chart with the current values, and with the numbers and the release
// options of a stored revision. Nothing is stored or applied.
func (r *run) renderAgain(record release.Record, stored *engine.Release) (rendering, error) {
	current := r.Values
	if r.CurrentValues != nil {
		var err error
		if current, err = r.CurrentValues(); err != nil {
			return rendering{}, err
		}
	}
	// A render may change values.
	given := values.Normalize(maps.Clone(current))
	in, err := r.Chart.Prepare(given, r.numbers(r.integersOf(record)))
	if err != nil {
		return rendering{}, err
	}
	executed, err := r.execute(in, stored.Version)
	if err != nil {
		return rendering{}, err
	}
	rendered, err := chart.DryRun(executed, r.Release, r.Namespace, given, r.config.Capabilities.KubeVersion, nil)
	if err != nil {
		return rendering{}, err
	}
	list, err := r.kube.builder.build(rendered.Manifest)
	if err != nil {
		return rendering{}, err
	}
	again := rendering{hooks: rendered.Hooks, digests: map[apply.Key]string{}}
	for _, info := range list {
		o, err := r.kube.prepare(object(info))
		if err != nil {
			return rendering{}, err
		}
		again.digests[apply.KeyOf(o)] = o.GetAnnotations()[api.AnnotationApplied]
	}
	return again, nil
}

// has reports whether the chart renders an object.
func (x rendering) has(info *resource.Info) bool {
	_, ok := x.digests[apply.KeyOf(object(info))]
	return ok
}

// sameHooks returns ErrUntrusted unless the hooks of a stored revision equal the
// rendered hooks.
func (x rendering) sameHooks(stored *engine.Release) error {
	if !slices.Equal(release.HookDefinitions(stored.Hooks), release.HookDefinitions(x.hooks)) {
		return fmt.Errorf("%w: its hooks differ from the rendered hooks", release.ErrUntrusted)
	}
	return nil
}

// sameObjects returns ErrUntrusted unless the chart renders the given objects with the
// same content.
func (r *run) sameObjects(again rendering, objects engine.ResourceList) error {
	for _, info := range objects {
		o, err := r.kube.prepare(object(info))
		if err != nil {
			return fmt.Errorf("%w: %w", release.ErrUntrusted, err)
		}
		if o.GetAnnotations()[api.AnnotationApplied] != again.digests[apply.KeyOf(o)] {
			return fmt.Errorf("%w: %s differs from the rendered object", release.ErrUntrusted, apply.Describe(o.Unstructured))
		}
	}
	return nil
}
