package chartkinds

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chartkind"
)

// report writes the status if it differs, emits an event for each condition that has
// changed, and updates the metrics.
func (c *Controller) report(ctx context.Context, ck chartkind.ChartKind, facts chartkind.Facts) error {
	c.Metrics.SetChartKind(ck.Name, facts.Ready().Status == metav1.ConditionTrue)
	if !c.leads() {
		return nil
	}
	status := facts.Status(ck.Status, ck.Generation, metav1.NewTime(c.Now()).Rfc3339Copy())
	if reflect.DeepEqual(status, ck.Status) {
		return nil
	}
	written := map[string]any{"observedGeneration": status.ObservedGeneration, "conditions": status.Conditions, "chart": status.Chart}
	err := c.patch(ctx, ck.Name, "status", map[string]any{"metadata": map[string]any{"uid": ck.UID, "resourceVersion": ck.ResourceVersion}, "status": written})
	if apply.AnswerOf(err) == apply.Gone {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	for _, changed := range chartkind.Transitions(ck.Status, status) {
		kind := corev1.EventTypeNormal
		switch changed.Status {
		case metav1.ConditionUnknown:
			// Nothing has happened yet.
			continue
		case metav1.ConditionFalse:
			kind = corev1.EventTypeWarning
		default:
		}
		c.event(ck, kind, changed.Reason, changed.Type+": "+changed.Message)
	}
	return nil
}

// patch changes a ChartKind or its status.
func (c *Controller) patch(ctx context.Context, name, subresource string, change map[string]any) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	var subresources []string
	if subresource != "" {
		subresources = []string{subresource}
	}
	_, err = c.Client.Resource(chartkind.GVR).Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: api.FieldManager}, subresources...)
	return err
}

// maxEvent is the API server's limit for the text of an event, in bytes.
const maxEvent = 1024

// event emits an event on a ChartKind.
func (c *Controller) event(ck chartkind.ChartKind, kind, reason, text string) {
	c.Recorder.Event(&corev1.ObjectReference{
		APIVersion: chartkind.GVK.GroupVersion().String(), Kind: chartkind.GVK.Kind, Name: ck.Name, UID: ck.UID,
	}, kind, reason, strings.TrimSuffix(api.Truncate(text, maxEvent), ": "))
}
