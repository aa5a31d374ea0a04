package helm

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/release"
)

// Mark writes the request's marks onto the newest revision that this operator
// wrote, and changes nothing else.
func (c *Client) Mark(ctx context.Context, r Request) error {
	for _, record := range c.index.History(r.Namespace, r.Release) {
		if record.Written() {
			return c.mark(ctx, record, r.Marks.Labels(), nil)
		}
	}
	return fmt.Errorf("%w: no revision is ours", release.ErrStale)
}

// mark patches labels and annotations of a record. Empty values take a key
// away; where nothing would change, nothing is written.
func (c *Client) mark(ctx context.Context, record release.Record, labels, annotations map[string]string) error {
	if record.Marks.Equal(labels) && len(annotations) == 0 {
		return nil
	}
	err := c.patchRecord(ctx, record, map[string]any{"labels": orNull(labels), "annotations": orNull(annotations)})
	if apierrors.IsNotFound(err) {
		c.index.Remove(record)
		return fmt.Errorf("%w: record %s is gone", release.ErrStale, record.Secret)
	}
	return err
}

// patchRecord merges into the metadata of a record, and tells the index.
func (c *Client) patchRecord(ctx context.Context, record release.Record, metadata map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	secret, err := c.kubernetes.CoreV1().Secrets(record.Namespace).Patch(ctx, record.Secret, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("update release record %s: %w", record.Secret, err)
	}
	if stored, ok := release.FromMeta(secret); ok {
		c.index.Put(stored)
	}
	return nil
}

// orNull makes empty values what a merge patch removes.
func orNull(values map[string]string) map[string]any {
	patch := map[string]any{}
	for key, value := range values {
		if patch[key] = any(value); value == "" {
			patch[key] = nil
		}
	}
	return patch
}
