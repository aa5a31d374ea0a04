package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// signature is the label with the signature of a release record.
const signature = "chartwright.dev/signature"

// sign starts a process that finds unsigned release records, as earlier
// versions wrote them. It fails unless the process signs each deployed
// revision, and creates no revision.
func (s *stage) sign(ctx context.Context, crs int, watches string) (Result, error) {
	before, err := s.recordsOf(ctx, "")
	if err != nil {
		return Result{}, err
	}
	r, err := s.restartAfter(ctx, scenarioSign, crs, watches, func() error {
		return each(before, func(_ int, record corev1.Secret) error {
			remove := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, signature)
			_, err := s.typed.CoreV1().Secrets(record.Namespace).Patch(ctx, record.Name, types.MergePatchType, remove, metav1.PatchOptions{})
			return err
		})
	})
	if err != nil {
		return r, err
	}
	after, err := s.recordsOf(ctx, "")
	if err != nil {
		return r, err
	}
	signed, err := s.recordsOf(ctx, ",status=deployed,"+signature)
	if err != nil {
		return r, err
	}
	if len(after) != len(before) || len(signed) != crs {
		return r, fmt.Errorf("%d release records after %d, %d deployed ones signed: want %d signed ones and no new record", len(after), len(before), len(signed), crs)
	}
	return r.with("signatures per second", ratio(float64(r.Requests.Writes), r.Seconds), ""), nil
}

// recordsOf returns the release records that match a label selector.
func (s *stage) recordsOf(ctx context.Context, selector string) ([]corev1.Secret, error) {
	list, err := s.typed.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: "owner=helm" + selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
