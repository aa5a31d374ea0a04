package helm

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// Restore writes the annotations of the newest revision back, which the helm CLI
// drops when it writes a record: "helm test" does so before and after each test.
// The record is read once, and its signature verified. Nothing else is changed,
// no revision is made and no hook runs.
//
// The error is ErrUntrusted, and nothing was written, where somebody else has
// changed the manifest, values, chart or hooks of the revision.
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
	err = c.patchRecord(r.driver.Ctx, record, map[string]any{
		"resourceVersion": record.ResourceVersion,
		"annotations":     secret.Annotations,
		"labels":          map[string]string{api.LabelSignature: signature},
	})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: record %s was changed by somebody else", release.ErrStale, record.Secret)
	}
	return err
}
