package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/records"
	"github.com/chartwright/chartwright/internal/values"
)

// ErrAltered marks a release record whose content somebody else has changed.
var ErrAltered = errors.New("somebody else has changed the release record")

// Restore writes the annotations of the newest revision back, which the helm CLI
// drops when it writes a record: "helm test" does so before and after each test.
// The record is read once, and its content compared with the digest that the
// operator left in a label. Nothing else is changed, no revision is made and no
// hook runs.
//
// The error is ErrAltered, and nothing was written, where the status, manifest,
// values, chart or hooks of the revision are no longer the operator's. What the
// helm CLI notes about the runs of hooks does not count.
func (c *Client) Restore(ctx context.Context, r Request) error {
	run, err := c.begin(ctx, r)
	if err != nil {
		return err
	}
	return run.outcome(ctx, run.restore(c, r))
}

func (r *run) restore(c *Client, request Request) error {
	history := c.index.History(request.Namespace, request.Release)
	if len(history) == 0 || !history[0].Stripped() {
		return fmt.Errorf("%w: the newest record has its annotations", ErrStale)
	}
	record := history[0]
	stored, err := r.driver.Get(record.Secret)
	if err != nil {
		return err
	}
	if r.driver.versions[record.Secret] != record.ResourceVersion {
		return fmt.Errorf("%w: record %s was changed by somebody else", ErrStale, record.Secret)
	}
	if !unaltered(record, stored, request) {
		return fmt.Errorf("%w: %s", ErrAltered, record.Secret)
	}
	var secret corev1.Secret
	r.driver.stamp.annotate(&secret, stored, record.Inventory)
	if record.Lookups != "" {
		secret.Annotations[AnnotationLookups] = record.Lookups
	}
	if record.Tested != nil {
		text, err := json.Marshal(record.Tested)
		if err != nil {
			return err
		}
		secret.Annotations[records.AnnotationTested] = string(text)
	}
	// The helm CLI writes without asking who else does, and may do so again.
	err = c.patchRecord(r.driver.ctx, record, map[string]any{
		"resourceVersion": record.ResourceVersion,
		"annotations":     secret.Annotations,
		"labels":          map[string]string{api.LabelContentDigest: contentDigest(stored)},
	})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: record %s was changed by somebody else", ErrStale, record.Secret)
	}
	return err
}

// unaltered reports whether a record stores what the operator last wrote. A
// record of an operator that left no digest of its content counts as unaltered
// where an upgrade would make the same.
func unaltered(record records.Record, stored *release.Release, request Request) bool {
	if stored.Name != record.Release || stored.Version != record.Revision {
		return false
	}
	if digest := stored.Labels[api.LabelContentDigest]; digest != "" {
		return digest == contentDigest(stored)
	}
	return record.InputDigest == request.Digests.Input && agrees(stored, request)
}

// contentDigest covers what a record stores of a revision: its status, chart,
// values, manifest and hooks. It leaves out what the helm CLI updates without
// changing the release: when hooks ran and how they ended, the order in which
// the hooks are listed, and the delete policies that Helm fills in.
func contentDigest(rls *release.Release) string {
	var status, chart string
	if rls.Info != nil {
		status = rls.Info.Status.String()
	}
	if rls.Chart != nil && rls.Chart.Metadata != nil {
		chart = rls.Chart.Metadata.Name + "-" + rls.Chart.Metadata.Version
	}
	hooks := make([]string, len(rls.Hooks))
	for i, hook := range rls.Hooks {
		hooks[i] = values.DigestOf(hook.Name, hook.Kind, hook.Path, hook.Manifest, fmt.Sprint(hook.Events), strconv.Itoa(hook.Weight))
	}
	slices.Sort(hooks)
	parts := []string{rls.Name, rls.Namespace, strconv.Itoa(rls.Version), status, chart, configDigest(rls.Config), rls.Manifest}
	return values.DigestOf(slices.Concat(parts, hooks)...)
}

// configDigest is the digest of values as they are once they have been stored
// and read: JSON has one kind of number.
func configDigest(config map[string]any) string {
	// What a record stores is encoded without an error.
	text, _ := json.Marshal(config)
	read := map[string]any{}
	_ = json.Unmarshal(text, &read)
	return values.Digest(values.Normalize(read))
}
